"""What differs between two knowledge bases, e.g. of two releases of a vocabulary."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple, get_args

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
SHOWN = 3  # names in a sentence


class Difference(NamedTuple):
    """One difference of a concept.

    change (str): "added"; "removed"; "retired": the id is now one of another concept;
        "renamed": another preferred name; "moved": other parents; "names", "codes":
        others are added or removed.
    cui (str): Its id.
    old (list[str]), new (list[str]): What is only in the old and only in the new
        knowledge base: preferred names, ids of parents, names or codes; of "retired"
        the preferred name and the id of the other concept.
    name (str): Its preferred name, in the new one if it is there.
    """

    change: Kind
    cui: str
    old: list[str]
    new: list[str]
    name: str


class Pair(NamedTuple):
    """An id, and the preferred name in each knowledge base that has the concept."""

    cui: str
    old: str | None
    new: str | None


def compare_kbs(old: KnowledgeBase, new: KnowledgeBase) -> Iterator[Difference]:
    """Compare two knowledge bases, in bounded memory.

    old (KnowledgeBase), new (KnowledgeBase): With their edits.
    YIELDS (Difference): Sorted by id. Types and definitions are not compared, and the
        order of codes is not.
    """
    pairs = join_concepts(old.store, new.store)
    while page := list(islice(pairs, PAGE)):
        kept = [pair.cui for pair in page if None not in (pair.old, pair.new)]
        gone = [pair.cui for pair in page if pair.new is None]
        current = new.store.current_cuis(gone)
        parents = [store.parents(kept) for store in (old.store, new.store)]
        aliases = [store.aliases(kept) for store in (old.store, new.store)]
        codes = [read_codes(store, kept) for store in (old.store, new.store)]
        for cui, before, after in page:
            if before is None:
                name = str(after)
                yield Difference("added", cui, [], [name], name)
            elif after is None:
                now = [current[cui]] if cui in current else []
                kind: Kind = "retired" if now else "removed"
                yield Difference(kind, cui, [before], now, before)
            else:
                if before != after:
                    yield Difference("renamed", cui, [before], [after], after)
                kinds: list[tuple[Kind, list[dict[str, list[str]]]]]
                kinds = [("moved", parents), ("names", aliases), ("codes", codes)]
                for change, found in kinds:
                    lost, gained = (
                        sorted({*found[a].get(cui, ())} - {*found[b].get(cui, ())})
                        for a, b in ((0, 1), (1, 0))
                    )
                    if lost or gained:
                        yield Difference(change, cui, lost, gained, after)


def read_codes(store: Store, cuis: Iterable[str]) -> dict[str, list[str]]:
    """Return the codes of concepts by id, each as "ICD10CM:R50.9"."""
    return {
        cui: [f"{source}:{code}" for source, own in codes.items() for code in own]
        for cui, codes in store.codes(cuis).items()
    }


def join_concepts(old: Store, new: Store) -> Iterator[Pair]:
    """Yield every concept of two stores, sorted by id."""
    end = ("", "")
    olds, news = old.preferred_names(PAGE), new.preferred_names(PAGE)
    one, two = next(olds, end), next(news, end)
    while one != end or two != end:
        cui = min(filter(None, (one[0], two[0])))
        has_old, has_new = one[0] == cui, two[0] == cui
        yield Pair(cui, one[1] if has_old else None, two[1] if has_new else None)
        one = next(olds, end) if has_old else one
        two = next(news, end) if has_new else two


def describe_difference(difference: Difference) -> str:
    """Return a difference as a sentence."""
    change, cui, old, new, name = difference
    subject = f"{cui} {name}"
    match change:
        case "added":
            return f"{subject} is new"
        case "removed":
            return f"{subject} is gone"
        case "retired":
            return f"{subject} is now {new[0]}"
        case "renamed":
            return f"{cui} {old[0]} is now called {name}"
    parts = [
        f"{what} {', '.join(values[:SHOWN])}"
        + (f" and {len(values) - SHOWN:,} more" if len(values) > SHOWN else "")
        for what, values in (("has lost", old), ("has gained", new))
        if values
    ]
    kind = {"moved": "as parents", "names": "as names", "codes": "as codes"}[change]
    return f"{subject} {' and '.join(parts)} {kind}"


def count_differences(differences: Iterable[Difference]) -> dict[str, int]:
    """Return how many there are of each kind, in the order of `Kind`."""
    counts = dict.fromkeys(get_args(Kind), 0)
    for difference in differences:
        counts[difference.change] += 1
    return counts
