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

OWN = "urn:spacy-sapbert:concepts"  # the ids of the knowledge base itself
PREFIX = "urn:spacy-sapbert:"  # of systems that have no address in FHIR
ALL = "?fhir_vs"  # ending of the address of the value set of a whole code system
SYSTEMS = {normalize_prefix(each.name): each.fhir for each in SOURCES if each.fhir}
PREFIXED = {each.fhir for each in SOURCES if each.fhir_prefixed}
# Languages of UMLS → BCP 47.
LANGUAGES = {"eng": "en", **{umls: code for code, umls in CODES.items()}}


@dataclass(frozen=True)
class CodeSystem:
    """A code system of the knowledge base.

    Attributes:
        url: Its address.
        sources: The vocabularies whose codes it has; empty = the ids of the concepts.
        is_prefixed: Its codes have the prefix of the vocabulary, as in "HP:0001945".
    """

    url: str
    sources: tuple[str, ...] = ()
    is_prefixed: bool = False

    @property
    def name(self) -> str:
        """A name for people."""
        return self.sources[0] if self.sources else "concepts"

    @property
    def prefix(self) -> str:
        """The prefix of its codes, whether they have it or not."""
        return normalize_prefix(self.name)

    def list_spellings(self, code: str) -> tuple[str, ...]:
        """Return a code, and the same without the prefix of its vocabulary or with it.

        A knowledge base has either: an ontology gives it codes without the prefix, and
        UMLS those of HPO with it.
        """
        prefix, _, local = code.partition(":")
        bare = local if local and normalize_prefix(prefix) == self.prefix else code
        return (*dict.fromkeys((code, bare, f"{self.prefix}:{bare}")),)

    def show(self, code: str) -> str:
        """Return a code of the knowledge base as FHIR has it."""
        if self.is_prefixed and ":" not in code:
            return f"{self.prefix}:{code}"
        return code


# A knowledge base does not change, and to count all codes takes long.
COUNTED: "WeakKeyDictionary[KnowledgeBase, dict[CodeSystem, int]]" = WeakKeyDictionary()


def count_codes(kb: KnowledgeBase, system: CodeSystem) -> int:
    """Return the number of codes of a code system."""
    counts = COUNTED.setdefault(kb, {})
    if system not in counts:
        counts[system] = kb.store.count_codes(system.sources)
    return counts[system]


def list_systems(kb: KnowledgeBase) -> list[CodeSystem]:
    """Return the code systems of the knowledge base, its own ids first."""
    sources: dict[str, dict[str, None]] = {}
    for source in (*kb.store.sources_of_codes, *kb.store.sources_of_related_codes):
        sources.setdefault(normalize_prefix(source), {})[source] = None
    systems = [CodeSystem(OWN)]
    for prefix, (first, *others) in sources.items():
        url = SYSTEMS.get(prefix, f"{PREFIX}{first}")
        systems.append(CodeSystem(url, (first, *others), url in PREFIXED))
    return systems


def find_system(kb: KnowledgeBase, url: str) -> CodeSystem | None:
    """Return the code system with an address, or of the value set with it.

    An address may have any name that the vocabulary has in the knowledge base.

    Args:
        url: A version after `|` is not read: the knowledge base does not have the
            versions of its vocabularies.
    """
    address = url.partition("|")[0].removesuffix(ALL)
    for system in list_systems(kb):
        if address in (system.url, *(f"{PREFIX}{name}" for name in system.sources)):
            return system
    return None


def find_concepts(kb: KnowledgeBase, system: CodeSystem, code: str) -> list[Concept]:
    """Return the concepts of a code: for most codes one.

    The code may have the prefix of its vocabulary or not.
    """
    cuis = [code]
    if system.sources:
        rows = kb.store.find_codes(system.sources, system.list_spellings(code))
        cuis = [cui for cui, *_ in rows]
    concepts = map(kb.concept, dict.fromkeys(cuis))
    return [concept for concept in concepts if concept is not None]


def codes_of(concept: Concept, system: CodeSystem) -> list[str]:
    """Return the codes of a concept in a code system."""
    if not system.sources:
        return [concept.cui]
    codes = (concept.codes.get(source, []) for source in system.sources)
    return [*dict.fromkeys(map(system.show, chain.from_iterable(codes)))]


def codes_of_cuis(
    kb: KnowledgeBase, cuis: Iterable[str], system: CodeSystem
) -> list[str]:
    """Return the codes of several concepts, sorted; of unknown ids none."""
    concepts = (concept for concept in map(kb.concept, cuis) if concept)
    codes = (codes_of(concept, system) for concept in concepts)
    return sorted({*chain.from_iterable(codes)})


def list_designations(concept: Concept) -> Iterator[tuple[str, str | None]]:
    """Yield the names of a concept, each with its language as BCP 47 has it."""
    tags: dict[int, str] = {}
    for language, places in concept.languages.items():
        tag = LANGUAGES.get(language.lower(), language.lower())
        if tag.isalpha() and tag.isascii() and 2 <= len(tag) <= 3:
            tags = dict.fromkeys(places, tag) | tags
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
    own = {place for name in system.sources for place in concept.sources.get(name, ())}
    wanted = language and language.partition("-")[0].lower()
    names = [
        (bool(wanted) and tag != wanted, bool(own) and place not in own, place, name)
        for place, (name, tag) in enumerate(list_designations(concept))
    ]
    return min(names)[-1]


def is_synonym(concept: Concept, first: CodeSystem, second: CodeSystem) -> bool:
    """Return whether two code systems both give names to a concept.

    Then their vocabularies say that the codes mean the same, as in UMLS; else one is
    only a cross reference. The ids of the concepts mean what their concept means.
    """
    return all(
        not system.sources or any(name in concept.sources for name in system.sources)
        for system in (first, second)
    )
