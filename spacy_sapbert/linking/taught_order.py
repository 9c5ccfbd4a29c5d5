"""Candidates in the order that was learned from annotated mentions."""

from collections.abc import Mapping, Sequence

import numpy as np

from .candidates import RankedEntry
from .features import NearNames, compute_features
from .ranker import Ranker


def order_by_ranker(
    ranker: Ranker,
    mention: str,
    pool: Sequence[RankedEntry],
    near: Mapping[str, NearNames],
    others: Sequence[RankedEntry],
    counts: Mapping[str, int],
    concept_counts: Mapping[str, int],
) -> tuple[list[RankedEntry], float]:
    """Order the nearest concepts of a mention anew.

    Args:
        mention: Its text.
        pool: The nearest concepts, from `pool_concepts` …
        near: … and their nearest names.
        others: The concepts found, in the order that they have otherwise.
        counts: How often the mention was annotated with each concept.
        concept_counts: How often each concept was annotated.

    Returns:
        All concepts, with the score of the ranker as sort key, and the probability that
        the first is right, 0 without concepts. Those that are not in the pool follow in
        the order of `others`.
    """
    if not pool:
        return [], 0.0
    features = compute_features(mention, pool, near, counts, concept_counts)
    scores = ranker.scores(features)
    ordered = [
        pool[index]._replace(order=float(scores[index]))
        for index in np.argsort(-scores, kind="stable")
    ]
    known = {candidate.entry.cui for candidate in pool}
    last = ordered[-1].order
    # Sort keys are in −1 … 1, so that these come after the pool.
    ordered += [
        candidate._replace(order=last - 2 + candidate.order)
        for candidate in others
        if candidate.entry.cui not in known
    ]
    return ordered, ranker.probability(features, scores)
