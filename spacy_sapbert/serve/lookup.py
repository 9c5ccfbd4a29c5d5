"""Concepts and names of a knowledge base, as the protocols and the page show them."""

from collections.abc import Iterable, Sequence
from typing import Literal

import regex
from typing_extensions import TypedDict

from ..formats.page.addresses import concept_url
from ..kb.database import is_encodable
from ..kb.ids import read_term
from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import Candidate
from ..linking.text import clean_text, fold_letters, name_form
from ..vocabularies.concepts import Concept
from .problems import RequestError

MOST_CHILDREN = 200  # that are listed
MOST_WORDS = 20  # of a search
LONGEST_PATH = 50  # of a hierarchy, which may have cycles
# The last word of a search, but for a possessive
UNFINISHED = regex.compile(r"(?<![\p{L}\p{M}])(?!(?<=')s$)\p{L}[\p{L}\p{M}]*$")


class ConceptName(TypedDict):
    """A concept and its preferred name; None = it is not in the knowledge base."""

    cui: str
    name: str | None


class NearConcept(TypedDict):
    """A concept with similar names; see `KnowledgeBase.related`."""

    cui: str
    name: str
    score: float
    relation: str | None


class ConceptAnswer(TypedDict):
    """All about a concept.

    Attributes:
        children_total: Their number, of which `children` may have only the first.
        path: From the top of the hierarchy to the concept, by first parents.
    """

    cui: str
    name: str
    names: list[str]
    types: list[str]
    definition: str | None
    codes: dict[str, list[str]]
    parents: list[ConceptName]
    children: list[ConceptName]
    children_total: int
    related: list[NearConcept]
    retired: list[str]
    path: list[ConceptName]
    languages: list[str]
    sources: list[str]
    url: str | None


class FoundConcept(TypedDict):
    """A concept that a search found, and the name that it has in common."""

    cui: str
    name: str
    alias: str
    score: float | None
    types: list[str]


class SearchedConcept(FoundConcept):
    """A concept that a search found.

    Attributes:
        match: "exact" = the text is its id, a code or a name; "words" = a name has the
            words, of which the last one may be unfinished; "near" = a name is similar.
    """

    match: Literal["exact", "words", "near"]


def find_concept(kb: KnowledgeBase, cui: str) -> Concept:
    """Return the concept with an id or retired id."""
    concept = kb.concept(cui)
    if concept is None:
        raise RequestError(
            "E463",
            "Expected an id of the knowledge base, but got another. Search for the "
            "concept by its name.",
            404,
        )
    return concept


def name_chosen(kb: KnowledgeBase, ids: Iterable[str | None]) -> list[FoundConcept]:
    """Return what is shown of chosen concepts, by the ids that were chosen.

    An id may be retired; what is no id of the knowledge base is left out.
    """
    chosen = sorted({id for id in ids if id})
    names, types = kb.store.names_of_cuis(chosen), kb.store.types(chosen)
    found = []
    for id in chosen:
        name, of = names.get(id), types.get(id, [])
        if name is None and (concept := kb.concept(id)):  # retired
            name, of = concept.name, concept.types
        if name is not None:
            one = FoundConcept(cui=id, name=name, alias=name, score=None, types=of)
            found.append(one)
    return found


def name_concepts(kb: KnowledgeBase, cuis: Iterable[str]) -> list[ConceptName]:
    """Return ids with their names, by name."""
    cuis = [*cuis]
    names = kb.store.names_of_cuis(cuis)
    found: list[ConceptName] = [{"cui": cui, "name": names.get(cui)} for cui in cuis]
    return sorted(found, key=lambda one: ((one["name"] or "").casefold(), one["cui"]))


def describe_concept(kb: KnowledgeBase, cui: str, *, related: int) -> ConceptAnswer:
    """Return all about a concept.

    Args:
        related: Number of concepts with similar names.
    """
    concept = find_concept(kb, cui)
    children = kb.children(concept.cui)
    near = kb.related(concept.cui, related) if related else []
    return {
        "cui": concept.cui,
        "name": concept.name,
        "names": concept.aliases,
        "types": concept.types,
        "definition": concept.definition,
        "codes": concept.codes,
        "parents": name_concepts(kb, concept.parents),
        "children": name_concepts(kb, children[:MOST_CHILDREN]),
        "children_total": len(children),
        "related": [
            NearConcept(
                cui=one.cui, name=one.name, score=one.score, relation=one.relation
            )
            for one in near
        ],
        "retired": concept.retired,
        "path": find_path(kb, concept),
        "languages": sorted(concept.languages),
        "sources": sorted(concept.sources),
        "url": concept_url(concept.cui),
    }


