"""What differs between two knowledge bases, e.g. of two releases of a vocabulary."""

from collections.abc import Iterator
from itertools import islice

from ...vocabularies.compare import Difference, compare_concepts
from ...vocabularies.concepts import Concept
from ..knowledge_base import KnowledgeBase
from ..store import Store

PAGE = 5_000  # concepts read at once


def compare_kbs(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    """Yield the differences of two knowledge bases by id, in bounded memory."""

    def find_current(cui: str) -> str | None:
        return new.store.current_cuis([cui]).get(cui)

    return compare_concepts(
        read_compared(old.store), read_compared(new.store), find_current
    )


def read_compared(store: Store) -> Iterator[Concept]:
    """Yield concepts sorted by id, with names, codes and parents only."""
    names = store.preferred_names(PAGE)
    while page := dict(islice(names, PAGE)):
        aliases, codes = store.aliases(page), store.codes(page)
        parents = store.parents(page)
        for cui, name in page.items():
            yield Concept(
                cui,
                list(dict.fromkeys([name, *aliases.get(cui, ())])),
                codes=codes.get(cui, {}),
                parents=parents.get(cui, []),
            )
