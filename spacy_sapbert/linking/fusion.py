"""Rows found by vectors and rows found by 3-grams → one order."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import Errors, SapbertError
from ..kb.ngrams.index import NgramIndex, NgramLayers

FUSIONS = ("weighted", "rrf")
# Of the 3-grams, where nothing else is said: measured to cost nothing where mentions
# have no mistakes. More finds more misspelled ones, see `benchmarks/hybrid.py`.
WEIGHT = 0.1
RANK_OFFSET = 60  # how little the first ranks differ
SCORE_DIGITS = 6  # scores that agree so far have the same rank


class Vectors(Protocol):
    """What holds the vectors of the rows: an index, or a knowledge base."""

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows. Shape: (n,) → (n, width)."""


class Found(NamedTuple):
    """What both searches found for one mention.

    rows (np.ndarray): Of the index, ascending, int64. Shape: (n,).
    cosines (np.ndarray): Of the vectors, float32. Shape: (n,).
    similarities (np.ndarray): Of the 3-grams, float32. Shape: (n,).
    """

    rows: np.ndarray
    cosines: np.ndarray
    similarities: np.ndarray


def check_fusion(fusion: str, weight: float) -> None:
    """Check that there is such a fusion.

    fusion (str): One of `FUSIONS`.
    weight (float): Of the 3-grams, 0 to 1.
    RAISES (SapbertError): If one of them is another.
    """
    if fusion not in FUSIONS:
        raise SapbertError(Errors.E593.format(known=FUSIONS, value=fusion))
    if not 0 <= weight <= 1:
        raise SapbertError(
            Errors.E313.format(setting="ngram_weight", low=0, high=1, value=weight)
        )


def find_ranks(scores: np.ndarray) -> np.ndarray:
    """Rank scores, equal ones alike.

    scores (np.ndarray): Shape: (n,).
    RETURNS (np.ndarray): For each one more than there are higher ones. Shape: (n,).
    """
    rounded = np.round(scores.astype(np.float64), SCORE_DIGITS)
    return 1 + len(scores) - np.searchsorted(np.sort(rounded), rounded, side="right")


def fuse_scores(
    cosines: np.ndarray,
    similarities: np.ndarray,
    *,
    fusion: str = "weighted",
    weight: float = WEIGHT,
    rank_offset: int = RANK_OFFSET,
) -> np.ndarray:
    """Make one score of two, to sort by; what a candidate shows stays the cosine.

    `weighted` is (1 − weight) · cosine + weight · similarity; `rrf`, reciprocal rank
    fusion, adds 1 / (rank_offset + rank) of both, and nothing for a similarity of 0.

    cosines (np.ndarray): Of all rows that one of the searches found. Shape: (n,).
    similarities (np.ndarray): Of the same rows. Shape: (n,).
    fusion (str): "weighted" or "rrf".
    weight (float): Of the similarity, 0 to 1, for "weighted".
    rank_offset (int): How little the first ranks differ, for "rrf".
    RETURNS (np.ndarray): float64, higher is better. Shape: (n,).
    RAISES (SapbertError): If `fusion` or `weight` is another.
    SOURCE: Cormack, Clarke and Büttcher (2009), for "rrf".
    """
    check_fusion(fusion, weight)
    if fusion == "weighted":
        return (1 - weight) * cosines.astype(np.float64) + weight * similarities
    by_similarity = 1 / (rank_offset + find_ranks(similarities))
    by_similarity[similarities <= 0] = 0
    return 1 / (rank_offset + find_ranks(cosines)) + by_similarity


def unite_searches(
    texts: Sequence[str],
    vectors: np.ndarray,
    near: tuple[np.ndarray, np.ndarray],
    index: Vectors,
    ngrams: NgramIndex | NgramLayers,
    *,
    k: int,
    allowed: np.ndarray | None = None,
) -> list[Found]:
    """Search by 3-grams too, and give both scores of what either search found.

    texts (Sequence[str]): Mentions.
    vectors (np.ndarray): Their unit vectors in float32. Shape: (n, width).
    near (tuple[np.ndarray, np.ndarray]): Rows and cosines that the index found for
        them; a row below 0 is none. Shape: (n, m) each.
    index (Vectors): Holds the vectors of all rows.
    ngrams (NgramIndex): Of the same names.
    k (int): Rows that the 3-grams add at the most.
    allowed (np.ndarray | None): Which rows they may add, bool; None = all.
        Shape: (rows,).
    RETURNS (list[Found]): One for each mention.
    """
    like, _ = ngrams.search(texts, k, allowed=allowed)
    wanted: list[np.ndarray] = []
    cosines: list[np.ndarray] = []
    for found, scores, more in zip(*near, like, strict=True):
        rows = np.union1d(found[found >= 0], more[more >= 0]).astype(np.int64)
        both = np.full(len(rows), np.nan, dtype=np.float32)
        both[np.searchsorted(rows, found[found >= 0])] = scores[found >= 0]
        wanted.append(rows)
        cosines.append(both)
    lacking = [rows[np.isnan(c)] for rows, c in zip(wanted, cosines, strict=True)]
    every = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *lacking]))
    if len(every):
        known = index.vectors(every)
        for vector, rows, both in zip(vectors, lacking, cosines, strict=True):
            both[np.isnan(both)] = known[np.searchsorted(every, rows)] @ vector
    similarities = ngrams.similarity(texts, wanted)
    return [Found(*parts) for parts in zip(wanted, cosines, similarities, strict=True)]


def order_found(
    found: Sequence[Found], *, fusion: str, weight: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lay out what both searches found for some mentions.

    found (Sequence[Found]): From `unite_searches`.
    fusion (str): See `fuse_scores`.
    weight (float): See `fuse_scores`.
    RETURNS (tuple[np.ndarray, np.ndarray, np.ndarray]): Rows, cosines, and what to
        order them by; where a mention has fewer rows, the rest is row −1.
        Shape: (n, most rows) each.
    """
    shape = (len(found), max((len(one.rows) for one in found), default=0))
    rows = np.full(shape, -1, dtype=np.int64)
    cosines = np.zeros(shape, dtype=np.float32)
    orders = np.zeros(shape)
    for number, one in enumerate(found):
        size = len(one.rows)
        rows[number, :size] = one.rows
        cosines[number, :size] = one.cosines
        orders[number, :size] = fuse_scores(
            one.cosines, one.similarities, fusion=fusion, weight=weight
        )
    return rows, cosines, orders
