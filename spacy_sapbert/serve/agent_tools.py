"""What an agent may ask: linking, concepts and codes as tools with bounded answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ..evaluation.explain import Explanation
from ..formats.entities import LinkedEntity
from ..kb.knowledge_base import KnowledgeBase
from ..linking.certainty import Certainty, judge_link
from ..linking.options import change_options
from ..linking.sources import normalize_prefix
from ..mapping.lookup import Query, map_batch
from ..pipeline.linker import fit_language
from .explaining import explain
from .lookup import ConceptAnswer, ConceptName, FoundConcept, describe_concept
from .problems import RequestError
from .protocols.fhir_codes import (
    CodeSystem,
    codes_of,
    find_concepts,
    is_synonym,
    list_systems,
)
from .requests import LONGEST_VALUE, ExplainRequest, SearchAnswer
from .search import search_concepts
from .service import Service

LONGEST_NOTE = 200_000  # characters
MOST_MENTIONS, MOST_TERMS, MOST_FOUND, MOST_CODES = 100, 50, 50, 100
MOST_SHOWN = 50  # names, parents, children … of a concept
MOST_ALTERNATIVES, MOST_CANDIDATES = 5, 10
LONGEST_NAME, LONGEST_DEFINITION = 120, 3_000  # characters in an answer
LONGEST_PAGE = 30_000  # characters of the mentions in an answer

Note = Annotated[
    str,
    Field(max_length=LONGEST_NOTE, description="The text of a note, in any language."),
]
Short = Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]
Id = Annotated[Short, Field(description="Id of a concept, as other tools return it.")]
Alternatives = Annotated[
    int,
    Field(
        ge=0,
        le=MOST_ALTERNATIVES,
        description="Number of other candidates to return for each.",
    ),
]


class Mention(BaseModel):
    """A mention in a note.

    Attributes:
        start, end: Offsets in characters.
        cui: The id of the concept; null = none, for the reason in `note`.
        certainty: How far the link can be trusted: "tied" = another concept fits as
            well, "none" = there is no link.
    """

    start: int
    end: int
    text: str
    cui: str | None
    name: str | None
    score: float | None
    probability: float | None
    types: list[str]
    note: str | None
    certainty: Certainty
    alternatives: list[FoundConcept]


class LinkedNote(BaseModel):
    """The mentions of a note, a page of them.

    Attributes:
        kb: Digest of the knowledge base.
        total: Number of all mentions.
        next: `first` of the next page; null = this is the last one.
    """

    kb: str
    total: int
    next: int | None
    mentions: list[Mention]


class LinkedTerm(BaseModel):
    """What was found for a term.

    Attributes:
        status: "exact" and "linked" = `cui` is the concept; "review" = choose one of
            the alternatives, or none; "none" = nothing is like it.
        certainty: See `Mention`.
    """

    term: str
    status: str
    cui: str | None
    name: str | None
    note: str | None
    certainty: Certainty
    alternatives: list[FoundConcept]


class LinkedTerms(BaseModel):
    """One result for each term, in order."""

    kb: str
    terms: list[LinkedTerm]


class ConceptCard(ConceptAnswer):
    """All about a concept; of long lists the first entries.

    Attributes:
        total: The number of entries of each list that is not whole.
    """

    total: dict[str, int]


class MappedCode(BaseModel):
    """The concepts of a code, and their codes in another vocabulary.

    Attributes:
        relation: "equivalent" = both vocabularies give names to the concept;
            "related" = one is a cross reference; null = there is none.
    """

    code: str
    concepts: list[ConceptName]
    codes: list[str]
    relation: Literal["equivalent", "related"] | None


class MappedCodes(BaseModel):
    """One result for each code, in order."""

    source: str
    target: str
    codes: list[MappedCode]


def shorten(value: Any, longest: int = LONGEST_NAME) -> Any:
    """Return data whose texts and lists are not too long for an answer."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[: longest - 1]}…"
    if isinstance(value, (list, tuple)):
        return [shorten(one) for one in value[:MOST_SHOWN]]
    if isinstance(value, dict):
        return {
            name: shorten(one, LONGEST_DEFINITION if name == "definition" else longest)
            for name, one in [*value.items()][:MOST_SHOWN]
        }
    return value


