"""The concepts of a knowledge base as a vocabulary, with the names added to it."""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby

from ...vocabularies.concepts import Concept
from ..knowledge_base import KnowledgeBase
from .change import Edits, read_edits

PAGE = 5_000  # ids read at once
COLUMNS = ("id", "name", "language", "sources", "type", "codes", "definition", "local")


def iter_concepts(kb: KnowledgeBase) -> Iterator[Concept]:
    """Yield the concepts by id, with the names that `kb add` added.

    Annotated mentions are left out, since they are texts of documents.

    Examples:
        >>> next(iter_concepts(kb)).name
        'Acne'
    """
    edits, base = read_edits(kb), kb.base_store()
    vocabulary = Edits(edits.added, edits.removed)
    built = (cui for cui, _ in base.preferred_names(PAGE))
    for cui, _ in groupby(merge(built, sorted(edits.added))):
        known = base.concept(cui)
        known = known if known is not None and known.cui == cui else None
        if concept := vocabulary.apply(known, cui):
            yield concept


def iter_local_concepts(kb: KnowledgeBase) -> Iterator[Concept]:
    """Yield only what `kb add` added, as it can be added to another one, by id."""
    added = read_edits(kb).added
    yield from (added[cui] for cui in sorted(added))


def iter_names(kb: KnowledgeBase, concepts: Iterable[Concept]) -> Iterator[list[str]]:
    """Yield the cells of `COLUMNS` for each name of concepts, the preferred one first.

    `local` has "yes" for names that were added since the knowledge base was built.
    """
    base = kb.base_store()
    for concept in concepts:
        known = base.concept(concept.cui)
        built = set() if known is None else {*known.aliases}
        types = "|".join(concept.types)
        codes = "|".join(
            f"{source}:{code}"
            for source, of_source in concept.codes.items()
            for code in of_source
        )
        for place, name in enumerate(concept.aliases):
            languages, sources = (
                "|".join(key for key, places in lists.items() if place in places)
                for lists in (concept.languages, concept.sources)
            )
            local = "" if name in built else "yes"
            definition = concept.definition or ""
            row = [concept.cui, name, languages, sources, types, codes, definition]
            yield [*row, local]
