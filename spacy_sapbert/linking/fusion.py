"""Cosine and similarity of characters → one score to sort by."""

from typing import Literal, get_args

import numpy as np

from ..errors import Errors, SapbertError, check_range
from .scores import SORT_DIGITS

Fusion = Literal["weighted", "rrf"]
FUSIONS: tuple[Fusion, ...] = get_args(Fusion)
# Default weight of the 3-grams: it costs nothing on mentions without mistakes. A higher
# weight finds more misspelled mentions; see docs/linker.md.
WEIGHT = 0.1
RANK_OFFSET = 60  # of reciprocal rank fusion


def compute_ranks(scores: np.ndarray) -> np.ndarray:
    """Return the rank of each score, from 1; equal scores share a rank. Shape: (n,)."""
    rounded = np.round(scores.astype(np.float64), SORT_DIGITS)
    return 1 + len(scores) - np.searchsorted(np.sort(rounded), rounded, side="right")


def fuse_scores(
    cosines: np.ndarray,
    similarities: np.ndarray,
    *,
    fusion: str = "weighted",
    weight: float = WEIGHT,
    rank_offset: int = RANK_OFFSET,
) -> np.ndarray:
    """Compute the scores to sort by; a candidate keeps its cosine as its score.

    `weighted` is (1 − weight) · cosine + weight · similarity. `rrf`, reciprocal rank
    fusion, adds 1 / (rank_offset + rank) of both, and 0 for a similarity of 0.

    Args:
        cosines: Of all rows that one of the searches found. Shape: (n,).
        similarities: Of the same rows. Shape: (n,).
        fusion: One of `FUSIONS`.
        weight: Weight of the similarity for "weighted", 0 to 1.
        rank_offset: For "rrf": a higher offset makes the first ranks more equal.

    Returns:
        float64, higher is better. Shape: (n,).

    Raises:
        SapbertError: If `fusion` or `weight` is not possible.

    Source: Cormack, Clarke and Büttcher (2009), for "rrf".
    """
    if fusion not in FUSIONS:
        raise SapbertError(Errors.E593.format(known=FUSIONS, value=fusion))
    check_range("ngram_weight", weight, 0, 1)
    if fusion == "weighted":
        return (1 - weight) * cosines.astype(np.float64) + weight * similarities
    by_similarity = 1 / (rank_offset + compute_ranks(similarities))
    by_similarity[similarities <= 0] = 0
    return 1 / (rank_offset + compute_ranks(cosines)) + by_similarity
