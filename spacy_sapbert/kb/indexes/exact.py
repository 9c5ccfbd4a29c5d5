"""Exact search: every query against every row, from a memory-mapped file."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ...errors import Errors, SapbertError
from .registry import best_first, check_width, find_bad_vector

FILE = "index.f32"
DEFAULTS: dict[str, int] = {}
RANGES: dict[str, tuple[int, int]] = {}
CHANGEABLE: set[str] = set()
BLOCK_ROWS = 65_536
READ_ROWS = 16_384  # rows read at once from a file or another index


def build_index(
    vectors: np.ndarray,
    folder: Path,
    *,
    settings: dict[str, int],
    threads: int,
    progress: bool,
) -> None:
    """Write the vectors one after the other; see `indexes.build_index`."""
    starts = range(0, len(vectors), BLOCK_ROWS)
    with open(folder / FILE, "wb") as file:
        for start in tqdm(starts, unit=" blocks", desc="Index", disable=not progress):
            block = np.asarray(vectors[start : start + BLOCK_ROWS], dtype="<f4")
            file.write(block.tobytes())


def load_index(
    path: Path, *, settings: dict[str, int], rows: int, width: int
) -> "ExactIndex":
    """Check and map the file; see `indexes.load_index`."""
    try:
        size = path.stat().st_size
        if size != rows * width * 4 or not size:
            raise ValueError(f"it has {size} bytes and not {rows * width * 4}")
        with open(path, "rb") as file:
            for first in range(0, rows, READ_ROWS):
                block = np.fromfile(file, "<f4", min(READ_ROWS, rows - first) * width)
                if (bad := find_bad_vector(block.reshape(-1, width))) is not None:
                    raise ValueError(f"row {first + bad} has no unit vector")
    except OSError as error:
        raise SapbertError(Errors.E010.format(path=path, reason=error)) from None
    except ValueError as error:
        raise SapbertError(Errors.E343.format(path=path, reason=error)) from None
    return ExactIndex(np.memmap(path, dtype="<f4", mode="r", shape=(rows, width)))


class ExactIndex:
    """All vectors, searched block by block."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix  # (rows, width)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_width(queries, self.matrix.shape[1])
        starts = range(0, len(self.matrix), BLOCK_ROWS)
        parts = ((start, self.matrix[start : start + BLOCK_ROWS]) for start in starts)
        blocks = ((np.arange(start, start + len(part)), part) for start, part in parts)
        return search_blocks(blocks, queries, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return np.array(self.matrix[rows], dtype=np.float32)


def search_blocks(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compare every query with every row, block by block.

    blocks (Iterable[tuple[np.ndarray, np.ndarray]]): Rows, ascending over all blocks,
        and their vectors. Shape: (m,) and (m, width) each.
    queries (np.ndarray): Unit vectors in float32. Shape: (n, width).
    k (int): How many to find.
    RETURNS (tuple[np.ndarray, np.ndarray]): See `Index.search`. Shape: (n, up to k).
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
    """Compare every query with some rows of any index.

    read_vectors (Callable[[np.ndarray], np.ndarray]): Rows → their vectors.
    rows (np.ndarray): The rows, ascending. Shape: (m,).
    queries (np.ndarray): Unit vectors in float32. Shape: (n, width).
    k (int): Number of rows to find.
    RETURNS (tuple[np.ndarray, np.ndarray]): See `Index.search`. Shape: (n, up to k).
    """
    parts = (rows[at : at + READ_ROWS] for at in range(0, len(rows), READ_ROWS))
    return search_blocks(((part, read_vectors(part)) for part in parts), queries, k)


def keep_best(
    rows: np.ndarray, scores: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keep the k highest scores; of those that equal the k-th, the smallest rows.

    rows (np.ndarray): In ascending order wherever scores are equal. Shape: (n, m).
    scores (np.ndarray): Shape: (n, m).
    k (int): How many to keep.
    RETURNS (tuple[np.ndarray, np.ndarray]): Shape: (n, min(k, m)) each, rows ascending.
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
