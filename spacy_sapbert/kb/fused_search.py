"""Rows found by vectors and rows found by 3-grams, united for each mention."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..linking.fusion import fuse_scores
from ..linking.options import LinkOptions
from .indexes.registry import Index
from .ngrams.index import NgramIndex, NgramLayers

if TYPE_CHECKING:
    from .filtering import FilterResult
    from .knowledge_base import KnowledgeBase


class FusionInput(NamedTuple):
    """Both scores of the rows that either search found for one mention.

    rows (np.ndarray): Ascending, int64. Shape: (n,).
    cosines (np.ndarray): float32. Shape: (n,).
    similarities (np.ndarray): Of the 3-grams, float32. Shape: (n,).
    """

    rows: np.ndarray
    cosines: np.ndarray
    similarities: np.ndarray


def unite_searches(
    texts: Sequence[str],
    vectors: np.ndarray,
    found: tuple[np.ndarray, np.ndarray],
    index: Index,
    ngrams: NgramIndex | NgramLayers,
    *,
    k: int,
    allowed: np.ndarray | None = None,
) -> list[FusionInput]:
    """Search by 3-grams, and compute both scores of what either search found.

    texts (Sequence[str]): Mentions.
    vectors (np.ndarray): Their unit vectors in float32. Shape: (n, width).
    found (tuple[np.ndarray, np.ndarray]): Rows (−1 = none) and cosines that the index
        found for them. Shape: (n, m) each.
    index (Index): The vectors of all rows.
    ngrams (NgramIndex | NgramLayers): The 3-grams of the same names.
    k (int): Maximum of rows that the 3-grams add.
    allowed (np.ndarray | None): Mask of the rows that they may add, bool; None = all.
        Shape: (rows,).
    RETURNS (list[FusionInput]): One for each mention.
    """
    by_ngrams, _ = ngrams.search(texts, k, allowed=allowed)
    united: list[np.ndarray] = []
    cosines: list[np.ndarray] = []
    for near, scores, more in zip(*found, by_ngrams, strict=True):
        rows = np.union1d(near[near >= 0], more[more >= 0]).astype(np.int64)
        known = np.full(len(rows), np.nan, dtype=np.float32)
        known[np.searchsorted(rows, near[near >= 0])] = scores[near >= 0]
        united.append(rows)
        cosines.append(known)
    missing = [rows[np.isnan(c)] for rows, c in zip(united, cosines, strict=True)]
    every = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *missing]))
    if len(every):
        row_vectors = index.vectors(every)
        for vector, rows, known in zip(vectors, missing, cosines, strict=True):
            places = np.searchsorted(every, rows)
            known[np.isnan(known)] = row_vectors[places] @ vector
    similarities = ngrams.similarity(texts, united)
    return [
        FusionInput(*all) for all in zip(united, cosines, similarities, strict=True)
    ]


def fuse_searches(
    inputs: Sequence[FusionInput], *, fusion: str, weight: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the sort keys of united searches.

    inputs (Sequence[FusionInput]): From `unite_searches`.
    fusion (str): See `fuse_scores`.
    weight (float): See `fuse_scores`.
    RETURNS (tuple[np.ndarray, np.ndarray, np.ndarray]): Rows (not sorted; −1 where a
        mention has fewer), cosines and sort keys. Shape: (n, most rows) each.
    """
    shape = (len(inputs), max((len(one.rows) for one in inputs), default=0))
    rows = np.full(shape, -1, dtype=np.int64)
    cosines = np.zeros(shape, dtype=np.float32)
    orders = np.zeros(shape)
    for number, one in enumerate(inputs):
        size = len(one.rows)
        rows[number, :size] = one.rows
        cosines[number, :size] = one.cosines
        orders[number, :size] = fuse_scores(
            one.cosines, one.similarities, fusion=fusion, weight=weight
        )
    return rows, cosines, orders


def fuse(
    kb: "KnowledgeBase",
    texts: Sequence[str],
    vectors: np.ndarray,
    found: tuple[np.ndarray, np.ndarray],
    filtered: "FilterResult | None",
    options: LinkOptions,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Search by 3-grams too; see `fuse_searches`."""
    allowed = None
    if filtered is not None:
        allowed = np.zeros(kb.rows, dtype=bool)
        allowed[filtered.rows] = True
    k = found[0].shape[1]
    inputs = unite_searches(
        texts, vectors, found, kb.index, kb.ngrams, k=k, allowed=allowed
    )
    return fuse_searches(
        inputs, fusion=str(options.fusion), weight=options.ngram_weight
    )
