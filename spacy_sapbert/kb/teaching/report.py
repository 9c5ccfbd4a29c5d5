"""What was learned from annotated documents, and what it changes for others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import Errors, SapbertError
from ...linking.ranker import Ranker
from ..folder.records import TaughtFile
from .curve import CurvePoint
from .documents import AnnotationCounts
from .examples import Example
from .learning import (
    FEWEST,
    calibrate_ranker,
    check_right,
    count_usable,
    fit_folds,
    fit_ranker,
    measure_groups,
    rank_unseen,
)

DIGITS = 4


@dataclass
class Accuracy:
    """The share of right first answers; None without such mentions.

    Attributes:
        seen: Of mentions that other documents have with the same concept.
        unseen: Of mentions that other documents do not have with it.
    """

    all: float | None
    seen: float | None
    unseen: float | None


@dataclass
class TeachingReport:
    """What was learned, and what it changes for documents that were not learned from.

    All accuracies are by cross-validation: each document is linked with names, counts
    and ranker of the others.

    Attributes:
        counts: What was read.
        sources: All sources that the knowledge base has learned from.
        changed: Whether the knowledge base was changed.
        before: With the vocabulary alone.
        names: With annotated mentions as names.
        after: With the learned order too; None = no order was learned.
        groups: Accuracy that is lost without a group of features.
        curve: The accuracies by number of documents, from none on.
        lost: Concepts of mentions that were right with the vocabulary alone and are
            wrong now, with their number.
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
    groups: dict[str, float] = field(default_factory=dict)
    curve: list[CurvePoint] = field(default_factory=list)
    lost: list[tuple[str, int]] = field(default_factory=list)
    threshold: float | None = None
    precision: float | None = None
    recall: float | None = None
    nil_precision: float | None = None
    nil_recall: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        # `asdict` makes a Counter of tuples of a Counter, and keeps pydantic's models.
        data = asdict(replace(self, counts=AnnotationCounts(), sources=[]))
        counts = {**vars(self.counts), "unknown": {**self.counts.unknown}}
        sources = [source.model_dump() for source in self.sources]
        return {**data, "counts": counts, "sources": sources}


def evaluate(
    examples: Sequence[Example], counts: AnnotationCounts, sources: list[TaughtFile]
) -> tuple[Ranker | None, TeachingReport]:
    """Learn an order, and measure by cross-validation what it brings.

    Returns:
        The order, None if it brings nothing; and the report.
    """
    if not examples:
        raise SapbertError(Errors.E363.format(documents=counts.documents))
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
        rankers = fit_folds(examples)
        scores = rank_unseen(examples, rankers)
        ordered = check_right(examples, scores)
        if ordered.sum() > right.sum():
            right = ordered
            ranker = calibrate_ranker(fit_ranker(examples), examples, scores)
            report.after = measure_accuracy(examples, right)
            report.groups = measure_groups(examples, rankers)
            measure_links(report, ranker, examples, scores)
    lost = Counter(
        example.cuis[example.right]
        for example, was, now in zip(examples, plain, right, strict=True)
        if was and not now and example.right is not None
    )
    report.lost = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    return ranker, report


def measure_accuracy(examples: Sequence[Example], right: np.ndarray) -> Accuracy:
    """Compute the accuracy of answers, for mentions that have a concept."""
    linkable = ~np.array([example.nil for example in examples])
    seen = np.array([example.seen for example in examples])
    return Accuracy(
        share(right & linkable, linkable),
        share(right & seen & linkable, seen & linkable),
        share(right & ~seen & linkable, ~seen & linkable),
    )


def measure_links(
    report: TeachingReport,
    ranker: Ranker,
    examples: Sequence[Example],
    scores: Sequence[np.ndarray],
) -> None:
    """Add to a report what the threshold of a ranker does."""
    chances = np.array(
        [
            ranker.probability(e.features, s) if len(s) else 0.0
            for e, s in zip(examples, scores, strict=True)
        ]
    )
    right = check_right(examples, scores)
    nil = np.array([example.nil for example in examples])
    linked = chances >= ranker.threshold
    report.threshold = ranker.threshold
    report.precision = share(right & linked, linked)
    report.recall = share(right & linked, ~nil)
    if nil.any():
        report.nil_precision = share(nil & ~linked, ~linked)
        report.nil_recall = share(nil & ~linked, nil)


def share(part: np.ndarray, whole: np.ndarray) -> float | None:
    """Return the share of a part, None of nothing."""
    return round(float(part.sum() / whole.sum()), DIGITS) if whole.any() else None
