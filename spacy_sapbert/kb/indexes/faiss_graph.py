"""Approximate search in a graph of 8-bit codes, by faiss, and the full cosine after it.

The vectors are shortened (`pca`), the graph holds a byte for each value, and its first
results are ordered by the full vectors, which stay on the disk.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Errors, SapbertError
from ...system import forks
from ...system.progress import show_progress
from ...system.writing import link_file, sync_path
from . import projection, reranked
from .faiss_file import check_graph, count_rows
from .projection import project, sample_rows
from .registry import check_queries, import_library
from .reranked import RerankedIndex, open_reranked, write_full_rows
from .row_file import Vectors

LIBRARY, PACKAGE = "faiss", "faiss-cpu"
FILE = "index.faiss"
# links of a node; candidates kept while building; in each search; width of the short
# vectors, 0 = full; results ordered by the full cosine
DEFAULTS = {"M": 16, "ef_construction": 200, "ef": 100, "pca": 128, "rerank": 100}
RANGES = {
    "M": (2, 1024),
    "ef_construction": (1, 100_000),
    "ef": (1, 100_000),
    "pca": (0, 1 << 16),
    "rerank": (1, 100_000),
}
CHANGEABLE = {"ef", "rerank"}
BLOCK_ROWS = 65_536  # each call of `add` prepares memory for all rows
PART_ROWS = 16 * BLOCK_ROWS  # added between two saves of a large graph
# A search begins at one node and may end far from the best: each query has several.
STARTS = 6
LEAST_START_NODES = 1000  # that are compared with a query to choose its starts
SEPARATE_SEARCHES = 1  # a search of its own from each start; SOURCE: search_level_0
QUERIES_AT_ONCE = 256  # limits memory


def list_files(settings: Mapping[str, int]) -> list[str]:
    """Return the names of the files."""
    return [FILE, reranked.FILE, *([projection.FILE] if settings["pca"] else [])]


def short_width(settings: Mapping[str, int], width: int) -> int:
    """Return the width of the vectors in the graph."""
    return min(settings["pca"] or width, width)


def create_graph(settings: Mapping[str, int], width: int) -> Any:
    """Create an empty graph of 8-bit codes."""
    faiss = import_library("faiss")
    codes = faiss.ScalarQuantizer.QT_8bit
    return faiss.IndexHNSWSQ(width, codes, settings["M"], faiss.METRIC_INNER_PRODUCT)


def build_index(
    vectors: Vectors,
    folder: Path,
    *,
    settings: dict[str, int],
    threads: int,
    progress: bool,
    work: Path | None = None,
) -> None:
    """Build the graph and write it; see `registry.build_index`.

    With one thread the bytes are the same if the build was stopped and continues.
    """
    faiss = import_library("faiss")
    rows, width = vectors.shape
    matrix = write_full_rows(vectors, folder, width=settings["pca"], progress=progress)
    path = (work or folder) / FILE
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads or before)
    try:
        short = short_width(settings, width)
        graph = read_part(path, settings, short) if work else None
        if graph is None or graph.ntotal > rows:
            graph = create_graph(settings, short)
            graph.hnsw.efConstruction = settings["ef_construction"]
            graph.train(project(sample_rows(vectors), matrix))
        written = graph.ntotal
        with show_progress(
            total=rows,
            initial=written,
            unit="names",
            desc="Index",
            quiet=not progress,
        ) as bar:
            for start in range(written, rows, BLOCK_ROWS):
                block = vectors[start : start + BLOCK_ROWS]
                # A file has no state of the generator, which draws the levels.
                graph.hnsw.rng = faiss.RandomGenerator(start)
                graph.add(project(block, matrix))
                bar.update(len(block))
                if work and graph.ntotal - written >= PART_ROWS:
                    write_graph(graph, path)
                    written = graph.ntotal
        write_graph(graph, path)
    except RuntimeError as error:
        raise SapbertError(
            Errors.E004.format(path=path, reason=first_line(error))
        ) from None
    finally:
        faiss.omp_set_num_threads(before)
    if work:
        link_file(path, folder / FILE)


def read_part(path: Path, settings: Mapping[str, int], width: int) -> Any:
    """Read the graph of the first rows, of a build that was stopped; None = none.

    width (int): Of the short vectors.
    """
    try:
        rows = count_rows(path)
        check_graph(path, rows=rows, width=width, links=link_places(settings, width))
    except (OSError, SapbertError):
        return None
    return import_library("faiss").read_index(str(path))


def write_graph(graph: Any, path: Path) -> None:
    """Write a graph atomically.

    RAISES (RuntimeError): If the system refuses, e.g. because the disk is full.
    """
    part = path.with_suffix(".part")
    import_library("faiss").write_index(graph, str(part))
    sync_path(part)
    part.replace(path)


def link_places(settings: Mapping[str, int], width: int) -> np.ndarray:
    """Return the places for links of a node up to each level. Shape: (levels + 1,)."""
    empty = create_graph(settings, width)
    places: np.ndarray = import_library("faiss").vector_to_array(
        empty.hnsw.cum_nneighbor_per_level
    )
    return places


def first_line(error: Exception) -> str:
    """Return the text of an error of faiss, which begins with a place in its code."""
    return str(error).strip().splitlines()[0].rpartition("failed: ")[2]


def load_index(
    paths: Mapping[str, Path], *, settings: dict[str, int], rows: int, width: int
) -> RerankedIndex:
    """Check and map the graph; see `registry.load_index`."""
    faiss = import_library("faiss")
    if forks.forked:
        faiss.omp_set_num_threads(1)  # its other threads are not in this process
    path, short = paths[FILE], short_width(settings, width)
    check_graph(path, rows=rows, width=short, links=link_places(settings, short))
    try:
        graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        reason = first_line(error)
        raise SapbertError(Errors.E343.format(path=path, reason=reason)) from None
    graph.hnsw.efSearch = settings["ef"]
    return open_reranked(
        FaissGraph(graph), paths, rows=rows, width=width, depth=settings["rerank"]
    )


class FaissGraph:
    """The graph of the short vectors; its scores are not exact."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.width = int(graph.d)
        self.process = os.getpid()
        self.start_nodes = choose_start_nodes(graph)
        self.start_vectors = graph.reconstruct_batch(self.start_nodes)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        k = min(k, self.graph.ntotal)
        if self.process != os.getpid():  # forked: see `load_index`
            import_library("faiss").omp_set_num_threads(1)
            self.process = os.getpid()
        rows = np.empty((len(queries), k), dtype=np.int64)
        scores = np.empty((len(queries), k), dtype=np.float32)
        for first in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(first, first + QUERIES_AT_ONCE)
            self.search_part(queries[part], rows[part], scores[part])
        # Some node has no way to so many others: any other rows take the free places.
        for place in np.flatnonzero((rows < 0).any(axis=1)):
            free = rows[place] < 0
            others = np.setdiff1d(np.arange(k), rows[place])
            rows[place, free] = others[: free.sum()]
        return rows, scores

    def search_part(
        self, queries: np.ndarray, rows: np.ndarray, scores: np.ndarray
    ) -> None:
        """Search from the nearest start nodes, and write what was found to arrays.

        queries (np.ndarray): Shape: (n, width).
        rows (np.ndarray), scores (np.ndarray): Written. Shape: (n, k).
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        similar = queries @ self.start_vectors.T
        many = min(STARTS, similar.shape[1])
        nearest = np.argpartition(similar, -many, axis=1)[:, -many:]
        starts = np.ascontiguousarray(self.start_nodes[nearest], dtype=np.int32)
        cosines = np.ascontiguousarray(np.take_along_axis(similar, nearest, axis=1))
        pointer = import_library("faiss").swig_ptr
        self.graph.search_level_0(
            len(queries),
            pointer(queries),
            rows.shape[1],
            pointer(starts),
            pointer(cosines),
            pointer(scores),
            pointer(rows),
            many,
            SEPARATE_SEARCHES,
        )

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the short vectors, from their codes."""
        return np.stack([self.graph.reconstruct(int(row)) for row in rows])


def choose_start_nodes(graph: Any) -> np.ndarray:
    """Return the nodes of the highest level that has enough. Shape: (n,)."""
    levels = import_library("faiss").vector_to_array(graph.hnsw.levels)
    for level in range(int(levels.max()), 0, -1):
        nodes = np.flatnonzero(levels >= level)
        if len(nodes) >= LEAST_START_NODES:
            break
    return nodes
