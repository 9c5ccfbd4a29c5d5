"""Codes of the code systems of a knowledge base, as FHIR sees them.

A code system has the codes of one vocabulary, or the ids of the concepts; its value set
has all its codes; its hierarchy is that of the concepts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

from ...kb.knowledge_base import KnowledgeBase
from ...linking.languages import CODES
from ...linking.sources import SOURCES, normalize_prefix
from ...vocabularies.concepts import Concept
from .fhir_parameters import FhirError

OWN = "urn:spacy-sapbert:concepts"  # the ids of the knowledge base itself
PREFIX = "urn:spacy-sapbert:"  # of systems that have no address in FHIR
ALL = "?fhir_vs"  # ending of the address of the value set of a whole code system
SYSTEMS = {normalize_prefix(each.name): each.fhir for each in SOURCES if each.fhir}
# Languages of UMLS → BCP 47.
LANGUAGES = {"eng": "en", **{umls: code for code, umls in CODES.items()}}


@dataclass(frozen=True)
class CodeSystem:
    """A code system of the knowledge base.

    Attributes:
        url: Its address.
        sources: The vocabularies whose codes it has; empty = the ids of the concepts.
    """

    url: str
    sources: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name for people."""
        return self.sources[0] if self.sources else "concepts"

    @property
    def value_set(self) -> str:
        """The address of the value set with all its codes."""
        return f"{self.url}{ALL}"


def make_not_found() -> FhirError:
    """Return the error for a code or a code system that there is not."""
    return FhirError(
        "E480",
        "Expected a code and a code system of the knowledge base, but got others. "
        "/fhir/metadata?mode=terminology lists the code systems.",
        404,
        "not-found",
    )


def address_of(source: str) -> str:
    """Return the address of the code system of a vocabulary."""
    return SYSTEMS.get(normalize_prefix(source), f"{PREFIX}{source}")


# A knowledge base does not change, and to count or list all codes takes long.
LISTED: "WeakKeyDictionary[KnowledgeBase, list[CodeSystem]]" = WeakKeyDictionary()
COUNTED: "WeakKeyDictionary[KnowledgeBase, dict[CodeSystem, int]]" = WeakKeyDictionary()


def list_systems(kb: KnowledgeBase) -> list[CodeSystem]:
    """Return the code systems of the knowledge base, its own ids first."""
    if kb not in LISTED:
        LISTED[kb] = make_systems(kb)
    return LISTED[kb]


def count_codes(kb: KnowledgeBase, system: CodeSystem) -> int:
    """Return the number of codes of a code system."""
    counts = COUNTED.setdefault(kb, {})
    if system not in counts:
        counts[system] = kb.store.count_codes(system.sources)
    return counts[system]


def make_systems(kb: KnowledgeBase) -> list[CodeSystem]:
    """Return what `list_systems` remembers."""
    sources: dict[str, list[str]] = {}
    store = kb.store
    for source in (*store.sources_of_codes, *store.sources_of_related_codes):
        sources.setdefault(address_of(source), []).append(source)
    named = [CodeSystem(url, (*dict.fromkeys(s),)) for url, s in sources.items()]
    return [CodeSystem(OWN), *named]


def find_system(kb: KnowledgeBase, url: str | None) -> CodeSystem | None:
    """Return the code system with an address; None if there is none.

    Args:
        url: A version after `|` is not read: the knowledge base does not have the
            versions of its vocabularies.
    """
    address = (url or "").partition("|")[0]
    return next((one for one in list_systems(kb) if one.url == address), None)


def find_set(kb: KnowledgeBase, url: str | None) -> CodeSystem | None:
    """Return the code system whose value set has an address, or which has it itself."""
    address = (url or "").partition("|")[0]
    return find_system(kb, address.removesuffix(ALL))


def need(system: CodeSystem | None) -> CodeSystem:
    """Return a code system.

    Raises:
        FhirError: If there is none.
    """
    if system is None:
        raise make_not_found()
    return system


