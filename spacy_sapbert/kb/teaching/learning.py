"""Examples → a ranker, and what it changes for documents that it has not seen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...linking.features import FEATURES
from ...linking.ranker import Ranker
from ..folder.records import TaughtFile
from ..order.fit import (
    check_right,
    compute_chances,
    fit_probability,
    fit_weights,
)
from .documents import AnnotationCounts, Contradiction
from .examples import FOLDS, Example

PENALTY = 3e-3  # of squared weights, as in ridge regression
FEWEST = 50  # mentions with candidates, from which an order is learned
LEFT_OUT_COUNT = 0.2  # times another example: mentions whose concept is left out
DIGITS = 4  # of a share
THRESHOLD_DIGITS = 6


@dataclass
class Accuracy:
    """The share of right first answers; None without such mentions.

    Attributes:
        seen: Of mentions that other documents have with the same concept; `unseen` of
            the others.
    """

    all: float | None
    seen: float | None
    unseen: float | None


class LostMention(NamedTuple):
    """A mention that was right before and is wrong now.

    Attributes:
        text: What the linker searches for.
        cui: The right concept.
        now: The first answer now.
        mentions: How often it was annotated with this concept, and is wrong now.
    """

    text: str
    cui: str
    now: str
    mentions: int


@dataclass
class TeachingReport:
    """What was learned, and what it changes for documents that were not learned from.

    All accuracies are by cross-validation: each document is linked with names, counts
    and ranker of the others.

    Attributes:
        counts: What was read.
        sources: All sources that the knowledge base has learned from.
        changed: Whether the knowledge base was changed.
        before: Before anything is taught: with the vocabulary alone, in the order that
            was learned from its names, if there is one.
        names: With annotated mentions as names.
        after: With the learned order too; None = no order was learned.
        lost: Mentions that were right before and are wrong now.
        contradictions: Mentions that were annotated with different concepts.
        threshold: Probability below which a mention has no concept.
        precision: Of links at this threshold; `recall` too.
        nil_precision: Of mentions without a concept, if there are any; `nil_recall`
            too.
    """

    counts: AnnotationCounts
    sources: list[TaughtFile]
    examples: int
    changed: bool
    before: Accuracy
    names: Accuracy
    after: Accuracy | None = None
    lost: list[LostMention] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    threshold: float | None = None
    precision: float | None = None
    recall: float | None = None
    nil_precision: float | None = None
    nil_recall: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        data = asdict(self)
        data["counts"]["unknown"] = {**self.counts.unknown}
        data["sources"] = [source.model_dump() for source in self.sources]
        data["lost"] = [lost._asdict() for lost in self.lost]
        data["contradictions"] = [
            {
                "mention": contradiction.form,
                "concepts": [
                    {**asdict(meaning), "documents": len(meaning.documents)}
                    for meaning in contradiction.meanings
                ],
            }
            for contradiction in self.contradictions
        ]
        return data


def evaluate(
    examples: Sequence[Example],
    prior: Ranker,
    counts: AnnotationCounts,
    sources: list[TaughtFile],
) -> tuple[Ranker | None, TeachingReport]:
    """Learn an order that corrects the one before, and measure what it brings.

    Returns:
        The order, None if it brings nothing; and the report.
    """
    plain = np.array([example.plain for example in examples])
    right = np.array([example.named for example in examples])
    report = TeachingReport(
        counts,
        sources,
        len(examples),
        changed=False,
        before=measure_accuracy(examples, plain),
        names=measure_accuracy(examples, right),
    )
    ranker: Ranker | None = None
    if count_usable(examples) >= FEWEST:
        rankers = fit_folds(examples, prior)
        scores = rank_unseen(examples, rankers)
        ordered = check_right(examples, scores)
        if ordered.sum() > right.sum():
            right = ordered
            ranker = calibrate_ranker(fit_ranker(examples, prior), examples, scores)
            report.after = measure_accuracy(examples, right)
            measure_links(report, ranker, examples, scores)
    first = [example.first for example in examples]
    if ranker is not None:
        best = [s.argmax() if len(s) else None for s in scores]
        first = [
            None if number is None else example.cuis[number]
            for example, number in zip(examples, best, strict=True)
        ]
    lost: Counter[tuple[str, str, str]] = Counter()
    for example, was, now, answer in zip(examples, plain, right, first, strict=True):
        if was and not now and example.right is not None:
            lost[example.text, example.cuis[example.right], answer or ""] += 1
    found = [LostMention(*key, mentions) for key, mentions in lost.items()]
    report.lost = sorted(found, key=lambda one: (-one.mentions, one[:3]))
    return ranker, report


def measure_accuracy(examples: Sequence[Example], right: np.ndarray) -> Accuracy:
    """Compute the accuracy of answers, for mentions that have a concept."""
    linkable = ~np.array([example.nil for example in examples])
    seen = np.array([example.seen for example in examples])
    return Accuracy(
        share(right, linkable),
        share(right, seen & linkable),
        share(right, ~seen & linkable),
    )


def measure_links(
    report: TeachingReport,
    ranker: Ranker,
    examples: Sequence[Example],
    scores: Sequence[np.ndarray],
) -> None:
    """Add to a report what the threshold of a ranker does."""
    chances = compute_chances(ranker, examples, scores)
    right = check_right(examples, scores)
    nil = np.array([example.nil for example in examples])
    linked = chances >= ranker.threshold
    report.threshold = ranker.threshold
    report.precision = share(right, linked)
    report.recall = share(right & linked, ~nil)
    if nil.any():
        report.nil_precision = share(nil, ~linked)
        report.nil_recall = share(~linked, nil)


def share(right: np.ndarray, chosen: np.ndarray) -> float | None:
    """Return the share that is right of what is chosen, None of nothing."""
    return round(float(right[chosen].mean()), DIGITS) if chosen.any() else None


def count_usable(examples: Sequence[Example]) -> int:
    """Return how many examples have the right concept among their candidates."""
    return sum(example.right is not None for example in examples)


def fit_ranker(examples: Sequence[Example], prior: Ranker) -> Ranker:
    """Fit weights that are added to a ranker; its probability is not calibrated yet."""
    taught = fit_weights(examples, FEATURES, penalty=PENALTY, prior=prior)
    return prior.model_copy(update={"taught": taught})


def fit_folds(examples: Sequence[Example], prior: Ranker) -> list[Ranker | None]:
    """Fit a ranker for each fold from the examples of the other folds, if usable."""
    rankers: list[Ranker | None] = []
    for fold in range(FOLDS):
        others = [example for example in examples if example.fold != fold]
        rankers.append(fit_ranker(others, prior) if count_usable(others) else None)
    return rankers


def rank_unseen(
    examples: Sequence[Example], rankers: Sequence[Ranker | None]
) -> list[np.ndarray]:
    """Return the scores of the candidates of each example. Shape: (candidates,) each.

    `rankers` are those of each fold; None = the order is that of the candidates.
    """
    scores: list[np.ndarray] = []
    for example in examples:
        ranker = rankers[example.fold]
        if ranker is None:
            scores.append(-np.arange(len(example.cuis), dtype=np.float64))
        else:
            scores.append(ranker.scores(example.features))
    return scores


def calibrate_ranker(
    ranker: Ranker, examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> Ranker:
    """Fit the probability of a ranker, and the threshold with the highest F1 of links.

    Args:
        scores: From `rank_unseen`, so that no mention was part of what ranks it.
    """
    left_out = [leave_out_right(*pair) for pair in zip(examples, scores, strict=True)]
    others = [pair for pair in left_out if pair is not None]
    calibrated = fit_probability(
        ranker,
        [*examples, *(example for example, _ in others)],
        [*scores, *(some for _, some in others)],
        counts=[1.0] * len(examples) + [LEFT_OUT_COUNT] * len(others),
    )
    right = check_right(examples, scores)
    chances = compute_chances(calibrated, examples, scores)
    answered = np.array([len(s) > 0 for s in scores])
    linkable = sum(not example.nil for example in examples)
    threshold = best_threshold(chances[answered], right[answered], linkable)
    return calibrated.model_copy(update={"threshold": threshold})


def leave_out_right(
    example: Example, scores: np.ndarray
) -> tuple[Example, np.ndarray] | None:
    """Return a mention as if its concept were not there; None if nothing is left.

    People annotate what has a concept, and mentions that have none are to be known too.
    """
    if example.right is None or len(scores) < 2:
        return None
    kept = np.arange(len(scores)) != example.right
    features = {name: values[kept] for name, values in example.features.items()}
    return example._replace(right=None, features=features), scores[kept]


def best_threshold(chances: np.ndarray, right: np.ndarray, linkable: int) -> float:
    """Return the lowest probability from which on links have the highest F1.

    Args:
        chances: Probability of each answer. Shape: (n,).
        linkable: Number of mentions that have a concept.
    """
    order = np.argsort(-chances, kind="stable")
    hits = right[order].cumsum()
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + linkable)
    last = chances[order]
    # Answers of equal probability are linked together.
    whole = np.append(last[1:] != last[:-1], True)
    best = np.flatnonzero(whole & (f1 == f1[whole].max()))[-1]
    return round(float(last[best]), THRESHOLD_DIGITS)
