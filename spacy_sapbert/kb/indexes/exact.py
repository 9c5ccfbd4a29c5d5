"""Exact search: every query against every row, from a memory-mapped file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .backend import Backend, BuildRun, best_first, check_queries
from .row_file import Vectors, check_size, name_damage, value_type, write_rows

FILE = "index.f32"
EXACT_ROWS = 20_000  # fewer rows are searched exactly
BLOCK_ROWS = 65_536
READ_ROWS = 16_384  # rows read at once from another index


@dataclass(frozen=True)
class Exact(Backend):
    """All vectors, one after the other."""

    name = "exact"

    @property
    def files(self) -> list[str]:
        """See `Backend.files`."""
        return [FILE]

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        """Write the vectors; see `Backend.build`."""
        write_rows(vectors, folder / FILE, compact=False, progress=run.progress)

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> "ExactIndex":
        """Map the file; see `Backend.load`."""
        path, kind = paths[FILE], value_type(compact=False)
        with name_damage(path):
            check_size(path.stat().st_size, rows * width * kind.itemsize)
            return ExactIndex(np.memmap(path, kind, mode="r", shape=(rows, width)))


class ExactIndex:
    """All vectors, searched block by block."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix  # (rows, width)
        self.width = matrix.shape[1]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        starts = range(0, len(self.matrix), BLOCK_ROWS)
        parts = ((at, self.matrix[at : at + BLOCK_ROWS]) for at in starts)
        blocks = ((np.arange(at, at + len(part)), part) for at, part in parts)
        return search_blocks(blocks, queries, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return np.array(self.matrix[rows], dtype=np.float32)


def search_blocks(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compare every query with every row; see `Index.search`.

    Each block has rows, ascending over all blocks, and their vectors. Shape: (m,),
    (m, width).
    """
    rows = np.empty((len(queries), 0), dtype=np.int64)
    scores = np.empty((len(queries), 0), dtype=np.float32)
    for numbers, vectors in blocks:
        cosines = queries @ vectors.T  # (n, m)
        numbers = np.broadcast_to(numbers, cosines.shape)
        rows = np.concatenate([rows, numbers], axis=1)
        scores = np.concatenate([scores, cosines], axis=1)
        rows, scores = keep_best(rows, scores, k)
    return best_first(rows, scores)


def search_rows(
    read_vectors: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    queries: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compare every query with some rows, ascending, of any index."""
    parts = (rows[at : at + READ_ROWS] for at in range(0, len(rows), READ_ROWS))
    return search_blocks(((part, read_vectors(part)) for part in parts), queries, k)


def keep_best(
    rows: np.ndarray, scores: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the k highest scores; of those that equal the k-th, the smallest rows.

    Where scores are equal, the rows are ascending. Shape: (n, m) → (n, min(k, m)).
    """
    if scores.shape[1] <= k:
        return rows, scores
    last = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]  # the k-th, (n, 1)
    above = scores > last
    tied = scores == last
    room = k - above.sum(axis=1, keepdims=True)
    kept = above | (tied & (tied.cumsum(axis=1) <= room))
    shape = (len(rows), k)
    return rows[kept].reshape(shape), scores[kept].reshape(shape)
