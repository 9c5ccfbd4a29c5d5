"""Approximate search in a graph of 8-bit codes, by faiss, and the full cosine after it.

The vectors are shortened (`pca`), the graph holds a byte for each value, and its first
results are ordered by the full vectors, which stay on the disk: a sixth of the memory
of hnsw.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import SapbertError, not_written
from ...io import forks
from ...io.progress import show_progress
from ...io.writing import link_file, sync_path
from .backend import Backend, BuildRun, Index, best_first, check_queries, setting
from .faiss_file import check_graph, count_rows
from .projection import fit_projection, project, read_projection, sample_rows
from .row_file import RowFile, Vectors, damaged_index, write_rows

FILE = "index.faiss"
PROJECTION_FILE = "index.pca"
ROWS_FILE = "index.i16"
BLOCK_ROWS = 65_536  # each call of `add` prepares memory for all rows
PART_ROWS = 16 * BLOCK_ROWS  # added between two saves of a large graph
# A search begins at one node and may end far from the best: each query has several.
STARTS = 6
LEAST_START_NODES = 1000  # that are compared with a query to choose its starts
SEPARATE_SEARCHES = 1  # a search of its own from each start; SOURCE: search_level_0
QUERIES_AT_ONCE = 256  # limits memory
RERANKED_AT_ONCE = 32  # also


@dataclass(frozen=True)
class Faiss(Backend):
    """A graph of faiss.

    Attributes:
        M: Links of a node; 1 would give endless levels.
        ef_construction: Candidates kept while building.
        ef: Candidates kept while searching.
        pca: Width of the vectors in the graph; 0 = full.
        rerank: Results of the graph that are then ordered by the full cosine.
    """

    name = "faiss"
    library, package = "faiss", "faiss-cpu"
    M: int = setting(16, 2, 1024)
    ef_construction: int = setting(200, 1, 100_000)
    ef: int = setting(100, 1, 100_000, changeable=True)
    pca: int = setting(128, 0, 1 << 16)
    rerank: int = setting(100, 1, 100_000, changeable=True)

    @property
    def files(self) -> list[str]:
        """See `Backend.files`."""
        return [FILE, ROWS_FILE, *([PROJECTION_FILE] if self.pca else [])]

    def graph_width(self, width: int) -> int:
        """Return the width of the vectors in the graph."""
        return min(self.pca or width, width)

    def create_graph(self, width: int) -> Any:
        faiss = import_faiss()
        codes = faiss.ScalarQuantizer.QT_8bit
        return faiss.IndexHNSWSQ(width, codes, self.M, faiss.METRIC_INNER_PRODUCT)

    def check_file(self, path: Path, *, rows: int, width: int) -> None:
        empty = self.create_graph(width)  # must live while its numbers are copied
        places = empty.hnsw.cum_nneighbor_per_level
        links = import_faiss().vector_to_array(places)
        check_graph(path, rows=rows, width=width, links=links)

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        """Build the graph and write it; see `Backend.build`.

        With one thread the bytes are the same if the build was stopped and continues.
        """
        faiss = import_faiss()
        rows, width = vectors.shape
        write_rows(vectors, folder / ROWS_FILE, compact=True, progress=run.progress)
        matrix = None
        if self.pca:
            matrix = fit_projection(sample_rows(vectors), self.pca)
            (folder / PROJECTION_FILE).write_bytes(matrix.tobytes())
        path = (run.work or folder) / FILE
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(run.threads or before)
        try:
            short = self.graph_width(width)
            graph = self.read_part(path, short) if run.work else None
            if graph is None or graph.ntotal > rows:
                graph = self.create_graph(short)
                graph.hnsw.efConstruction = self.ef_construction
                graph.train(project(sample_rows(vectors), matrix))
            written = graph.ntotal
            with show_progress(
                total=rows,
                initial=written,
                unit="names",
                desc="Index",
                quiet=not run.progress,
            ) as bar:
                for start in range(written, rows, BLOCK_ROWS):
                    block = vectors[start : start + BLOCK_ROWS]
                    # A file has no state of the generator, which draws the levels.
                    graph.hnsw.rng = faiss.RandomGenerator(start)
                    graph.add(project(block, matrix))
                    bar.update(len(block))
                    if run.work and graph.ntotal - written >= PART_ROWS:
                        write_graph(graph, path)
                        written = graph.ntotal
            write_graph(graph, path)
        except RuntimeError as error:
            raise not_written(path=path, reason=first_line(error)) from None
        finally:
            faiss.omp_set_num_threads(before)
        if run.work:
            link_file(path, folder / FILE)

    def read_part(self, path: Path, width: int) -> Any:
        """Read the graph of a build that was stopped; None = there is none."""
        try:
            self.check_file(path, rows=count_rows(path), width=width)
        except (OSError, SapbertError):
            return None
        return import_faiss().read_index(str(path))

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> Index:
        """Check and map the graph; see `Backend.load`."""
        faiss = import_faiss()
        path = paths[FILE]
        self.check_file(path, rows=rows, width=self.graph_width(width))
        try:
            graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            reason = first_line(error)
            raise damaged_index(path=path, reason=reason) from None
        graph.hnsw.efSearch = self.ef
        matrix = None
        if self.pca:
            short = self.graph_width(width)
            matrix = read_projection(paths[PROJECTION_FILE], full=width, width=short)
        stored = RowFile(paths[ROWS_FILE], rows=rows, width=width)
        return FaissIndex(graph, matrix, stored, self.rerank)


def import_faiss() -> Any:
    """Import faiss, whose type hints lack much of it, when it is used."""
    return import_module("faiss")


def write_graph(graph: Any, path: Path) -> None:
    """Write a graph atomically; a full disk is a RuntimeError."""
    part = path.with_suffix(".part")
    import_faiss().write_index(graph, str(part))
    sync_path(part)
    part.replace(path)


def first_line(error: Exception) -> str:
    """Return the text of an error of faiss, which begins with a place in its code."""
    return str(error).strip().splitlines()[0].rpartition("failed: ")[2]


def limit_threads() -> None:
    """Use one thread in a forked process, which lacks the other threads of faiss."""
    if forks.forked:
        import_faiss().omp_set_num_threads(1)


class FaissIndex:
    """A graph of the short vectors, whose scores are not exact, and the full ones."""

    def __init__(
        self, graph: Any, matrix: np.ndarray | None, stored: RowFile, depth: int
    ) -> None:
        limit_threads()
        self.graph = graph
        self.matrix = matrix  # (width, short width)
        self.stored = stored
        self.depth = depth
        self.width = stored.shape[1]
        self.start_nodes = choose_start_nodes(graph)
        self.start_vectors = graph.reconstruct_batch(self.start_nodes)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        rows = self.search_graph(project(queries, self.matrix), max(k, self.depth))
        scores = np.empty(rows.shape, dtype=np.float32)
        for start in range(0, len(queries), RERANKED_AT_ONCE):
            part = slice(start, start + RERANKED_AT_ONCE)
            vectors = self.stored[rows[part].ravel()].reshape(*rows[part].shape, -1)
            scores[part] = np.einsum("nkd,nd->nk", vectors, queries[part])
        rows, scores = best_first(rows, scores)
        return rows[:, :k], scores[:, :k]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return self.stored[np.asarray(rows, dtype=np.int64)]

    def search_graph(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Return the rows of the nearest short vectors. Shape: (n, up to k)."""
        limit_threads()
        k = min(k, self.graph.ntotal)
        rows = np.empty((len(queries), k), dtype=np.int64)
        for first in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(first, first + QUERIES_AT_ONCE)
            self.search_part(queries[part], rows[part])
        # Some node has no way to so many others: any other rows take the free places.
        for number in np.flatnonzero((rows < 0).any(axis=1)):
            free = rows[number] < 0
            others = np.setdiff1d(np.arange(k), rows[number])
            rows[number, free] = others[: free.sum()]
        return rows

    def search_part(self, queries: np.ndarray, rows: np.ndarray) -> None:
        """Search from the nearest start nodes, and write to `rows`."""
        swig_ptr = import_faiss().swig_ptr
        scores = np.empty(rows.shape, dtype=np.float32)  # of the codes, not used
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        similar = queries @ self.start_vectors.T
        many = min(STARTS, similar.shape[1])
        nearest = np.argpartition(similar, -many, axis=1)[:, -many:]
        starts = np.ascontiguousarray(self.start_nodes[nearest], dtype=np.int32)
        cosines = np.ascontiguousarray(np.take_along_axis(similar, nearest, axis=1))
        self.graph.search_level_0(
            len(queries),
            swig_ptr(queries),
            rows.shape[1],
            swig_ptr(starts),
            swig_ptr(cosines),
            swig_ptr(scores),
            swig_ptr(rows),
            many,
            SEPARATE_SEARCHES,
        )


def choose_start_nodes(graph: Any) -> np.ndarray:
    """Return the nodes of the highest level that has enough. Shape: (n,)."""
    levels = import_faiss().vector_to_array(graph.hnsw.levels)
    for level in range(int(levels.max()), 0, -1):
        nodes = np.flatnonzero(levels >= level)
        if len(nodes) >= LEAST_START_NODES:
            break
    return nodes
