"""How far reviewers agree, and where they do not."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...kb.knowledge_base import KnowledgeBase
from .queue import Place, show_place
from .store import NO_MENTION, Decision, ReviewStore

DIGITS = 4
MOST_DIFFERENCES = 10_000
Spot = tuple[str, int, int]  # id of a document, start and end


@dataclass(frozen=True)
class Agreement:
    """How far two reviewers agree.

    Attributes:
        mentions: Number that both have decided, of which they `agree` on some.
        kappa: See `compute_kappa`.
        f1: Of mentions with their concepts, in documents on which both decided; a
            mention that one does not have counts against it. None without mentions.
    """

    reviewers: tuple[str, str]
    mentions: int
    agree: int
    kappa: float | None
    f1: float | None


@dataclass(frozen=True)
class Difference:
    """A place where reviewers differ.

    Attributes:
        choices: What each chose, None = nothing, though the reviewer decided on another
            mention there or has done the document.
        agreed: What was agreed on since then.
    """

    place: Place
    choices: dict[str, str | None]
    agreed: str | None


@dataclass(frozen=True)
class Differences:
    """The first places where reviewers differ, their number, and names of concepts."""

    total: int
    open: int
    places: list[Difference]
    names: dict[str, str]


def compute_kappa(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Compute Cohen's kappa of two reviewers.

    Args:
        one, other: What each chose, mention by mention.

    Returns:
        1 = they agree always, 0 = as often as by chance; None without mentions, and if
        both always chose the same one concept.

    Source: Cohen (1960), A coefficient of agreement for nominal scales.
    """
    total = len(one)
    if not total:
        return None
    same = sum(a == b for a, b in zip(one, other, strict=True)) / total
    counts, others = Counter(one), Counter(other)
    chance = sum(counts[name] * others[name] for name in counts) / total**2
    return None if chance == 1 else (same - chance) / (1 - chance)


def compute_f1(one: Mapping[Spot, str], other: Mapping[Spot, str]) -> float | None:
    """Compute F1 of mentions and concepts, in the documents on which both decided."""
    common = {place[0] for place in one} & {place[0] for place in other}
    ours, theirs = (
        {
            (place, chosen)
            for place, chosen in choices.items()
            if place[0] in common and chosen != NO_MENTION
        }
        for choices in (one, other)
    )
    total = len(ours) + len(theirs)
    return 2 * len(ours & theirs) / total if total else None


def compare_reviewers(decisions: Iterable[Decision]) -> list[Agreement]:
    """Compare each two reviewers who have decided on a mention that is the same.

    Args:
        decisions: Those that count; see `ReviewStore.latest`.
    """
    chosen: dict[str, dict[Spot, str]] = {}
    for one in decisions:
        if not one.settles:
            place = (one.document, one.start, one.end)
            chosen.setdefault(one.reviewer, {})[place] = one.chosen or ""
    pairs = []
    for first, second in combinations(sorted(chosen), 2):
        places = sorted(chosen[first].keys() & chosen[second].keys())
        ours = [chosen[first][place] for place in places]
        theirs = [chosen[second][place] for place in places]
        kappa = compute_kappa(ours, theirs)
        f1 = compute_f1(chosen[first], chosen[second])
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        if places or f1 is not None:
            rounded = [None if x is None else round(x, DIGITS) for x in (kappa, f1)]
            pairs.append(Agreement((first, second), len(places), same, *rounded))
    return pairs


def choose_at(
    own: Sequence[Decision], spot: Spot, done: bool
) -> tuple[bool, str | None]:
    """Return whether a reviewer has said something about a place, and what.

    Args:
        own: The decisions of the reviewer on the document.
        done: Whether the reviewer has done the document.
    """
    _, start, end = spot
    for one in own:
        if (one.start, one.end) == (start, end):
            return True, None if one.chosen == NO_MENTION else one.chosen
    return done or any(one.start < end and start < one.end for one in own), None


def find_differences(store: ReviewStore, kb: KnowledgeBase) -> Differences:
    """Find where reviewers differ, those that are not settled first."""
    done = store.done()
    by_document: dict[str, dict[str, list[Decision]]] = {}
    settled: dict[Spot, str | None] = {}
    for one in store.latest():
        if one.settles:
            settled[one.document, one.start, one.end] = one.chosen
            continue
        of_document = by_document.setdefault(one.document, {})
        of_document.setdefault(one.reviewer, []).append(one)
    found: list[Difference] = []
    for id, of_reviewers in by_document.items():
        document = store.document(id)
        if len(of_reviewers) < 2 or document is None:
            continue
        spans = {
            (one.start, one.end, one.label)
            for own in of_reviewers.values()
            for one in own
        }
        seen: set[tuple[int, int]] = set()
        for start, end, label in sorted(spans):
            if (start, end) in seen:
                continue
            seen.add((start, end))
            choices = {}
            for name, own in sorted(of_reviewers.items()):
                said, chosen = choose_at(
                    own, (id, start, end), name in done.get(id, ())
                )
                if said:
                    choices[name] = chosen
            if len({*choices.values()}) > 1:
                place = show_place(document, start, end, label)
                found.append(Difference(place, choices, settled.get((id, start, end))))
    found.sort(key=lambda one: one.agreed is not None)
    first = found[:MOST_DIFFERENCES]
    ids = {id for one in first for id in (*one.choices.values(), one.agreed) if id}
    open_ones = sum(one.agreed is None for one in found)
    return Differences(len(found), open_ones, first, kb.store.names_of_cuis(ids))
