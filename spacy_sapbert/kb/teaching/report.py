"""What was learned from annotated documents, and what it changes for others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import SapbertError
from ...linking.ranker import Ranker
from ..folder.records import TaughtFile
from ..order.fit import check_right, compute_chances
from .documents import AnnotationCounts, Contradiction
from .examples import AnnotatedMentions, Example
from .learning import (
    FEWEST,
    calibrate_ranker,
    count_usable,
    fit_folds,
    fit_ranker,
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
        # `asdict` makes a Counter of tuples of a Counter, and keeps pydantic's models.
        nothing: Any = {"sources": [], "contradictions": [], "lost": []}
        data = asdict(replace(self, counts=AnnotationCounts(), **nothing))
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
        raise SapbertError(
            "E363",
            f"Expected annotated mentions, but got none in {counts.documents} "
            "documents. Pass documents whose entities have ids.",
        )
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
