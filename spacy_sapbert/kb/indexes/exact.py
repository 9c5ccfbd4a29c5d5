"""Exact search: of all rows, of some rows of any index, and of those of an overlay."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .backends import EXACT_ROWS, Backend, BuildRun, Index, best_first, check_queries
from .row_file import Vectors, check_size, name_damage, write_rows

FILE = "index.f32"
BLOCK_ROWS = 65_536
READ_ROWS = 16_384  # rows read at once from another index
MAX_DEPTH = 4096  # rows that a graph is searched for
DEEPER = 4  # times as deep for vectors that lack rows
SLACK = 1.5  # rows searched for, as a multiple of what is expected to suffice


@dataclass(frozen=True)
class Exact(Backend):
    """All vectors, one after the other."""

    name = "exact"

    @property
    def files(self) -> list[str]:
        return [FILE]

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        write_rows(vectors, folder / FILE, compact=False, progress=run.progress)

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> "ExactIndex":
        path = paths[FILE]
        with name_damage(path):
            check_size(path.stat().st_size, rows * width * 4)
            return ExactIndex(np.memmap(path, "<f4", mode="r", shape=(rows, width)))


class ExactIndex:
    """All vectors, searched block by block."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix  # (rows, width)
        self.width = matrix.shape[1]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        check_queries(queries, self.width)
        starts = range(0, len(self.matrix), BLOCK_ROWS)
        parts = ((at, self.matrix[at : at + BLOCK_ROWS]) for at in starts)
        blocks = ((np.arange(at, at + len(part)), part) for at, part in parts)
        return search_blocks(blocks, queries, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return np.array(self.matrix[rows], dtype=np.float32)


class LayeredIndex:
    """The index that was built without hidden rows, and that of an overlay behind it.

    A hidden row has no name any more, since its concepts were removed.
    """

    def __init__(self, base: Index, overlay: Index | None, hidden: np.ndarray) -> None:
        self.base = base
        self.overlay = overlay
        self.left = ~hidden  # mask of the rows of `base`
        self.hides = bool(hidden.any())
        self.first = len(hidden)  # row of the overlay
        self.width = base.width

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        if self.hides:
            rows, scores = search_among(self.base, queries, k, self.left)
        else:
            rows, scores = self.base.search(queries, k)
        if self.overlay is None:
            return rows, scores
        new_rows, new_scores = self.overlay.search(queries, k)
        rows, scores = best_first(
            np.concatenate([rows, new_rows + self.first], axis=1),
            np.concatenate([scores, new_scores], axis=1),
        )
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.int64)
        new = rows >= self.first
        vectors = np.empty((len(rows), self.width), dtype=np.float32)
        vectors[~new] = self.base.vectors(rows[~new])
        if self.overlay is not None:
            vectors[new] = self.overlay.vectors(rows[new] - self.first)
        return vectors


def search_among(
    index: Index, vectors: np.ndarray, k: int, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest of the rows that a mask of all rows allows; see `Index.search`.

    Few rows are searched exactly. Of many, the index is searched so deep that about k
    of its results are likely to be allowed, then deeper, at last exactly.
    """
    total = int(np.count_nonzero(allowed))
    k = min(k, total)
    if (
        total <= EXACT_ROWS
        or (depth := int(SLACK * k * len(allowed) / total)) > MAX_DEPTH
    ):
        return search_rows(index.vectors, np.flatnonzero(allowed), vectors, k)
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
        rows = np.flatnonzero(allowed)
        found[pending], cosines[pending] = search_rows(
            index.vectors, rows, vectors[pending], k
        )
    return found, cosines


def search_rows(
    read_vectors: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    queries: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compare every query with some rows, ascending, of any index."""
    parts = (rows[at : at + READ_ROWS] for at in range(0, len(rows), READ_ROWS))
    return search_blocks(((part, read_vectors(part)) for part in parts), queries, k)


def search_blocks(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compare every query with the rows, ascending, and the vectors of each block."""
    rows = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for numbers, vectors in blocks:
        cosines = queries @ vectors.T  # (n, m)
        numbers = np.broadcast_to(numbers, cosines.shape)
        best = keep_best(numbers, cosines, k)  # fewer than are copied below
        rows = np.concatenate([rows, best[0]], axis=1)
        scores = np.concatenate([scores, best[1]], axis=1)
        rows, scores = keep_best(rows, scores, k)
    return best_first(rows, scores)


def keep_best(
    rows: np.ndarray, scores: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the k highest scores; of those that equal the k-th, the smallest rows.

    Where scores are equal, the rows are ascending. Shape: (n, m) → (n, min(k, m)).
    """
    if scores.shape[1] <= k:
        return rows, scores
    place = scores.shape[1] - k
    last = np.partition(scores, place, axis=1)[:, place : place + 1]  # the k-th, (n, 1)
    kept = scores >= last
    if np.count_nonzero(kept) > k * len(kept):
        tied = scores == last
        room = k - (kept & ~tied).sum(axis=1, keepdims=True)
        kept &= ~tied | (tied.cumsum(axis=1) <= room)
    shape = (len(rows), k)
    return rows[kept].reshape(shape), scores[kept].reshape(shape)
