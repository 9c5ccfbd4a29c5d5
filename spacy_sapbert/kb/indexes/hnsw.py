"""Approximate search in a graph, by hnswlib."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from .registry import best_first, check_width

FILE = "index.hnsw"
# links of a node; candidates kept while building; while searching; of the levels
DEFAULTS = {"M": 16, "ef_construction": 200, "ef": 100, "seed": 100}
BLOCK_ROWS = 4096

# How the file of a graph begins, and what is taken from it.
HEADER = np.dtype(
    {
        "names": ["level0", "count", "node", "label", "vector"],
        "formats": ["<u8"] * 5,
        "offsets": [0, 16, 24, 32, 40],
        "itemsize": 96,
    }
)


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
    """Read the graph; see `indexes.load_index`."""
    import hnswlib

    graph = hnswlib.Index(space="ip", dim=width)
    graph.load_index(str(path), max_elements=rows)
    # Saved with the graph is everything but this.
    graph.set_ef(settings["ef"])
    # What people set for torch and numpy holds here too; hnswlib takes all cores.
    if (threads := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        graph.set_num_threads(max(1, int(threads)))
    return HnswIndex(graph, map_vectors(path, rows=rows, width=width))


class NodeVectors(NamedTuple):
    """The vectors in the file of a graph.

    vectors (np.ndarray): Mapped, in the order of the nodes. Shape: (rows, width).
    nodes (np.ndarray): The node of each row. Shape: (rows,).
    """

    vectors: np.ndarray
    nodes: np.ndarray


def map_vectors(path: Path, *, rows: int, width: int) -> NodeVectors | None:
    """Map the vectors in the file of a graph, because hnswlib gives them out slowly.

    It makes a Python number of each value. In its file the nodes follow each other:
    links, vector, and number of the row.

    path (Path): The file, verified.
    rows (int): How many rows it holds.
    width (int): Of its vectors.
    RETURNS (NodeVectors | None): The vectors; None if the file is laid out in
        another way.
    SOURCE: hnswlib 0.8, `HierarchicalNSW::saveIndex`.
    """
    with open(path, "rb") as file:
        header = np.frombuffer(file.read(HEADER.itemsize), dtype=HEADER)
    size, start = int(header["node"][0]), int(header["vector"][0])
    label = start + 4 * width
    if (
        header["level0"][0] != 0
        or header["count"][0] != rows
        or header["label"][0] != label
        or size != label + 8
        or path.stat().st_size < HEADER.itemsize + rows * size
    ):
        return None
    node = np.dtype(
        {
            "names": ["vector", "row"],
            "formats": [("<f4", (width,)), "<u8"],
            "offsets": [start, label],
            "itemsize": size,
        }
    )
    # Taken from the map, they would bring almost every page of it into memory.
    with open(path, "rb") as file:
        file.seek(HEADER.itemsize)
        blocks = [
            np.fromfile(file, node, min(BLOCK_ROWS, rows - first))["row"].astype("<i8")
            for first in range(0, rows, BLOCK_ROWS)
        ]
    numbers = np.concatenate(blocks)
    if not np.array_equal(np.sort(numbers), np.arange(rows)):
        return None
    mapped = np.memmap(path, dtype=node, mode="r", offset=HEADER.itemsize, shape=rows)
    return NodeVectors(mapped["vector"].view(np.ndarray), np.argsort(numbers))


class HnswIndex:
    """A graph of hnswlib, guarded against what it does not check itself."""

    def __init__(self, graph: Any, mapped: NodeVectors | None = None) -> None:
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
        if self.mapped is None:
            return np.asarray(self.graph.get_items(rows), dtype=np.float32)
        vectors, nodes = self.mapped
        return np.array(vectors[nodes[rows]], dtype=np.float32)
