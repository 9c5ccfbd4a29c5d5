"""How far reviewers agree."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from .store import Decision

DIGITS = 4


@dataclass(frozen=True)
class Agreement:
    """How far two reviewers agree.

    Attributes:
        mentions: Number that both have decided, of which they `agree` on some.
        kappa: See `compute_kappa`.
    """

    reviewers: tuple[str, str]
    mentions: int
    agree: int
    kappa: float | None


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


def compare_reviewers(decisions: Iterable[Decision]) -> list[Agreement]:
    """Compare each two reviewers on the mentions that both have decided.

    Args:
        decisions: Those that count; see `ReviewStore.latest`.
    """
    chosen: dict[str, dict[tuple[str, int, int], str]] = {}
    for one in decisions:
        place = (one.document, one.start, one.end)
        chosen.setdefault(one.reviewer, {})[place] = one.chosen or ""
    pairs = []
    for first, second in combinations(sorted(chosen), 2):
        places = sorted(chosen[first].keys() & chosen[second].keys())
        ours = [chosen[first][place] for place in places]
        theirs = [chosen[second][place] for place in places]
        kappa = compute_kappa(ours, theirs)
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        rounded = None if kappa is None else round(kappa, DIGITS)
        pairs.append(Agreement((first, second), len(places), same, rounded))
    return pairs
