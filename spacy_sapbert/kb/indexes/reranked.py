"""A graph of shorter vectors, whose first results are ordered by the full cosine."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from . import projection as directions
from .projection import fit_projection, project, read_projection, sample_rows
from .registry import Index, best_first, check_queries
from .row_file import RowFile, Vectors, write_rows

FILE = "index.i16"
QUERIES_AT_ONCE = 32  # re-ranked together: limits memory


def write_full_rows(
    vectors: Vectors, folder: Path, *, width: int, progress: bool
) -> np.ndarray | None:
    """Write what re-ranking needs: the full vectors, and the directions.

    vectors (Vectors): Unit vectors. Shape: (rows, full width).
    folder (Path): Where to write them.
    width (int): Of the short vectors; 0 = full.
    progress (bool): Show a bar.
    RETURNS (np.ndarray | None): The directions; None for the full width.
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
    """Open the full vectors and the directions beside a graph.

    graph (Index): Of the short vectors.
    paths (Mapping[str, Path]): The files, by name.
    rows (int), width (int): Of the full vectors.
    depth (int): Results of the graph that are ordered by the full cosine.
    RAISES (SapbertError): If a file is damaged or of another size.
    """
    short = graph.width
    matrix = None
    if directions.FILE in paths:
        matrix = read_projection(paths[directions.FILE], full=width, width=short)
    stored = RowFile(paths[FILE], rows=rows, width=width)
    return RerankedIndex(graph, matrix, stored, depth)


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
            places = np.maximum(rows[part], 0)
            found = self.stored[places.ravel()].reshape(*places.shape, -1)
            scores[part] = np.einsum("nkd,nd->nk", found, queries[part])
        scores[rows < 0] = -np.inf
        rows, scores = best_first(rows, scores)
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return self.stored[np.asarray(rows, dtype=np.int64)]
