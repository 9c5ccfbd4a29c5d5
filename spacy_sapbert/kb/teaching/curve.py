"""How the accuracy grows with the annotated documents: a learning curve."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .examples import FOLDS, AnnotatedMentions
from .learning import FEWEST, check_right, count_usable, fit_ranker

LEARNED_FOLDS = (1, 2)  # of the points between nothing and cross-validation
DIGITS = 4


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


def measure_curve(
    mentions: AnnotatedMentions,
    *,
    before: float | None,
    names: float | None,
    after: float | None,
) -> list[CurvePoint]:
    """Measure the points between nothing and cross-validation, which are given."""
    order = after is not None
    points = [measure_point(mentions, folds, order=order) for folds in LEARNED_FOLDS]
    most = round(mentions.documents * (FOLDS - 1) / FOLDS)
    return [CurvePoint(0, before, None), *points, CurvePoint(most, names, after)]


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
                ranker = fit_ranker(taught)
                scores = [ranker.scores(example.features) for example in unseen]
                ordered += check_right(unseen, scores).tolist()
    # An order that only some of the folds have is none.
    whole = len(ordered) == len(named)
    documents = round(mentions.documents * folds / FOLDS)
    return CurvePoint(documents, share(named), share(ordered) if whole else None)


def share(right: Sequence[bool]) -> float | None:
    """Return the share of right answers; None of nothing."""
    return round(float(np.mean(right)), DIGITS) if right else None
