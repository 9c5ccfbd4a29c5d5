"""Candidates in an order that was learned, from names or from annotated mentions."""

from collections.abc import Sequence

import numpy as np

from .candidates import RankedEntry
from .features import Features, Pool
from .ranker import Ranker


def order_by_ranker(
    ranker: Ranker, pool: Pool, features: Features, others: Sequence[RankedEntry]
) -> tuple[list[RankedEntry], float]:
    """Order the nearest concepts of a mention anew.

    Args:
        pool: The nearest concepts, from `pool_concepts`.
        features: Theirs, from `compute_features`.
        others: The concepts found, in the order that they have otherwise.

    Returns:
        All concepts, with the score of the ranker as sort key, and the probability that
        the first is right, 0 without concepts. Those that are not in the pool follow in
        the order of `others`.
    """
    if not pool.near:
        return [], 0.0
    scores = ranker.scores(features)
    near, keys = [*pool.near.values()], scores.tolist()
    ordered = [
        RankedEntry(near[number].cosine, near[number].nearest, keys[number])
        for number in np.argsort(-scores, kind="stable").tolist()
    ]
    last = ordered[-1].order
    # Sort keys are in −1 … 1, so that these come after the pool.
    ordered += [
        candidate._replace(order=last - 2 + candidate.order)
        for candidate in others
        if candidate.entry.cui not in pool.near
    ]
    return ordered, ranker.probability(features, scores)
