"""What differs between two knowledge bases, e.g. of two releases of a vocabulary."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Literal, NamedTuple

from ..knowledge_base import KnowledgeBase
from ..store import Store

PAGE = 5_000  # concepts read at once
Kind = Literal["added", "removed", "retired", "renamed", "moved", "names", "codes"]
MEANINGS: dict[Kind, str] = {
    "added": "new concepts",
    "removed": "concepts that are gone",
    "retired": "ids that are now those of another concept",
    "renamed": "concepts with another preferred name",
    "moved": "concepts with other parents",
    "names": "concepts with more or fewer names",
    "codes": "concepts with other codes of a vocabulary",
}
SHOWN = 3  # names in a line


class Difference(NamedTuple):
    """One difference of a concept."""

    change: Kind
    cui: str
    old: list[str]  # what only the old one has: names, ids of parents or codes
    new: list[str]  # what only the new one has; of "retired" the other id
    name: str  # the preferred one, in the new if it is there


def compare_kbs(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    """Yield the differences of two knowledge bases by id, in bounded memory.

    Types, definitions and the order of codes are not compared.
    """
    pairs = join_concepts(old.store, new.store)
    stores = (old.store, new.store)
    while page := list(islice(pairs, PAGE)):
        kept = [cui for cui, before, after in page if before and after]
        gone = [cui for cui, _, after in page if not after]
        current = new.store.current_cuis(gone)
        lists: dict[Kind, list[dict[str, list[str]]]] = {
            "moved": [store.parents(kept) for store in stores],
            "names": [store.aliases(kept) for store in stores],
            "codes": [read_codes(store, kept) for store in stores],
        }
        for cui, before, after in page:
            if not before:
                yield Difference("added", cui, [], [after], after)
            elif not after:
                now = [current[cui]] if cui in current else []
                kind: Kind = "retired" if now else "removed"
                yield Difference(kind, cui, [before], now, before)
            else:
                if before != after:
                    yield Difference("renamed", cui, [before], [after], after)
                for change, by_cui in lists.items():
                    had, has = ({*values.get(cui, ())} for values in by_cui)
                    if had != has:
                        lost, gained = sorted(had - has), sorted(has - had)
                        yield Difference(change, cui, lost, gained, after)


def read_codes(store: Store, cuis: Iterable[str]) -> dict[str, list[str]]:
    """Return the codes of concepts by id, each as "ICD10CM:R50.9"."""
    return {
        cui: [f"{source}:{code}" for source in by_source for code in by_source[source]]
        for cui, by_source in store.codes(cuis).items()
    }


def join_concepts(old: Store, new: Store) -> Iterator[tuple[str, str, str]]:
    """Yield every id, sorted, and its preferred name in each store; "" = none."""
    names = heapq.merge(
        ((cui, 0, name) for cui, name in old.preferred_names(PAGE)),
        ((cui, 1, name) for cui, name in new.preferred_names(PAGE)),
    )
    for cui, same in groupby(names, key=itemgetter(0)):
        by_side = {side: name for _, side, name in same}
        yield cui, by_side.get(0, ""), by_side.get(1, "")


def describe_difference(difference: Difference) -> str:
    """Return a difference as a line: "names C1 Fever: -febrile +pyrexia, hot"."""
    change, cui, old, new, name = difference
    lists = []
    for sign, values in (("-", old), ("+", new)):
        more = f" and {len(values) - SHOWN:,} more" if len(values) > SHOWN else ""
        if values:
            lists.append(f"{sign}{', '.join(values[:SHOWN])}{more}")
    return f"{change} {cui} {name}: {' '.join(lists)}"


def count_differences(differences: Iterable[Difference]) -> dict[str, int]:
    counts = Counter(difference.change for difference in differences)
    return {kind: counts[kind] for kind in MEANINGS}
