"""Several indexes searched as one, and search among some rows only."""

from collections.abc import Sequence

import numpy as np

from .backend import Index, best_first
from .exact import EXACT_ROWS, search_rows

MAX_DEPTH = 4096  # rows that a graph is searched for
DEEPER = 4  # times as deep for vectors that lack rows
SLACK = 1.5  # rows searched for, as a multiple of what is expected to suffice


class LayeredIndex:
    """Indexes whose rows follow each other, each with the number of its first row."""

    def __init__(self, layers: Sequence[tuple[int, Index]]) -> None:
        self.layers = layers
        self.width = layers[0][1].width

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        layers = [(first, *index.search(queries, k)) for first, index in self.layers]
        numbers = [np.where(rows < 0, -1, rows + first) for first, rows, _ in layers]
        cosines = [scores for _, _, scores in layers]
        rows, scores = best_first(
            np.concatenate(numbers, axis=1), np.concatenate(cosines, axis=1)
        )
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        rows = np.asarray(rows, dtype=np.int64)
        layer = np.searchsorted([first for first, _ in self.layers], rows, "right") - 1
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        for number, (first, index) in enumerate(self.layers):
            vectors[layer == number] = index.vectors(rows[layer == number] - first)
        return vectors


def search_among(
    index: Index, vectors: np.ndarray, k: int, rows: np.ndarray, *, total: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest of some rows, ascending, of the `total` rows of an index.

    Few rows are searched exactly. Of many rows the index is searched deep enough that
    about k of its results are expected to be among them, and deeper for the vectors
    that still lack rows; for the last of these the search is exact.
    Shape: (n, width) → (n, up to k) each.
    """
    k = min(k, len(rows))
    depth = int(SLACK * k * total / max(len(rows), 1))
    if len(rows) <= EXACT_ROWS or depth > MAX_DEPTH:
        return search_rows(index.vectors, rows, vectors, k)
    allowed = np.zeros(total, dtype=bool)
    allowed[rows] = True
    found = np.full((len(vectors), k), -1, dtype=np.int64)
    cosines = np.zeros((len(vectors), k), dtype=np.float32)
    pending = np.arange(len(vectors))
    while len(pending) and depth <= MAX_DEPTH:
        nearest, scores = index.search(vectors[pending], depth)
        kept = (nearest >= 0) & allowed[nearest]
        order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
        nearest = np.where(kept, nearest, -1)
        found[pending] = np.take_along_axis(nearest, order, 1)
        cosines[pending] = np.take_along_axis(scores, order, 1)
        pending = pending[(found[pending] < 0).any(axis=1)]
        depth *= DEEPER
    if len(pending):
        found[pending], cosines[pending] = search_rows(
            index.vectors, rows, vectors[pending], k
        )
    return found, cosines
