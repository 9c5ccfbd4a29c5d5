"""What an agent may ask: linking, concepts and codes as tools with bounded answers."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ..formats.entities import LinkedEntity
from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import Candidate
from ..linking.certainty import Certainty, judge_link
from ..linking.options import change_options
from ..linking.sources import normalize_prefix
from ..mapping.lookup import Query, map_batch
from ..pipeline.linker import fit_language
from .explaining import explain
from .lookup import describe_concept
from .problems import RequestError
from .protocols.fhir_codes import (
    CodeSystem,
    codes_of,
    find_concepts,
    is_synonym,
    list_systems,
)
from .requests import LONGEST_VALUE, ExplainRequest
from .search import search_concepts
from .service import Service

LONGEST_NOTE = 200_000  # characters
MOST_MENTIONS, MOST_TERMS, MOST_FOUND, MOST_CODES = 100, 50, 50, 100
MOST_SHOWN = 50  # names, parents, children … of a concept
MOST_ALTERNATIVES = 5
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


class FoundName(BaseModel):
    """A concept, and its name that is nearest to what was asked."""

    id: str
    name: str
    matched: str
    score: float | None


class NamedId(BaseModel):
    """A concept and its preferred name; null = it is not in the knowledge base."""

    id: str
    name: str | None


class Mention(BaseModel):
    """A mention in a note.

    Attributes:
        start, end: Offsets in characters.
        id: The concept; null = none, for the reason in `note`.
        certainty: How far the link can be trusted: "tied" = another concept fits as
            well, "none" = there is no link.
    """

    start: int
    end: int
    text: str
    id: str | None
    name: str | None
    score: float | None
    probability: float | None
    types: list[str]
    note: str | None
    certainty: Certainty
    alternatives: list[FoundName]


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
        status: "exact" and "linked" = `id` is the concept; "review" = choose one of
            the alternatives, or none; "none" = nothing is like it.
        certainty: How far the link can be trusted: "tied" = another concept fits as
            well, "none" = there is no link.
    """

    term: str
    status: str
    id: str | None
    name: str | None
    note: str | None
    certainty: Certainty
    alternatives: list[FoundName]


class LinkedTerms(BaseModel):
    """One result for each term, in order."""

    kb: str
    terms: list[LinkedTerm]


class FoundConcepts(BaseModel):
    """The concepts that a search found, the best first."""

    concepts: list[FoundName]


class ConceptCard(BaseModel):
    """All about a concept; of long lists the first entries.

    Attributes:
        total: The number of entries of each list that is not whole.
        retired: Ids that once named it.
    """

    id: str
    name: str
    names: list[str]
    types: list[str]
    definition: str | None
    codes: dict[str, list[str]]
    parents: list[NamedId]
    children: list[NamedId]
    similar: list[NamedId]
    retired: list[str]
    total: dict[str, int]


class MappedCode(BaseModel):
    """The concepts of a code, and their codes in another vocabulary.

    Attributes:
        relation: "equivalent" = both vocabularies give names to the concept;
            "related" = one is a cross reference; null = there is none.
    """

    code: str
    concepts: list[NamedId]
    codes: list[str]
    relation: Literal["equivalent", "related"] | None


class MappedCodes(BaseModel):
    """One result for each code, in order."""

    source: str
    target: str
    codes: list[MappedCode]


class LinkExplained(BaseModel):
    """Why a mention has its concept, or none.

    Attributes:
        linked_text: What was looked up: the mention, or its long form in the context.
        threshold: The least score of a link; null = none.
        least_probability: The least probability of a link; null = none.
        cause: Why the mention is not linked to the expected concept; null = it is, or
            none was expected.
        suggestions: What may link it.
    """

    mention: str
    linked_text: str
    id: str | None
    note: str | None
    threshold: float | None
    least_probability: float | None
    truncated: bool
    candidates: list[FoundName]
    filtered: list[FoundName]
    cause: str | None
    expected_rank: int | None
    suggestions: list[str]


def cut(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text that is not too long for an answer."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def list_found(
    candidates: list[Candidate], most: int, without: str | None = None
) -> list[FoundName]:
    """Return the first candidates.

    Args:
        without: Id of a concept that is left out.
    """
    return [
        FoundName(
            id=one["cui"],
            name=cut(one["name"]),
            matched=cut(one["alias"]),
            score=one["score"],
        )
        for one in candidates
        if one["cui"] != without
    ][:most]


