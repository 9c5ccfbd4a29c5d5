"""Approximate search in a graph of 8-bit codes, by faiss, and the full cosine after it.

The vectors are shortened (`pca`), the graph holds a byte for each value, and its first
results are ordered by the full vectors, which stay on the disk.
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
from . import projection, reranked
from .backend import BuildRun, Index, check_queries, setting
from .faiss_file import check_graph, count_rows
from .projection import project, sample_rows
from .reranked import GraphBackend
from .row_file import Vectors, damaged_index

FILE = "index.faiss"
BLOCK_ROWS = 65_536  # each call of `add` prepares memory for all rows
PART_ROWS = 16 * BLOCK_ROWS  # added between two saves of a large graph
# A search begins at one node and may end far from the best: each query has several.
STARTS = 6
LEAST_START_NODES = 1000  # that are compared with a query to choose its starts
SEPARATE_SEARCHES = 1  # a search of its own from each start; SOURCE: search_level_0
QUERIES_AT_ONCE = 256  # limits memory


@dataclass(frozen=True)
class Faiss(GraphBackend):
    """A graph of faiss."""

    name = "faiss"
    library, package = "faiss", "faiss-cpu"
    pca: int = setting(128, 0, 1 << 16)

    @property
    def files(self) -> list[str]:
        """See `Backend.files`."""
        return [FILE, reranked.FILE, *([projection.FILE] if self.pca else [])]

    def create_graph(self, width: int) -> Any:
        """Create an empty graph of 8-bit codes."""
        faiss = import_faiss()
        codes = faiss.ScalarQuantizer.QT_8bit
        return faiss.IndexHNSWSQ(width, codes, self.M, faiss.METRIC_INNER_PRODUCT)

    def check_file(self, path: Path, *, rows: int, width: int) -> None:
        """Check the file of a graph; see `check_graph`."""
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
        matrix = self.write_full_rows(vectors, folder, run)
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
        return self.open_full_rows(FaissGraph(graph), paths, rows, width)


def import_faiss() -> Any:
    """Import faiss, whose type hints lack much of it."""
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


class FaissGraph:
    """The graph of the short vectors; its scores are not exact."""

    def __init__(self, graph: Any) -> None:
        limit_threads()
        self.graph = graph
        self.width = int(graph.d)
        self.start_nodes = choose_start_nodes(graph)
        self.start_vectors = graph.reconstruct_batch(self.start_nodes)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        limit_threads()
        k = min(k, self.graph.ntotal)
        rows = np.empty((len(queries), k), dtype=np.int64)
        scores = np.empty((len(queries), k), dtype=np.float32)
        for first in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(first, first + QUERIES_AT_ONCE)
            self.search_part(queries[part], rows[part], scores[part])
        # Some node has no way to so many others: any other rows take the free places.
        for number in np.flatnonzero((rows < 0).any(axis=1)):
            free = rows[number] < 0
            others = np.setdiff1d(np.arange(k), rows[number])
            rows[number, free] = others[: free.sum()]
        return rows, scores

    def search_part(
        self, queries: np.ndarray, rows: np.ndarray, scores: np.ndarray
    ) -> None:
        """Search from the nearest start nodes, and write to `rows` and `scores`."""
        swig_ptr = import_faiss().swig_ptr
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

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the short vectors, from their codes."""
        return np.stack([self.graph.reconstruct(int(row)) for row in rows])


def choose_start_nodes(graph: Any) -> np.ndarray:
    """Return the nodes of the highest level that has enough. Shape: (n,)."""
    levels = import_faiss().vector_to_array(graph.hnsw.levels)
    for level in range(int(levels.max()), 0, -1):
        nodes = np.flatnonzero(levels >= level)
        if len(nodes) >= LEAST_START_NODES:
            break
    return nodes
