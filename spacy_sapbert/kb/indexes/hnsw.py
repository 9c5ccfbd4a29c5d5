"""Approximate search in a graph, by hnswlib; with shorter vectors in it, if set."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Errors, SapbertError
from ...system.progress import show_progress
from . import projection, reranked
from .hnsw_file import NodeVectors, read_graph
from .projection import project
from .registry import Index, best_first, check_queries, import_library
from .reranked import open_reranked, write_full_rows
from .row_file import Vectors

LIBRARY = PACKAGE = "hnswlib"
FILE = "index.hnsw"
# links of a node; candidates kept while building; while searching; of the levels;
# width of shorter vectors in the graph, 0 = full, and of its results those that are
# then ordered by the full cosine
DEFAULTS = {
    "M": 16,
    "ef_construction": 200,
    "ef": 100,
    "seed": 100,
    "pca": 0,
    "rerank": 100,
}
RANGES = {
    "M": (2, 1024),  # with 1 the number of levels is infinite
    "ef_construction": (1, 100_000),
    "ef": (1, 100_000),
    "seed": (0, 2**32 - 1),
    "pca": (0, 1 << 16),
    "rerank": (1, 100_000),
}
CHANGEABLE = {"ef", "rerank"}
BLOCK_ROWS = 4096


def list_files(settings: Mapping[str, int]) -> list[str]:
    """Return the names of the files."""
    return [FILE, *([projection.FILE, reranked.FILE] if settings["pca"] else [])]


def build_index(
    vectors: Vectors,
    folder: Path,
    *,
    settings: dict[str, int],
    threads: int,
    progress: bool,
    work: Path | None = None,
) -> None:
    """Build the graph and write it; see `registry.build_index`."""
    hnswlib = import_library("hnswlib")
    rows, width = vectors.shape
    matrix = None
    if settings["pca"]:
        matrix = write_full_rows(
            vectors, folder, width=settings["pca"], progress=progress
        )
        width = min(settings["pca"], width)
    index = hnswlib.Index(space="ip", dim=width)
    index.init_index(
        max_elements=rows,
        M=settings["M"],
        ef_construction=settings["ef_construction"],
        random_seed=settings["seed"],
    )
    with show_progress(
        total=rows, unit="names", desc="Index", quiet=not progress
    ) as bar:
        for start in range(0, rows, BLOCK_ROWS):
            block = project(vectors[start : start + BLOCK_ROWS], matrix)
            numbers = np.arange(start, start + len(block))
            index.add_items(block, numbers, num_threads=threads or -1)
            bar.update(len(block))
    index.save_index(str(folder / FILE))


def load_index(
    paths: Mapping[str, Path], *, settings: dict[str, int], rows: int, width: int
) -> Index:
    """Check and read the graph; see `registry.load_index`."""
    short = min(settings["pca"] or width, width)
    path = paths[FILE]
    mapped = read_graph(path, M=settings["M"], rows=rows, width=short)
    graph = import_library("hnswlib").Index(space="ip", dim=short)
    try:
        graph.load_index(str(path), max_elements=rows)
    except RuntimeError as error:
        raise SapbertError(Errors.E343.format(path=path, reason=error)) from None
    # Saved with the graph is everything but this.
    graph.set_ef(settings["ef"])
    # What people set for torch and numpy holds here too; hnswlib takes all cores.
    if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        graph.set_num_threads(max(1, int(threads)))
    index = HnswIndex(graph, mapped)
    if not settings["pca"]:
        return index
    return open_reranked(index, paths, rows=rows, width=width, depth=settings["rerank"])


class HnswIndex:
    """A graph of hnswlib, guarded against what it does not check itself."""

    def __init__(self, graph: Any, mapped: NodeVectors) -> None:
        self.graph = graph
        self.mapped = mapped
        self.width = int(graph.dim)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        k = min(k, self.graph.element_count)
        if not len(queries):
            return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32)
        try:
            rows, distances = self.graph.knn_query(queries, k=k)
        except RuntimeError:
            # Some node has no way to so many others: it raises rather than returning
            # what it found. The other queries find what they would find alone.
            parts = [self.search_one(query, k) for query in queries]
            found, scores = map(np.concatenate, zip(*parts, strict=True))
            return found, scores
        return best_first(rows.astype(np.int64), 1 - distances)

    def search_one(self, query: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find as many rows as the graph reaches; the rest is row −1.

        Shape: (width,) → (1, k) each.
        """
        rows = np.full((1, k), -1, dtype=np.int64)
        scores = np.full((1, k), -np.inf, dtype=np.float32)
        count = k
        while count:
            try:
                found, distances = self.graph.knn_query(query[None], k=count)
            except RuntimeError:
                count //= 2
                continue
            rows[:, :count], scores[:, :count] = best_first(
                found.astype(np.int64), 1 - distances
            )
            break
        return rows, scores

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        vectors, nodes = self.mapped
        return np.array(vectors[nodes[rows]], dtype=np.float32)
