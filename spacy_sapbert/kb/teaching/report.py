"""What was learned from annotated documents, and what it changes for others."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import Errors, SapbertError
from ...linking.ranker import Ranker
from ..folder.records import TaughtFile
from ..order.fit import check_right, compute_chances
from .documents import AnnotationCounts, Contradiction
from .examples import FOLDS, AnnotatedMentions, Example
from .learning import (
    FEWEST,
    calibrate_ranker,
    count_usable,
    fit_folds,
    fit_ranker,
    measure_groups,
    rank_unseen,
)

LEARNED_FOLDS = (1, 2)  # of the points between nothing and cross-validation
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


class LostMention(NamedTuple):
    """A mention that was right before and is wrong now.

    Attributes:
        text: What the linker searches for.
        cui: The right concept.
        now: The first answer now.
        folds: How many mentions each fold has; those of other folds are right, or
            were wrong before.
    """

    text: str
    cui: str
    now: str
    folds: Counter[int]

    @property
    def mentions(self) -> int:
        """How often it was annotated with this concept, and is wrong now."""
        return self.folds.total()


@dataclass
class CurvePoint:
    """The share of right first answers with some documents; NIL is not counted.

    Attributes:
        documents: Number of documents that were learned from.
        names: With their mentions as names; None = no mention has a concept.
        after: With the learned order too; None = no order was learned.
    """

    documents: int
    names: float | None
    after: float | None


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
        groups: Accuracy that is lost without a group of features.
        curve: The accuracies by number of documents, from none on.
        lost: Mentions that were right before and are wrong now.
        folds: Fold of each note that was learned from.
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
    groups: dict[str, float] = field(default_factory=dict)
    curve: list[CurvePoint] = field(default_factory=list)
    lost: list[LostMention] = field(default_factory=list)
    folds: dict[str, int] = field(default_factory=dict)
    contradictions: list[Contradiction] = field(default_factory=list)
    threshold: float | None = None
    precision: float | None = None
    recall: float | None = None
    nil_precision: float | None = None
    nil_recall: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        # `asdict` makes a Counter of tuples of a Counter, and keeps pydantic's models.
        nothing: Any = {"sources": [], "contradictions": [], "lost": []}
        data = asdict(replace(self, counts=AnnotationCounts(), **nothing))
        del data["folds"]
        data["lost"] = [
            {"text": one.text, "cui": one.cui, "now": one.now, "mentions": one.mentions}
            for one in self.lost
        ]
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
        counts = {**vars(self.counts), "unknown": {**self.counts.unknown}}
        sources = [source.model_dump() for source in self.sources]
        return {**data, "counts": counts, "sources": sources}


def evaluate(
    mentions: AnnotatedMentions, counts: AnnotationCounts, sources: list[TaughtFile]
) -> tuple[Ranker | None, TeachingReport]:
    """Learn an order that corrects the one before, and measure what it brings.

    Returns:
        The order, None if it brings nothing; and the report.
    """
    examples, prior = mentions.examples(), mentions.prior
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
        folds=mentions.folds,
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
            report.groups = measure_groups(examples, rankers)
            measure_links(report, ranker, examples, scores)
    first = [example.first for example in examples]
    if ranker is not None:
        best = [s.argmax() if len(s) else None for s in scores]
        first = [
            None if number is None else example.cuis[number]
            for example, number in zip(examples, best, strict=True)
        ]
    lost: dict[tuple[str, str, str], Counter[int]] = defaultdict(Counter)
    for example, was, now, answer in zip(examples, plain, right, first, strict=True):
        if was and not now and example.right is not None:
            key = (example.text, example.cuis[example.right], answer or "")
            lost[key][example.fold] += 1
    found = [LostMention(*key, folds) for key, folds in lost.items()]
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


def measure_curve(
    mentions: AnnotatedMentions, report: TeachingReport
) -> list[CurvePoint]:
    """Measure the points between nothing and cross-validation, which are reported."""
    after = report.after.all if report.after else None
    order = after is not None
    points = [measure_point(mentions, folds, order=order) for folds in LEARNED_FOLDS]
    most = round(mentions.documents * (FOLDS - 1) / FOLDS)
    last = CurvePoint(most, report.names.all, after)
    return [CurvePoint(0, report.before.all, None), *points, last]


def measure_point(
    mentions: AnnotatedMentions, folds: int, *, order: bool = True
) -> CurvePoint:
    """Link the mentions of each fold with names, counts and order of some other folds.

    Args:
        folds: Number of these other folds, 1 to `FOLDS` − 1.
        order: Whether an order is learned.
    """
    named: list[bool] = []
    ordered: list[bool] = []
    for fold in range(FOLDS):
        learned = {(fold + step) % FOLDS for step in range(1, folds + 1)}
        examples = mentions.examples({fold: learned})
        unseen = [example for example in examples if not example.nil]
        named += [example.named for example in unseen]
        if order:
            taught = mentions.examples({other: learned - {other} for other in learned})
            if count_usable(taught) >= FEWEST:
                ranker = fit_ranker(taught, mentions.prior)
                scores = [ranker.scores(e.features) for e in unseen]
                ordered += check_right(unseen, scores).tolist()
    if len(ordered) < len(named):  # an order that only some of the folds have is none
        ordered = []
    shares = [share(np.array(r), np.ones(len(r), bool)) for r in (named, ordered)]
    return CurvePoint(round(mentions.documents * folds / FOLDS), *shares)


def share(right: np.ndarray, chosen: np.ndarray) -> float | None:
    """Return the share that is right of what is chosen, None of nothing."""
    return round(float(right[chosen].mean()), DIGITS) if chosen.any() else None
