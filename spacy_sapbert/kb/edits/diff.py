"""What differs between two knowledge bases, e.g. of two releases of a vocabulary."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple, get_args

from ..knowledge_base import KnowledgeBase
from ..store import Store

PAGE = 5_000  # concepts read at once
Kind = Literal["added", "removed", "retired", "renamed", "moved", "names"]


class Difference(NamedTuple):
    """One difference of a concept.

    change (str): "added"; "removed"; "retired": the id is now one of another concept;
        "renamed": another preferred name; "moved": other parents; "names": others are
        added or removed.
    cui (str): Its id.
    old (list[str]), new (list[str]): What is only in the old and only in the new
        knowledge base: preferred names, ids of parents or names; of "retired" the
        preferred name and the id of the other concept.
    """

    change: Kind
    cui: str
    old: list[str]
    new: list[str]


class Pair(NamedTuple):
    """An id, and the preferred name in each knowledge base that has the concept."""

    cui: str
    old: str | None
    new: str | None


def compare_kbs(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    """Compare two knowledge bases, in bounded memory.

    old (KnowledgeBase), new (KnowledgeBase): With their edits.
    YIELDS (Difference): Sorted by id. Codes, types and definitions are not compared.
    """
    pairs = join_concepts(old.store, new.store)
    while page := list(islice(pairs, PAGE)):
        kept = [pair.cui for pair in page if None not in (pair.old, pair.new)]
        gone = [pair.cui for pair in page if pair.new is None]
        current = new.store.current_cuis(gone)
        parents = [store.parents(kept) for store in (old.store, new.store)]
        aliases = [read_aliases(store, kept) for store in (old.store, new.store)]
        for cui, before, after in page:
            if before is None:
                yield Difference("added", cui, [], [str(after)])
            elif after is None:
                now = [current[cui]] if cui in current else []
                yield Difference("retired" if now else "removed", cui, [before], now)
            else:
                if before != after:
                    yield Difference("renamed", cui, [before], [after])
                kinds: list[tuple[Kind, list[dict[str, list[str]]]]]
                kinds = [("moved", parents), ("names", aliases)]
                for change, found in kinds:
                    lost, gained = (
                        sorted({*found[a].get(cui, ())} - {*found[b].get(cui, ())})
                        for a, b in ((0, 1), (1, 0))
                    )
                    if lost or gained:
                        yield Difference(change, cui, lost, gained)


def iter_names(store: Store) -> Iterator[tuple[str, str]]:
    """Yield id and preferred name of every concept, sorted by id."""
    sql = "SELECT cui, name FROM concepts WHERE cui > ? ORDER BY cui LIMIT ?"
    last = ""
    while page := store.query(sql, [last, PAGE], columns="tt"):
        yield from page
        last = page[-1][0]


def read_aliases(store: Store, cuis: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of concepts by id."""
    sql = "SELECT cui, alias FROM aliases JOIN concepts ON id = concept "
    return store.lists(f"{sql} WHERE cui IN ({{}})", cuis)


def join_concepts(old: Store, new: Store) -> Iterator[Pair]:
    """Yield every concept of two stores, sorted by id."""
    end = ("", "")
    olds, news = iter_names(old), iter_names(new)
    one, two = next(olds, end), next(news, end)
    while one != end or two != end:
        cui = min(filter(None, (one[0], two[0])))
        has_old, has_new = one[0] == cui, two[0] == cui
        yield Pair(cui, one[1] if has_old else None, two[1] if has_new else None)
        one = next(olds, end) if has_old else one
        two = next(news, end) if has_new else two


def count_differences(differences: Iterable[Difference]) -> dict[str, int]:
    """Return how many there are of each kind, in the order of `Kind`."""
    counts = dict.fromkeys(get_args(Kind), 0)
    for difference in differences:
        counts[difference.change] += 1
    return counts
