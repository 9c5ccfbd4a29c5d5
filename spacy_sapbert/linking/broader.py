"""The broader concept of a mention whose candidates are all below the threshold."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .scores import SORT_DIGITS

# A candidate this much (cosine) below the best one has 1/e of its weight; chosen with
# the figures in experiments/linker/README.md.
SOFTNESS = 0.1


def rank_parents(
    scores: Mapping[str, float], parents: Mapping[str, Sequence[str]]
) -> list[str]:
    """Rank the parents of candidates by the weight of their children.

    The weight of a candidate is exp((score − best score) / `SOFTNESS`). It counts for
    each parent of the candidate and, if the candidate is itself a parent of another
    one, for the candidate.

    Args:
        scores: Cosine of each candidate, by id.
        parents: Ids of the parents of each candidate.

    Returns:
        Highest weight first; equal weights by the score of the best child, then by the
        parent's own score, then by id.
    """
    best = max(scores.values(), default=0.0)
    weights: dict[str, float] = defaultdict(float)
    child_scores: dict[str, float] = {}
    for cui, score in scores.items():
        for parent in parents.get(cui, ()):
            weights[parent] += math.exp((score - best) / SOFTNESS)
            child_scores[parent] = max(score, child_scores.get(parent, -1.0))
    for cui, score in scores.items():
        if cui in weights:
            weights[cui] += math.exp((score - best) / SOFTNESS)

    def sort_key(parent: str) -> tuple[float, float, float, str]:
        weight = round(weights[parent], SORT_DIGITS)
        return -weight, -child_scores[parent], -scores.get(parent, -1.0), parent

    return sorted(weights, key=sort_key)
