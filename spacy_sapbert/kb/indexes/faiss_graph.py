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
from . import projection, reranked
from .faiss_file import check_graph
from .projection import project, sample_rows
from .registry import Size, check_queries, import_library
from .reranked import RerankedIndex, rerank, write_full_rows
from .row_file import Vectors

LIBRARY, PACKAGE = "faiss", "faiss-cpu"
FILE = "index.faiss"
# links of a node; candidates kept while building; while searching; width of the short
# vectors, 0 = full; results ordered by the full cosine
DEFAULTS = {"M": 16, "ef_construction": 200, "ef": 256, "pca": 128, "rerank": 100}
RANGES = {
    "M": (2, 1024),
    "ef_construction": (1, 100_000),
    "ef": (1, 100_000),
    "pca": (0, 1 << 16),
    "rerank": (1, 100_000),
}
CHANGEABLE = {"ef", "rerank"}
ABSENT: dict[str, int] = {}
BLOCK_ROWS = 65_536  # each call of `add` prepares memory for all rows


def list_files(settings: Mapping[str, int]) -> list[str]:
    """Return the names of the files."""
    return [FILE, reranked.FILE, *([projection.FILE] if settings["pca"] else [])]


def short_width(settings: Mapping[str, int], width: int) -> int:
    """Return the width of the vectors in the graph."""
    return min(settings["pca"] or width, width)


def estimate_size(rows: int, width: int, settings: Mapping[str, int]) -> Size:
    """See `registry.estimate_size`."""
    graph = rows * (short_width(settings, width) + 8 * settings["M"] + 20)
    # faiss doubles its arrays when they are full.
    return Size(memory=graph, building=2 * graph, disk=graph + 2 * rows * width)


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
) -> None:
    """Build the graph and write it; see `registry.build_index`."""
    faiss = import_library("faiss")
    rows, width = vectors.shape
    matrix = write_full_rows(vectors, folder, width=settings["pca"], progress=progress)
    graph = create_graph(settings, short_width(settings, width))
    graph.hnsw.efConstruction = settings["ef_construction"]
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads or before)
    try:
        graph.train(project(sample_rows(vectors), matrix))
        with show_progress(
            total=rows, unit="names", desc="Index", quiet=not progress
        ) as bar:
            for start in range(0, rows, BLOCK_ROWS):
                block = vectors[start : start + BLOCK_ROWS]
                graph.add(project(block, matrix))
                bar.update(len(block))
        faiss.write_index(graph, str(folder / FILE))
    except RuntimeError as error:
        raise SapbertError(
            Errors.E004.format(path=folder / FILE, reason=first_line(error))
        ) from None
    finally:
        faiss.omp_set_num_threads(before)


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
    empty = create_graph(settings, short)
    links = faiss.vector_to_array(empty.hnsw.cum_nneighbor_per_level)
    check_graph(path, rows=rows, width=short, links=links)
    try:
        graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        reason = first_line(error)
        raise SapbertError(Errors.E343.format(path=path, reason=reason)) from None
    graph.hnsw.efSearch = settings["ef"]
    return rerank(
        FaissGraph(graph), paths, rows=rows, width=width, depth=settings["rerank"]
    )


class FaissGraph:
    """The graph of the short vectors; its scores are not exact."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.width = int(graph.d)
        self.process = os.getpid()

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        k = min(k, self.graph.ntotal)
        if self.process != os.getpid():  # forked: see `load_index`
            import_library("faiss").omp_set_num_threads(1)
            self.process = os.getpid()
        if not len(queries):
            return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32)
        scores, rows = self.graph.search(queries, k)
        # Some node has no way to so many others: any other rows take the free places.
        for place in np.flatnonzero((rows < 0).any(axis=1)):
            free = rows[place] < 0
            others = np.setdiff1d(np.arange(k), rows[place])
            rows[place, free] = others[: free.sum()]
        return rows, scores

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the short vectors, from their codes."""
        return np.stack([self.graph.reconstruct(int(row)) for row in rows])