def find_path(kb: KnowledgeBase, concept: Concept) -> list[ConceptName]:
    """Return a way from the top of the hierarchy to a concept."""
    path = [concept.cui]
    while parents := kb.store.parents([path[0]]).get(path[0]):
        above = next((cui for cui in parents if cui not in path), None)
        if above is None or len(path) == LONGEST_PATH:
            break
        path.insert(0, above)
    names = kb.store.names_of_cuis(path)
    return [{"cui": cui, "name": names.get(cui)} for cui in path]


def list_roots(kb: KnowledgeBase) -> list[ConceptName]:
    """Return concepts with children and without parents, by name."""
    rows = kb.store.roots(MOST_CHILDREN)
    return [{"cui": cui, "name": name} for cui, name in rows]


def find_names(
    kb: KnowledgeBase, text: str, k: int, types: Sequence[str] = ()
) -> list[FoundConcept]:
    """Find concepts with a name that begins with a text, then with its words inside.

    The last letters may be the beginning of a word: "vi" finds "Vitamin D deficiency",
    and then "VI nerve palsy", as the number 6.

    Args:
        types: Allowed semantic types; empty = all.
    """
    text = clean_text(text)
    if not is_encodable(text):
        return []
    before, last = split_last_word(text)
    readings = [(name_form(text).split(), not last)]
    if last:
        readings.insert(0, ([*name_form(before).split(), fold_letters(last)], True))
    rows: list[tuple[str, str, str]] = []
    for at_start in (True, False):
        for words, unfinished in readings:
            if words and len(rows) < k:
                rows += kb.store.names_with(
                    words[:MOST_WORDS],
                    k,
                    at_start=at_start,
                    unfinished=unfinished,
                    types=types,
                )
    return show_names(kb, rows, k)


def is_being_typed(text: str, found: Sequence[FoundConcept]) -> bool:
    """Return whether no name that `find_names` found has the last word whole."""
    _, last = split_last_word(clean_text(text))
    if not last or not found:
        return False
    word = name_form(last)
    return all(word not in name_form(one["alias"]).split() for one in found)


def split_last_word(text: str) -> tuple[str, str]:
    """Return a search without its last word, and this word, which may be unfinished."""
    last = UNFINISHED.search(text)
    return (text[: last.start()], last.group()) if last else (text, "")


def show_names(
    kb: KnowledgeBase, rows: Iterable[tuple[str, str, str]], k: int
) -> list[FoundConcept]:
    """Return the first concepts of rows (id, preferred and found name), each once."""
    first: dict[str, tuple[str, str]] = {}
    for cui, name, alias in rows:
        first.setdefault(cui, (name, alias))
    cuis = [*first][:k]
    types = kb.store.types(cuis)
    return [
        FoundConcept(
            cui=cui,
            name=first[cui][0],
            alias=first[cui][1],
            score=None,
            types=types.get(cui, []),
        )
        for cui in cuis
    ]


def describe_codes(kb: KnowledgeBase, text: str, k: int) -> list[FoundConcept]:
    """Return the concepts whose id or code a text is, as a search shows them."""
    found = read_term(kb.store, text, is_search=True)
    names = kb.store.names_of_cuis(found.cuis)
    pairs = zip(found.cuis, found.names, strict=True)
    rows = [(cui, names.get(cui, cui), named) for cui, named in pairs]
    return show_names(kb, rows, k)


def merge_found(
    text: str,
    coded: Iterable[FoundConcept],
    named: Iterable[FoundConcept],
    candidates: Iterable[Candidate],
    k: int,
) -> list[SearchedConcept]:
    """Return concepts found by a code, by words of a name, then the nearest ones.

    Args:
        candidates: Of the text; they give the scores.
    """
    form = name_form(text)
    found: dict[str, SearchedConcept] = {}
    for one in coded:
        found.setdefault(one["cui"], {**one, "match": "exact"})
    ids = {*found}
    for one in named:
        exact = name_form(one["alias"]) == form
        match: Literal["exact", "words"] = "exact" if exact else "words"
        found.setdefault(one["cui"], {**one, "match": match})
    for near in candidates:
        if near["cui"] in found:
            found[near["cui"]]["score"] = near["score"]
        else:
            found[near["cui"]] = {
                "cui": near["cui"],
                "name": near["name"],
                "alias": near["alias"],
                "score": near["score"],
                "types": near["types"],
                "match": "exact" if name_form(near["alias"]) == form else "near",
            }

    def order(one: FoundConcept) -> tuple[bool, bool]:
        return one["cui"] not in ids, one["score"] != 1.0

    return sorted(found.values(), key=order)[:k]