def list_alternatives(
    candidates: Sequence[Mapping[str, Any]], most: int, without: str | None
) -> list[FoundConcept]:
    """Return the first candidates but the concept `without`."""
    names = FoundConcept.__annotations__
    others = [one for one in candidates if one["cui"] != without]
    return [shorten({name: one[name] for name in names}) for one in others[:most]]


def describe_mention(entity: LinkedEntity, alternatives: int) -> Mention:
    """Return a linked entity as a tool shows it."""
    text, cui, candidates = entity["text"], entity["cui"], entity["candidates"]
    shown = {name: one for name, one in entity.items() if name in Mention.model_fields}
    return Mention(
        **shorten(shown),
        certainty=judge_link(text, cui, candidates, note=entity["note"]),
        alternatives=list_alternatives(candidates, alternatives, cui),
    )


class AgentTools:
    """The tools of an agent; the first line of each docstring is what the agent reads.

    Args:
        service: Started.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    async def link_text(
        self,
        text: Note,
        first: Annotated[
            int, Field(ge=0, description="Place of the first mention, from 0.")
        ] = 0,
        limit: Annotated[int, Field(ge=1, le=MOST_MENTIONS)] = 50,
        alternatives: Alternatives = 0,
    ) -> LinkedNote:
        """Find the mentions of biomedical concepts in a note, and link each to an id.

        A mention without id was found but not linked; `note` says why. If `next` is a
        number, call again with it as `first` for the rest.
        """
        (result,) = await self.service.link_texts([text], {})
        if result.error is not None:
            raise result.error
        mentions: list[Mention] = []
        length = 0
        for entity in result.entities[first : first + limit]:
            mention = describe_mention(entity, alternatives)
            length += len(mention.model_dump_json())
            if mentions and length > LONGEST_PAGE:
                break
            mentions.append(mention)
        total, end = len(result.entities), first + len(mentions)
        return LinkedNote(
            kb=result.kb,
            total=total,
            next=end if end < total else None,
            mentions=mentions,
        )

    async def link_terms(
        self,
        terms: Annotated[
            list[Short],
            Field(
                min_length=1,
                max_length=MOST_TERMS,
                description="Terms, each on its own, e.g. cells of a column.",
            ),
        ],
        alternatives: Alternatives = 3,
    ) -> LinkedTerms:
        """Find the concept of each of some terms, as for a column of diagnoses."""
        service = self.service

        def run() -> LinkedTerms:
            kb = service.kb
            options = change_options(service.options, {"k": 1 + MOST_ALTERNATIVES})
            fitting = fit_language(options, service.nlp.vocab.lang)
            found = map_batch(kb, [Query(term) for term in terms], fitting)
            names = kb.store.names_of_cuis([one.cui for one in found if one.cui])
            linked = [
                LinkedTerm(
                    term=shorten(term),
                    status=one.status,
                    cui=one.cui,
                    name=names.get(one.cui or ""),
                    note=one.note,
                    certainty=one.certainty,
                    alternatives=list_alternatives(
                        one.candidates, alternatives, one.cui
                    ),
                )
                for term, one in zip(terms, found, strict=True)
            ]
            return LinkedTerms(kb=kb.manifest.digest, terms=linked)

        return await service.call(run)

    async def search_concepts(
        self,
        query: Annotated[Short, Field(description="A name, or its beginning.")],
        limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 10,
        types: Annotated[
            list[Short],
            Field(max_length=MOST_SHOWN, description="Semantic types; empty = all."),
        ] = [],  # noqa: B006
    ) -> SearchAnswer:
        """Search for concepts by name: those that begin so, then the most similar."""
        found = await search_concepts(self.service, query, limit, types)
        return SearchAnswer(concepts=[shorten({**one}) for one in found])

    def get_concept(self, id: Id) -> ConceptCard:
        """Get all about a concept: names, definition, codes, parents, children."""
        return make_card(self.service.kb, id)

    def map_codes(
        self,
        codes: Annotated[list[Short], Field(min_length=1, max_length=MOST_CODES)],
        source: Annotated[
            Short,
            Field(
                description="Vocabulary of the codes, e.g. ICD10CM; `concepts` = ids."
            ),
        ],
        target: Annotated[Short, Field(description="Vocabulary to map to.")],
    ) -> MappedCodes:
        """Map codes of a vocabulary to the codes of another one."""
        kb = self.service.kb
        given, wanted = find_named(kb, source), find_named(kb, target)
        return MappedCodes(
            source=given.name,
            target=wanted.name,
            codes=[map_code(kb, code, given, wanted) for code in codes],
        )

    async def explain_link(
        self,
        mention: Short,
        context: Annotated[
            Note | None,
            Field(description="The note or sentence that has the mention in it."),
        ] = None,
        start: Annotated[
            int | None,
            Field(ge=0, description="Where it starts in `context`, if it is repeated."),
        ] = None,
        expected: Annotated[
            Short | None, Field(description="The id that you expect; NIL = none.")
        ] = None,
    ) -> Explanation:
        """Explain why a mention is linked to its concept, or to none."""
        body = ExplainRequest(
            mention=mention,
            context=context,
            start=start,
            end=None if start is None else start + len(mention),
            expected=expected,
        )
        found = await explain(self.service, body)
        return replace(
            found,
            text=shorten(found.text),
            candidates=found.candidates[:MOST_CANDIDATES],
            filtered=found.filtered[:MOST_CANDIDATES],
            suggestions=shorten(found.suggestions),
        )


def make_card(kb: KnowledgeBase, id: str) -> ConceptCard:
    """Return all about a concept.

    Raises:
        RequestError: If there is none.
    """
    found = describe_concept(kb, id, related=MOST_CANDIDATES)
    lists = {**found, **found["codes"]}
    total = {name: len(one) for name, one in lists.items() if isinstance(one, list)}
    total["children"] = found["children_total"]
    long = {name: count for name, count in total.items() if count > MOST_SHOWN}
    return ConceptCard(**{**shorten({**found}), "total": long})  # type: ignore[typeddict-item]


def find_named(kb: KnowledgeBase, name: str) -> CodeSystem:
    """Return the code system that a name means: "icd10cm" → ICD10CM.

    Raises:
        RequestError: If the knowledge base has no codes of it.
    """
    systems = list_systems(kb)
    wanted = normalize_prefix(name)
    for system in systems:
        names = map(normalize_prefix, system.sources or [system.name])
        if wanted in names or name == system.url:
            return system
    known = ", ".join(system.name for system in systems[:MOST_SHOWN])
    raise RequestError(
        "E484",
        "Expected a vocabulary whose codes the knowledge base has, but got another. "
        f"It has: {known}.",
        404,
    )


def map_code(
    kb: KnowledgeBase, code: str, source: CodeSystem, target: CodeSystem
) -> MappedCode:
    """Return the codes that the concepts of a code have in another vocabulary."""
    concepts = find_concepts(kb, source, code)[:MOST_SHOWN]
    mapped = [concept for concept in concepts if codes_of(concept, target)]
    codes = [each for concept in mapped for each in codes_of(concept, target)]
    relation: Literal["equivalent", "related"] | None = None
    if mapped:
        equal = all(is_synonym(concept, source, target) for concept in mapped)
        relation = "equivalent" if equal else "related"
    return MappedCode(
        code=shorten(code),
        concepts=[{"cui": one.cui, "name": shorten(one.name)} for one in concepts],
        codes=[*dict.fromkeys(codes)][:MOST_SHOWN],
        relation=relation,
    )