def find_concepts(kb: KnowledgeBase, system: CodeSystem, code: str) -> list[Concept]:
    """Return the concepts of a code: for most codes one."""
    if not system.sources:
        own = kb.concept(code)
        return [own] if own else []
    concepts = map(kb.concept, kb.store.cuis_with_code(system.sources, code))
    return [concept for concept in concepts if concept is not None]


def need_concepts(kb: KnowledgeBase, system: CodeSystem, code: str) -> list[Concept]:
    """Return the concepts of a code, at least one.

    Raises:
        FhirError: If there is none.
    """
    concepts = find_concepts(kb, system, code)
    if not concepts:
        raise make_not_found()
    return concepts


def codes_of(concept: Concept, system: CodeSystem) -> list[str]:
    """Return the codes of a concept in a code system."""
    if not system.sources:
        return [concept.cui]
    codes = (concept.codes.get(source, []) for source in system.sources)
    return [*dict.fromkeys(chain.from_iterable(codes))]


def find_related(
    kb: KnowledgeBase, system: CodeSystem, code: str
) -> list[tuple[Concept, str]]:
    """Return the concepts of which a code is a related one, and its relation."""
    rows = kb.store.find_related_codes(system.sources, code) if system.sources else []
    found = ((kb.concept(cui), relation) for cui, relation in rows)
    return [(concept, relation) for concept, relation in found if concept is not None]


def codes_of_cuis(
    kb: KnowledgeBase, cuis: Iterable[str], system: CodeSystem
) -> list[str]:
    """Return the codes of several concepts, sorted; of ids without a concept none."""
    concepts = (kb.concept(cui) for cui in cuis)
    codes = (codes_of(concept, system) for concept in concepts if concept)
    return sorted({*chain.from_iterable(codes)})


def language_tag(language: str) -> str | None:
    """Return a language of names as BCP 47 has it: "ENG" → "en"; None = unknown."""
    tag = language.lower()
    tag = LANGUAGES.get(tag, tag)
    return tag if tag.isalpha() and tag.isascii() and 2 <= len(tag) <= 3 else None


def list_designations(concept: Concept) -> Iterator[tuple[str, str | None]]:
    """Yield the names of a concept, each with its language."""
    tags: dict[int, str | None] = {}
    for language, places in concept.languages.items():
        for place in places:
            tags.setdefault(place, language_tag(language))
    for place, alias in enumerate(concept.aliases):
        yield alias, tags.get(place)


def choose_display(
    concept: Concept, system: CodeSystem, language: str | None = None
) -> str:
    """Return the name of a concept that is shown.

    Names of the vocabulary itself come before others, each in the order of the concept.

    Args:
        language: Of the name, e.g. "es" or "es-ES", if there is one.
    """
    places = {
        place for source in system.sources for place in concept.sources.get(source, ())
    }
    wanted = (language or "").partition("-")[0].lower()

    def sort_key(named: tuple[int, tuple[str, str | None]]) -> tuple[bool, bool, int]:
        place, (_, tag) = named
        return (
            bool(wanted) and tag != wanted,
            bool(places) and place not in places,
            place,
        )

    return min(enumerate(list_designations(concept)), key=sort_key)[1][0]


def is_name(kb: KnowledgeBase, concepts: Iterable[Concept], text: str) -> bool:
    """Return whether a text is a way to write a name of a concept of a code."""
    return any(kb.searcher.names.is_name(text, one.cui) for one in concepts)


def is_synonym(concept: Concept, first: CodeSystem, second: CodeSystem) -> bool:
    """Return whether two code systems both give names to a concept.

    Then their vocabularies say that the codes mean the same, as in UMLS; else one is
    only a cross reference. The ids of the concepts mean what their concept means.
    """
    return all(
        not system.sources or any(name in concept.sources for name in system.sources)
        for system in (first, second)
    )