def describe_mention(entity: LinkedEntity, alternatives: int) -> Mention:
    """Return a linked entity as a tool shows it."""
    return Mention(
        start=entity["start"],
        end=entity["end"],
        text=cut(entity["text"]),
        id=entity["cui"],
        name=entity["name"],
        score=entity["score"],
        probability=entity["probability"],
        types=entity["types"],
        note=entity["note"],
        certainty=judge_link(
            entity["text"], entity["cui"], entity["candidates"], note=entity["note"]
        ),
        alternatives=list_found(entity["candidates"], alternatives, entity["cui"]),
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
            linked = [
                LinkedTerm(
                    term=cut(term),
                    status=one.status,
                    id=one.cui,
                    name=name_of(kb, one.cui),
                    note=one.note,
                    certainty=one.certainty,
                    alternatives=list_found(
                        [Candidate(**each) for each in one.candidates],
                        alternatives,
                        one.cui,
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
    ) -> FoundConcepts:
        """Search for concepts by name: those that begin so, then the most similar."""
        found = await search_concepts(self.service, query, limit, types)
        concepts = [
            FoundName(
                id=one["cui"],
                name=cut(one["name"]),
                matched=cut(one["alias"]),
                score=one["score"],
            )
            for one in found
        ]
        return FoundConcepts(concepts=concepts)

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
    ) -> LinkExplained:
        """Explain why a mention is linked to its concept, or to none."""
        body = ExplainRequest(
            mention=mention,
            context=context,
            start=start,
            end=None if start is None else start + len(mention),
            expected=expected,
        )
        found = await explain(self.service, body)
        candidates = [Candidate(**each) for each in found.candidates]
        named = [
            FoundName(
                id=one.cui, name=cut(one.name), matched=cut(one.alias), score=one.score
            )
            for one in found.filtered[:10]
        ]
        return LinkExplained(
            mention=found.mention,
            linked_text=cut(found.text),
            id=found.cui,
            note=found.note,
            threshold=found.threshold,
            least_probability=found.least_probability,
            truncated=found.truncated,
            candidates=list_found(candidates, 10),
            filtered=named,
            cause=found.expected.cause if found.expected else None,
            expected_rank=found.expected.rank if found.expected else None,
            suggestions=[cut(one) for one in found.suggestions[:10]],
        )


def name_of(kb: KnowledgeBase, cui: str | None) -> str | None:
    """Return the preferred name of a concept, if there is one."""
    concept = kb.concept(cui) if cui else None
    return concept.name if concept else None


def make_card(kb: KnowledgeBase, id: str) -> ConceptCard:
    """Return all about a concept.

    Raises:
        RequestError: If there is none.
    """
    found = describe_concept(kb, id, related=10)
    total = {"children": found["children_total"]}
    total |= {name: len(found[name]) for name in ("names", "parents", "retired")}
    total |= {source: len(codes) for source, codes in found["codes"].items()}
    parents = [NamedId(id=one["cui"], name=one["name"]) for one in found["parents"]]
    children = [NamedId(id=one["cui"], name=one["name"]) for one in found["children"]]

    return ConceptCard(
        id=found["cui"],
        name=cut(found["name"]),
        names=[cut(name) for name in found["names"][:MOST_SHOWN]],
        types=found["types"][:MOST_SHOWN],
        definition=cut(found["definition"] or "", LONGEST_DEFINITION) or None,
        codes={
            source: codes[:MOST_SHOWN]
            for source, codes in [*found["codes"].items()][:MOST_SHOWN]
        },
        parents=parents[:MOST_SHOWN],
        children=children[:MOST_SHOWN],
        similar=[NamedId(id=one["cui"], name=one["name"]) for one in found["related"]],
        retired=found["retired"][:MOST_SHOWN],
        total={name: count for name, count in total.items() if count > MOST_SHOWN},
    )


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
        code=cut(code),
        concepts=[NamedId(id=one.cui, name=one.name) for one in concepts],
        codes=[*dict.fromkeys(codes)][:MOST_SHOWN],
        relation=relation,
    )
