"""Shorter vectors, in which a graph is searched; the full ones order what it finds."""

from pathlib import Path
from typing import Any

import numpy as np

from .backends import best_first, check_queries
from .row_file import RowFile, Vectors, check_size, name_damage

PROJECTION_FILE = "index.pca"
SAMPLE = 100_000  # rows that the directions are computed from
SAMPLE_AT_ONCE = 8192
LEAST_NORM = np.float32(1e-6)
ROWS_AT_ONCE = 1024  # limits memory


def sample_rows(vectors: Vectors) -> np.ndarray:
    """Return vectors spread evenly over all rows. Shape: (up to SAMPLE, width)."""
    numbers = np.linspace(0, len(vectors) - 1, min(SAMPLE, len(vectors)))
    return np.asarray(vectors[np.unique(numbers.astype(np.int64))], dtype=np.float32)


def fit_projection(sample: np.ndarray, width: int) -> np.ndarray:
    """Compute orthonormal directions that keep most of the cosines of a sample.

    Not centred: products are to be kept. Shape: (n, full width) → (full width, width).
    """
    moments = np.zeros((sample.shape[1],) * 2)
    for start in range(0, len(sample), SAMPLE_AT_ONCE):
        block = sample[start : start + SAMPLE_AT_ONCE].astype(np.float64)
        moments += block.T @ block
    directions = np.linalg.eigh(moments)[1][:, ::-1][:, : min(width, len(moments))]
    # The sign of a direction is arbitrary, and may differ between machines.
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.ascontiguousarray(directions * signs, dtype="<f4")


def read_projection(path: Path, width: int, short: int) -> np.ndarray:
    """Read what `fit_projection` returned. Shape: (width, short)."""
    with name_damage(path):
        check_size(path.stat().st_size, 4 * width * short)
        return np.fromfile(path, "<f4").reshape(width, short)


def project(vectors: np.ndarray, projection: np.ndarray | None) -> np.ndarray:
    """Return shorter unit vectors. Shape: (n, width); None = unchanged vectors."""
    if projection is None:
        return np.ascontiguousarray(vectors, dtype=np.float32)
    short = vectors @ projection
    norms = np.linalg.norm(short, axis=1, keepdims=True)
    return np.asarray(short / np.maximum(norms, LEAST_NORM), dtype=np.float32)


class ShortIndex:
    """A graph of short vectors, whose scores are not exact, and the full ones."""

    def __init__(
        self, graph: Any, matrix: np.ndarray | None, stored: RowFile, depth: int
    ) -> None:
        self.graph = graph
        self.matrix = matrix  # (width, short width)
        self.stored = stored
        self.depth = depth  # rows that are ordered again, at least
        self.width = stored.shape[1]

    def search_graph(self, queries: np.ndarray, rows: np.ndarray) -> None:
        """Find the nearest short vectors, and write their rows to `rows`, −1 so far."""
        raise NotImplementedError

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`; row −1 where the graph reaches no more rows."""
        check_queries(queries, self.width)
        found = min(max(k, self.depth), len(self.stored))
        rows = np.full((len(queries), found), -1, dtype=np.int64)
        scores = np.empty(rows.shape, dtype=np.float32)
        at_once = max(1, ROWS_AT_ONCE // max(1, found))
        for start in range(0, len(queries), at_once):
            part = slice(start, start + at_once)
            # The length of a query changes no order.
            short = (
                queries[part] if self.matrix is None else queries[part] @ self.matrix
            )
            self.search_graph(short, rows[part])
            rows[part].sort(axis=1)  # names of a concept are read at once
            vectors = self.vectors(rows[part].clip(0).ravel())
            vectors = vectors.reshape(*rows[part].shape, self.width)
            scores[part] = np.einsum("nkd,nd->nk", vectors, queries[part])
        scores[rows < 0] = -np.inf
        rows, scores = best_first(rows, scores)
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return self.stored[np.asarray(rows, dtype=np.int64)]
