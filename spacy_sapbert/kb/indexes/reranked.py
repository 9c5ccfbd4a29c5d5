"""A graph of shorter vectors, whose first results are ordered by the full cosine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import projection
from .backend import Backend, BuildRun, Index, best_first, check_queries, setting
from .projection import fit_projection, project, read_projection, sample_rows
from .row_file import RowFile, Vectors, write_rows

FILE = "index.i16"
QUERIES_AT_ONCE = 32  # re-ranked together: limits memory


@dataclass(frozen=True)
class GraphBackend(Backend):
    """A graph of vectors, shorter ones if `pca` is set, by any library.

    Attributes:
        M: Links of a node; 1 would give endless levels.
        ef_construction: Candidates kept while building.
        ef: Candidates kept while searching.
        pca: Width of the vectors in the graph; 0 = full.
        rerank: Results of the graph that are then ordered by the full cosine.
    """

    M: int = setting(16, 2, 1024)
    ef_construction: int = setting(200, 1, 100_000)
    ef: int = setting(100, 1, 100_000, changeable=True)
    pca: int = setting(0, 0, 1 << 16)
    rerank: int = setting(100, 1, 100_000, changeable=True)

    def graph_width(self, width: int) -> int:
        """Return the width of the vectors in the graph."""
        return min(self.pca or width, width)

    def write_full_rows(
        self, vectors: Vectors, folder: Path, run: BuildRun
    ) -> np.ndarray | None:
        """Write the full vectors, and return and write the directions of short ones.

        There are none for the full width. Shape: (width, short width).
        """
        write_rows(vectors, folder / FILE, compact=True, progress=run.progress)
        if not self.pca:
            return None
        matrix = fit_projection(sample_rows(vectors), self.pca)
        (folder / projection.FILE).write_bytes(matrix.tobytes())
        return matrix

    def open_full_rows(
        self, graph: Index, paths: Mapping[str, Path], rows: int, width: int
    ) -> "RerankedIndex":
        """Open what `write_full_rows` wrote for a graph."""
        matrix = None
        if self.pca:
            path = paths[projection.FILE]
            matrix = read_projection(path, full=width, width=graph.width)
        stored = RowFile(paths[FILE], rows=rows, width=width)
        return RerankedIndex(graph, matrix, stored, self.rerank)


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
