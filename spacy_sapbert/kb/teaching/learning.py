"""Examples → a ranker, and what it is right about in documents that it has not seen."""

from collections.abc import Sequence

import numpy as np

from ...linking.features import FEATURES
from ...linking.ranker import Ranker
from ..order.fit import (
    check_right,
    compute_chances,
    fit_probability,
    fit_weights,
)
from .examples import FOLDS, Example

PENALTY = 3e-3  # of squared weights, as in ridge regression
FEWEST = 50  # mentions with candidates, from which an order is learned
LEFT_OUT_COUNT = 0.2  # times another example: mentions whose concept is left out
DIGITS = 6


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
    return round(float(last[best]), DIGITS)
