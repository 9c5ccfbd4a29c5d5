"""Approximate search in a graph of the full vectors, in memory, by hnswlib."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...io.progress import show_progress
from .backend import Backend, BuildRun, Index, best_first, check_queries, setting
from .hnsw_file import read_graph
from .row_file import Vectors, damaged_index

FILE = "index.hnsw"
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Hnsw(Backend):
    """A graph of hnswlib.

    Attributes:
        M: Links of a node; 1 would give endless levels.
        ef_construction: Candidates kept while building.
        ef: Candidates kept while searching.
        seed: Of the levels of the nodes.
    """

    name = "hnsw"
    library = package = "hnswlib"
    M: int = setting(16, 2, 1024)
    ef_construction: int = setting(200, 1, 100_000)
    ef: int = setting(100, 1, 100_000, changeable=True)
    seed: int = setting(100, 0, 2**32 - 1)

    @property
    def files(self) -> list[str]:
        """See `Backend.files`."""
        return [FILE]

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        """Build the graph and write it; see `Backend.build`."""
        import hnswlib

        rows, width = vectors.shape
        index = hnswlib.Index(space="ip", dim=width)
        index.init_index(
            max_elements=rows,
            M=self.M,
            ef_construction=self.ef_construction,
            random_seed=self.seed,
        )
        with show_progress(
            total=rows, unit="names", desc="Index", quiet=not run.progress
        ) as bar:
            for start in range(0, rows, BLOCK_ROWS):
                block = vectors[start : start + BLOCK_ROWS]
                numbers = np.arange(start, start + len(block))
                index.add_items(block, numbers, num_threads=run.threads or -1)
                bar.update(len(block))
        index.save_index(str(folder / FILE))

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> Index:
        """Check and read the graph; see `Backend.load`."""
        import hnswlib

        path = paths[FILE]
        vectors, nodes = read_graph(path, M=self.M, rows=rows, width=width)
        graph = hnswlib.Index(space="ip", dim=width)
        try:
            graph.load_index(str(path), max_elements=rows)
        except RuntimeError as error:
            raise damaged_index(path=path, reason=error) from None
        # Saved with the graph is everything but this.
        graph.set_ef(self.ef)
        # What people set for torch and numpy holds here too; hnswlib takes all cores.
        if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
            graph.set_num_threads(max(1, int(threads)))
        return HnswIndex(graph, vectors, nodes)


class HnswIndex:
    """A graph of hnswlib, whose own functions do not check what they get."""

    def __init__(self, graph: Any, vectors: np.ndarray, nodes: np.ndarray) -> None:
        self.graph = graph
        self.node_vectors = vectors  # (rows, width)
        self.nodes = nodes  # of each row
        self.width = int(graph.dim)

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`; row −1 where the graph reaches no more rows."""
        check_queries(queries, self.width)
        k = min(k, self.graph.element_count)
        rows = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        if not rows.size:
            return rows, scores
        try:
            labels, distances = self.graph.knn_query(queries, k=k)
            return best_first(labels.astype(np.int64), 1 - distances)
        except RuntimeError:
            # Some node has no way to so many others: it raises rather than returning
            # what it found. The other queries find what they would find alone.
            if len(queries) > 1:
                for number, query in enumerate(queries):
                    rows[number], scores[number] = self.search(query[None], k)
            else:
                rows[:, : k // 2], scores[:, : k // 2] = self.search(queries, k // 2)
            return rows, scores

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `Index.vectors`."""
        return np.array(self.node_vectors[self.nodes[rows]], dtype=np.float32)
