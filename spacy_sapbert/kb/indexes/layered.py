"""Several indexes searched as one, and search among some rows only."""

from collections.abc import Sequence

import numpy as np

from .exact import search_rows
from .registry import EXACT_ROWS, Index, best_first

MAX_DEPTH = 4096  # rows that a graph is searched for
SLACK = 1.5  # rows searched for, as a multiple of what is expected to suffice


class LayeredIndex:
    """Indexes whose rows follow each other.

    layers (Sequence[tuple[int, Index]]): The number of the first row of each, and the
        index, in order of their rows.
    """

    def __init__(self, layers: Sequence[tuple[int, Index]]) -> None:
        self.layers = layers
        self.width = layers[0][1].width

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        found = [(first, *index.search(queries, k)) for first, index in self.layers]
        rows, scores = best_first(
            np.concatenate(
                [np.where(rows < 0, -1, rows + first) for first, rows, _ in found],
                axis=1,
            ),
            np.concatenate([scores for _, _, scores in found], axis=1),
        )
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        rows = np.asarray(rows, dtype=np.int64)
        layer = np.searchsorted([first for first, _ in self.layers], rows, "right") - 1
        parts = [
            index.vectors(rows[layer == number] - first)
            for number, (first, index) in enumerate(self.layers)
        ]
        vectors = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
        for number, part in enumerate(parts):
            vectors[layer == number] = part
        return vectors


def search_among(
    index: Index, vectors: np.ndarray, k: int, rows: np.ndarray, *, total: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest of some rows.

    Few rows are searched exactly. Of many rows the index is searched deep enough that
    about k of its results are expected to be among them.

    index (Index): The index.
    vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
    k (int): Number of rows.
    rows (np.ndarray): The allowed rows, ascending. Shape: (m,).
    total (int): Number of rows of the index.
    RETURNS (tuple[np.ndarray, np.ndarray]): Rows and cosines, the best first. Where
        the index reached fewer allowed rows, the rest is row −1. Shape: (n, min(k, m)).
    """
    k = min(k, len(rows))
    depth = int(SLACK * k * total / max(len(rows), 1))
    if len(rows) <= EXACT_ROWS or depth > MAX_DEPTH:
        return search_rows(index.vectors, rows, vectors, k)
    allowed = np.zeros(total, dtype=bool)
    allowed[rows] = True
    found, scores = index.search(vectors, depth)
    kept = (found >= 0) & allowed[found]
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    found = np.where(kept, found, -1)
    return np.take_along_axis(found, order, 1), np.take_along_axis(scores, order, 1)
