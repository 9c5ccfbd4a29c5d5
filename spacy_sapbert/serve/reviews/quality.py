"""How the knowledge base in use answers the mentions that reviewers agree on."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress
from typing import NamedTuple

import numpy as np

from ...evaluation.calibration import BINS, calibration_error
from ...evaluation.diagnose import CAUSES, find_cause, info_finder, score_candidates
from ...formats.gold import NIL
from ...kb.knowledge_base import KnowledgeBase
from ...linking.candidates import Candidate
from ...linking.link import Linked
from .agreement import list_agreed
from .decisions import NO_CONCEPTS, NO_MENTION
from .store import ReviewStore

NEAR = 5  # candidates among which the right one may be
EXAMPLES = 5  # mentions that are shown of each cause
DIGITS = 4


class DecidedMention(NamedTuple):
    """A text that was decided, and how often.

    Attributes:
        chosen: Id of a concept, "NIL", or `NO_MENTION`.
    """

    text: str
    label: str
    chosen: str
    times: int


@dataclass(frozen=True)
class Shares:
    """Shares of decided mentions; None of nothing.

    Attributes:
        first, near: Of those with a concept: the first candidate is right, or one of
            the first `NEAR`.
        precision: Of those that are linked: the concept is right.
        recall: Of those with a concept: it is linked.
        none: Of those without a concept: nothing is linked.
    """

    first: float | None
    near: float | None
    precision: float | None
    recall: float | None
    none: float | None


@dataclass(frozen=True)
class Bin:
    """First candidates whose probabilities are near each other."""

    low: float
    mentions: int
    probability: float
    right: float


@dataclass(frozen=True)
class CauseCount:
    """Why first candidates are wrong; see `CAUSES`."""

    cause: str
    mentions: int
    advice: str
    examples: list[str]


@dataclass(frozen=True)
class Quality:
    """How the mentions that reviewers agree on are answered.

    Attributes:
        mentions: Number of mentions.
        without_concept: Of them, those that mean no concept.
        no_mentions: Number of texts that are not mentions; they count only here.
        linked_no_mentions: Of them, those that would be linked: wrong mentions, for
            which no concept is right.
        error: Expected calibration error; None without probabilities.
    """

    mentions: int
    without_concept: int
    no_mentions: int
    linked_no_mentions: int
    shares: Shares
    bins: list[Bin]
    error: float | None
    causes: list[CauseCount]


def list_mentions(store: ReviewStore, kb: KnowledgeBase) -> list[DecidedMention]:
    """Return what reviewers agree on, each text and concept once."""

    @cache
    def find(chosen: str) -> str:
        concept = kb.concept(chosen) if chosen not in NO_CONCEPTS else None
        return concept.cui if concept else chosen

    counts: Counter[tuple[str, str, str]] = Counter()
    for id, decisions in list_agreed(store).items():
        document = store.document(id)
        if document is not None:
            for one in decisions:
                text = document.text[one.start : one.end]
                counts[text, one.label, find(one.chosen or NIL)] += 1
    return [DecidedMention(*key, count) for key, count in counts.items()]


def measure_quality(
    kb: KnowledgeBase,
    mentions: Sequence[DecidedMention],
    ranked: Sequence[Sequence[Candidate]],
    linked: Sequence[Linked],
) -> Quality:
    """Compare the answers of the knowledge base with the decisions.

    Args:
        mentions: The decisions.
        ranked: The first candidates of each, without a threshold.
        linked: The link of each, with the settings of the service.
    """
    is_mention = [one.chosen != NO_MENTION for one in mentions]
    spurious = [
        (one.times, link.cui is not None)
        for one, link in zip(mentions, linked, strict=True)
        if one.chosen == NO_MENTION
    ]
    mentions = [*compress(mentions, is_mention)]
    ranked = [*compress(ranked, is_mention)]
    linked = [*compress(linked, is_mention)]
    weights = np.array([one.times for one in mentions], dtype=np.float64)
    meant = np.array([one.chosen != NIL for one in mentions], dtype=bool)
    places = [
        next((n for n, c in enumerate(own) if c["cui"] == one.chosen), None)
        for one, own in zip(mentions, ranked, strict=True)
    ]
    first = np.array([place == 0 for place in places], dtype=bool)
    near = np.array([place is not None for place in places], dtype=bool)
    given = np.array([one.cui is not None for one in linked], dtype=bool)
    right = np.array(
        [a.cui == b.chosen for a, b in zip(linked, mentions, strict=True)], dtype=bool
    )

    def share(part: np.ndarray, whole: np.ndarray) -> float | None:
        total = weights[whole].sum()
        return (
            round(float(weights[part & whole].sum() / total), DIGITS) if total else None
        )

    shares = Shares(
        share(first, meant),
        share(near, meant),
        share(right, given),
        share(right, meant),
        share(~given, ~meant),
    )
    chances = [own[0]["probability"] if own else None for own in ranked]
    bins, error = group_chances(chances, first, weights)
    wrong = [
        place for place in range(len(mentions)) if meant[place] and not first[place]
    ]
    return Quality(
        int(weights.sum()),
        int(weights[~meant].sum()),
        sum(times for times, _ in spurious),
        sum(times for times, is_linked in spurious if is_linked),
        shares,
        bins,
        error,
        find_causes(kb, [(mentions[place], ranked[place]) for place in wrong]),
    )


def group_chances(
    chances: Sequence[float | None], right: np.ndarray, weights: np.ndarray
) -> tuple[list[Bin], float | None]:
    """Group first candidates by probability, and compute the calibration error.

    Args:
        right, weights: Of each mention. Shape: (n,) each.
    """
    known = [place for place, chance in enumerate(chances) if chance is not None]
    if not known:
        return [], None
    counts = weights[known].astype(np.int64)
    values = np.repeat([chances[place] or 0.0 for place in known], counts)
    hits = np.repeat(right[known], counts)
    groups = np.minimum((values * BINS).astype(np.int64), BINS - 1)
    bins = [
        Bin(
            group / BINS,
            int((groups == group).sum()),
            round(float(values[groups == group].mean()), DIGITS),
            round(float(hits[groups == group].mean()), DIGITS),
        )
        for group in np.unique(groups).tolist()
    ]
    return bins, round(calibration_error(values, hits), DIGITS)


def find_causes(
    kb: KnowledgeBase, wrong: Iterable[tuple[DecidedMention, Sequence[Candidate]]]
) -> list[CauseCount]:
    """Find why first candidates are wrong, the most frequent cause first."""
    info = info_finder(kb, {})
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for mention, candidates in wrong:
        known = kb.concept(mention.chosen)
        parts = [frozenset([known.cui] if known else [])]
        ranking = score_candidates(candidates)
        cause = find_cause(mention.text, parts, ranking, info, k=NEAR)
        if cause is not None:
            counts[cause] += mention.times
            examples.setdefault(cause, []).append(mention.text)
    return [
        CauseCount(cause, count, CAUSES[cause].text, examples[cause][:EXAMPLES])
        for cause, count in counts.most_common()
    ]
