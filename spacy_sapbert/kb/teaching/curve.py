"""How the accuracy grows with the annotated documents: a learning curve."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .examples import FOLDS, AnnotatedMentions, Example
from .learning import FEWEST, fit_ranker, is_right

LEARNED_FOLDS = (1, 2)  # of the points between nothing and cross-validation
DIGITS = 4


@dataclass
class CurvePoint:
    """The share of right first answers with some documents; NIL is not counted.

    documents (int): Number that was learned from.
    names (float | None): With their mentions as names; None = no mention has a concept.
    after (float | None): With the learned order too; None = no order was learned.
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
    """Measure the points between nothing and cross-validation.

    before (float | None): Accuracy without documents.
    names (float | None), after (float | None): Of cross-validation.
    RETURNS (list[CurvePoint]): From no document on, with these accuracies at the ends.
    """
    order = after is not None
    points = [measure_point(mentions, folds, order=order) for folds in LEARNED_FOLDS]
    most = round(mentions.documents * (FOLDS - 1) / FOLDS)
    return [CurvePoint(0, before, None), *points, CurvePoint(most, names, after)]


def measure_point(
    mentions: AnnotatedMentions, folds: int, *, order: bool = True
) -> CurvePoint:
    """Link the mentions of each fold with names, counts and order of some other folds.

    folds (int): Number of these other folds, 1 to `FOLDS` − 1.
    order (bool): Whether an order is learned.
    """
    named: list[bool] = []
    ordered: list[bool] = []
    for fold in range(FOLDS):
        learned = {(fold + step) % FOLDS for step in range(1, folds + 1)}
        unseen = [one for one in mentions.examples({fold: learned}) if not one.nil]
        named += [one.named for one in unseen]
        if order:
            taught = mentions.examples({one: learned - {one} for one in learned})
            if sum(one.right is not None for one in taught) >= FEWEST:
                ordered += check_order(taught, unseen)
    # An order that only some of the folds have is none.
    whole = bool(named) and len(ordered) == len(named)
    documents = round(mentions.documents * folds / FOLDS)
    return CurvePoint(documents, share(named), share(ordered) if whole else None)


def check_order(taught: Sequence[Example], unseen: Sequence[Example]) -> list[bool]:
    """Return whether an order of some examples has the right first answer of others."""
    ranker = fit_ranker(taught)
    return [
        len(one.cuis) > 0 and is_right(one, ranker.scores(one.features))
        for one in unseen
    ]


def share(right: Sequence[bool]) -> float | None:
    """Return the share of right answers; None of nothing."""
    return round(float(np.mean(right)), DIGITS) if right else None
