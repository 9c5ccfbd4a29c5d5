"""Approximate search in a graph, by hnswlib."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ...errors import Errors, SapbertError
from .hnsw_file import NodeVectors, read_graph
from .registry import best_first, check_width

FILE = "index.hnsw"
# links of a node; candidates kept while building; while searching; of the levels
DEFAULTS = {"M": 16, "ef_construction": 200, "ef": 100, "seed": 100}
RANGES = {
    "M": (2, 1024),  # with 1 the number of levels is infinite
    "ef_construction": (1, 100_000),
    "ef": (1, 100_000),
    "seed": (0, 2**32 - 1),
}
CHANGEABLE = {"ef"}
BLOCK_ROWS = 4096


def build_index(
    vectors: np.ndarray,
    folder: Path,
    *,
    settings: dict[str, int],
    threads: int,
    progress: bool,
) -> None:
    """Build the graph and write it; see `indexes.build_index`."""
    import hnswlib

    index = hnswlib.Index(space="ip", dim=vectors.shape[1])
    index.init_index(
        max_elements=len(vectors),
        M=settings["M"],
        ef_construction=settings["ef_construction"],
        random_seed=settings["seed"],
    )
    with tqdm(
        total=len(vectors), unit=" names", desc="Index", disable=not progress
    ) as bar:
        for start in range(0, len(vectors), BLOCK_ROWS):
            block = np.asarray(vectors[start : start + BLOCK_ROWS], dtype=np.float32)
            numbers = np.arange(start, start + len(block))
            index.add_items(block, numbers, num_threads=threads or -1)
            bar.update(len(block))
    index.save_index(str(folder / FILE))


def load_index(
    path: Path, *, settings: dict[str, int], rows: int, width: int
) -> "HnswIndex":
    """Check and read the graph; see `indexes.load_index`."""
    import hnswlib

    mapped = read_graph(path, M=settings["M"], rows=rows, width=width)
    graph = hnswlib.Index(space="ip", dim=width)
    try:
        graph.load_index(str(path), max_elements=rows)
    except RuntimeError as error:
        raise SapbertError(Errors.E343.format(path=path, reason=error)) from None
    # Saved with the graph is everything but this.
    graph.set_ef(settings["ef"])
    # What people set for torch and numpy holds here too; hnswlib takes all cores.
    if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        graph.set_num_threads(max(1, int(threads)))
    return HnswIndex(graph, mapped)


class HnswIndex:
    """A graph of hnswlib, guarded against what it does not check itself."""

    def __init__(self, graph: Any, mapped: NodeVectors) -> None:
        self.graph = graph
        self.mapped = mapped

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_width(queries, self.graph.dim)
        k = min(k, self.graph.element_count)
        if not len(queries):
            return np.empty((0, k), dtype=np.int64), np.empty((0, k), dtype=np.float32)
        while True:
            try:
                rows, distances = self.graph.knn_query(queries, k=k)
                break
            except RuntimeError:
                # Some node has no way to so many others: it raises rather than
                # returning what it found.
                if k == 1:
                    raise
                k //= 2
        return best_first(rows.astype(np.int64), 1 - distances)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        vectors, nodes = self.mapped
        return np.array(vectors[nodes[rows]], dtype=np.float32)
