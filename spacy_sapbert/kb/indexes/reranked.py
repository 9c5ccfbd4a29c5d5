"""A graph of shorter vectors, whose first results are ordered by the full cosine."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from . import projection as directions
from .backend import Index, best_first, check_queries
from .projection import fit_projection, project, read_projection, sample_rows
from .row_file import RowFile, Vectors, write_rows

FILE = "index.i16"
QUERIES_AT_ONCE = 32  # re-ranked together: limits memory


def write_full_rows(
    vectors: Vectors, folder: Path, *, width: int, progress: bool
) -> np.ndarray | None:
    """Write what re-ranking needs: the full vectors, and the directions.

    Args:
        width: Of the short vectors; 0 = full.

    Returns:
        The directions; None for the full width. Shape: (full width, width).
    """
    write_rows(vectors, folder / FILE, compact=True, progress=progress)
    if not width:
        return None
    matrix = fit_projection(sample_rows(vectors), width)
    (folder / directions.FILE).write_bytes(matrix.tobytes())
    return matrix


def open_reranked(
    graph: Index, paths: Mapping[str, Path], *, rows: int, width: int, depth: int
) -> "RerankedIndex":
    """Open the full vectors and the directions of a graph of short vectors.

    Args:
        width: Of the full vectors.
        depth: Results of the graph that are ordered by the full cosine.

    Raises:
        SapbertError: If a file is damaged or of another size.
    """
    matrix = None
    if directions.FILE in paths:
        path = paths[directions.FILE]
        matrix = read_projection(path, full=width, width=graph.width)
    return RerankedIndex(
        graph, matrix, RowFile(paths[FILE], rows=rows, width=width), depth
    )


class RerankedIndex:
    """A graph of shorter vectors, and the full ones."""

    def __init__(
        self, graph: Index, matrix: np.ndarray | None, stored: RowFile, depth: int
    ) -> None:
        self.graph = graph
        self.matrix = matrix  # (width, short width)
        self.stored = stored
        self.depth = depth
        self.width = stored.shape[1]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        short = project(queries, self.matrix)
        rows, _ = self.graph.search(short, max(k, self.depth))
        scores = np.empty(rows.shape, dtype=np.float32)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(start, start + QUERIES_AT_ONCE)
            known = np.maximum(rows[part], 0)
            vectors = self.stored[known.ravel()].reshape(*known.shape, -1)
            scores[part] = np.einsum("nkd,nd->nk", vectors, queries[part])
        scores[rows < 0] = -np.inf
        rows, scores = best_first(rows, scores)
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return self.stored[np.asarray(rows, dtype=np.int64)]
