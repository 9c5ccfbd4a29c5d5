"""Exact search: every query against every row, from a memory-mapped file."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from ...errors import Errors, SapbertError
from .registry import best_first, check_queries
from .row_file import Vectors, decode_rows, find_bad_vector, value_type, write_rows

LIBRARY = PACKAGE = ""
FILE, COMPACT_FILE = "index.f32", "index.i16"
DEFAULTS = {"compact": 0}  # 1 = 16 bits a value; see `row_file`
RANGES = {"compact": (0, 1)}
CHANGEABLE: set[str] = set()
BLOCK_ROWS = 65_536
READ_ROWS = 16_384  # rows read at once from a file or another index


def list_files(settings: Mapping[str, int]) -> list[str]:
    """Return the names of the files."""
    return [COMPACT_FILE if settings["compact"] else FILE]


def build_index(
    vectors: Vectors,
    folder: Path,
    *,
    settings: dict[str, int],
    threads: int,
    progress: bool,
    work: Path | None = None,
) -> None:
    """Write the vectors one after the other; see `registry.build_index`."""
    path = folder / list_files(settings)[0]
    write_rows(vectors, path, compact=bool(settings["compact"]), progress=progress)


def load_index(
    paths: Mapping[str, Path], *, settings: dict[str, int], rows: int, width: int
) -> "ExactIndex":
    """Check and map the file; see `registry.load_index`."""
    (path,) = paths.values()
    layout = value_type(compact=bool(settings["compact"]))
    try:
        size = path.stat().st_size
        if size != rows * width * layout.itemsize or not size:
            expected = rows * width * layout.itemsize
            raise ValueError(f"it has {size} bytes and not {expected}")
        with open(path, "rb") as file:
            for first in range(0, rows, READ_ROWS):
                block = np.fromfile(file, layout, min(READ_ROWS, rows - first) * width)
                vectors = decode_rows(block.reshape(-1, width))
                if (bad := find_bad_vector(vectors)) is not None:
                    raise ValueError(f"row {first + bad} has no unit vector")
    except OSError as error:
        raise SapbertError(Errors.E010.format(path=path, reason=error)) from None
    except ValueError as error:
        raise SapbertError(Errors.E343.format(path=path, reason=error)) from None
    return ExactIndex(np.memmap(path, dtype=layout, mode="r", shape=(rows, width)))


class ExactIndex:
    """All vectors, searched block by block."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix  # (rows, width)
        self.width = matrix.shape[1]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        # Decoded blocks should stay in the cache of the processor.
        size = BLOCK_ROWS if self.matrix.dtype.kind == "f" else BLOCK_ROWS // 16
        starts = range(0, len(self.matrix), size)
        parts = ((start, self.matrix[start : start + size]) for start in starts)
        blocks = ((np.arange(i, i + len(part)), decode_rows(part)) for i, part in parts)
        return search_blocks(blocks, queries, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return np.array(decode_rows(self.matrix[rows]))


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
