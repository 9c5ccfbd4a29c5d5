"""Approximate search in a graph of the full vectors, in memory, by hnswlib."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...io.progress import show_progress
from .backends import (
    Backend,
    BuildRun,
    Index,
    best_first,
    check_library,
    check_queries,
    is_usable,
    setting,
)
from .exact import keep_best
from .row_file import (
    RecordFile,
    Vectors,
    check_numbers,
    damaged_index,
    name_damage,
)

FILE = "index.hnsw"
MOST_EXACT_ROWS = 500_000  # compared one by one without hnswlib
BLOCK_ROWS = 4096
BLOCK_BYTES = 1 << 23
QUERIES = 16  # compared at once with all names
# The file has: this header; for each node its links, its vector and its row; and for
# each node the size of its links on the upper levels, and these links.
HEADER = np.dtype(
    [
        ("level0", "<u8"),
        ("capacity", "<u8"),
        ("count", "<u8"),
        ("node", "<u8"),  # bytes of the record of a node
        ("row", "<u8"),  # offsets in it
        ("vector", "<u8"),
        ("levels", "<i4"),
        ("entry", "<u4"),
        ("upper_links", "<u8"),  # maximum of a node
        ("links", "<u8"),
        ("M", "<u8"),
        ("scale", "<f8"),  # of random levels, used to add nodes
        ("ef_construction", "<u8"),
    ]
)


@dataclass(frozen=True)
class Hnsw(Backend):
    """A graph of hnswlib."""

    name = "hnsw"
    library = package = "hnswlib"
    loads_without = True
    M: int = setting(16, 2, 1024)  # links of a node; 1 would give endless levels
    ef_construction: int = setting(200, 1, 100_000)  # candidates kept while building
    ef: int = setting(100, 1, 100_000, changeable=True)  # … while searching
    seed: int = setting(100, 0, 2**32 - 1)  # of the levels of the nodes

    @property
    def files(self) -> list[str]:
        return [FILE]

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
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
        path = paths[FILE]
        node = describe_node(self.M, width)
        nodes = read_graph(path, node, M=self.M, rows=rows)
        if not is_usable(self.name):
            check_exact(self, rows)
            at = HEADER.itemsize
            mapped = np.memmap(path, dtype=node, mode="r", offset=at, shape=rows)
            return GraphVectors(mapped["vector"].view(np.ndarray), nodes)
        import hnswlib

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
        file = RecordFile(path, node, records=rows, start=HEADER.itemsize)
        return HnswIndex(graph, file, nodes)


def describe_node(M: int, width: int) -> np.dtype[Any]:
    """Return the record of a node."""
    return np.dtype(
        [
            ("links", "<u4", (1 + 2 * M,)),  # their number, and the nodes
            ("vector", "<f4", (width,)),
            ("row", "<u8"),
        ]
    )


def check_exact(backend: Backend, rows: int) -> None:
    """Warn that all rows will be compared; an error if these are too many."""
    if rows > MOST_EXACT_ROWS:
        check_library(backend)
    warnings.warn(
        f"[W560] Expected hnswlib for the index of {rows:,} names, but it is not "
        "installed. Every search compares all names, which takes longer. For the "
        "index, `pip install hnswlib`, which needs a C++ compiler; or `pip install "
        "faiss-cpu`, and build the knowledge base again with `--backend faiss`.",
        UserWarning,
        stacklevel=2,
    )


class GraphVectors:
    """The vectors of a graph, all compared where hnswlib is not installed."""

    def __init__(self, vectors: np.ndarray, nodes: np.ndarray) -> None:
        self.node_vectors = vectors  # (rows, width)
        self.nodes = nodes  # of each row
        self.width = vectors.shape[1]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`."""
        check_queries(queries, self.width)
        total = len(self.nodes)
        rows = np.empty((len(queries), min(k, total)), dtype=np.int64)
        scores = np.empty(rows.shape, dtype=np.float32)
        for start in range(0, len(queries), QUERIES):
            part = slice(start, start + QUERIES)
            cosines = np.empty((len(queries[part]), total), dtype=np.float32)
            # A slice is read where it is; rows would be copied, one by one.
            for at in range(0, total, BLOCK_ROWS):
                block = self.node_vectors[at : at + BLOCK_ROWS]
                cosines[:, at : at + BLOCK_ROWS] = queries[part] @ block.T
            every = np.broadcast_to(np.arange(total), cosines.shape)
            rows[part], scores[part] = keep_best(every, cosines[:, self.nodes], k)
        return best_first(rows, scores)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return np.array(self.node_vectors[self.nodes[rows]], dtype=np.float32)


class HnswIndex:
    """A graph of hnswlib, whose own functions do not check what they get.

    It has the vectors in memory, but makes a Python number of each value that it gives.
    So they are read from the file.
    """

    def __init__(self, graph: Any, file: RecordFile, nodes: np.ndarray) -> None:
        self.graph = graph
        self.file = file
        self.nodes = nodes  # of each row
        self.width = graph.dim

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return self.file[self.nodes[rows]]["vector"].astype(np.float32)

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


def read_graph(path: Path, node: np.dtype[Any], *, M: int, rows: int) -> np.ndarray:
    """Check the file of a graph, and return the node of each row.

    hnswlib follows every number without a check, into memory of other objects. SOURCE:
    hnswlib 0.8, `HierarchicalNSW::saveIndex` and `searchKnn`.
    """
    expected = {
        "level0": 0,
        "capacity": rows,
        "count": rows,
        "node": node.itemsize,
        "row": node.itemsize - 8,
        "vector": 4 * (1 + 2 * M),
        "upper_links": M,
        "links": 2 * M,
        "M": M,
    }
    with name_damage(path), open(path, "rb") as file:
        size = path.stat().st_size
        if size < HEADER.itemsize + rows * (node.itemsize + 4) or size % 4:
            raise ValueError(f"it has {size} bytes")
        header = np.fromfile(file, HEADER, 1)[0]
        check_numbers(header, expected)
        nodes = read_nodes(file, node, rows)
        check_upper_links(np.fromfile(file, "<u4"), header)
    return nodes


def read_nodes(file: BinaryIO, node: np.dtype[Any], rows: int) -> np.ndarray:
    """Check the links of all nodes on the lowest level; return the node of each row."""
    nodes = np.full(rows, -1, dtype=np.int64)
    at_once = max(1, BLOCK_BYTES // node.itemsize)
    for first in range(0, rows, at_once):
        block = np.fromfile(file, node, min(at_once, rows - first))
        links, row = block["links"], block["row"]
        # The upper bits of the number mark a deleted node; links that are not used
        # are 0 or were used before.
        if (links[:, 0] >= links.shape[1]).any() or (links[:, 1:] >= rows).any():
            raise ValueError("a link is out of range")
        if (row >= rows).any():
            raise ValueError("the row of a node is out of range")
        nodes[row] = np.arange(first, first + len(block))
    if (nodes < 0).any():
        raise ValueError("two nodes have the same row")
    return nodes


def check_upper_links(words: np.ndarray, header: Any) -> None:
    """Check the links on the upper levels: `words` are all numbers after the nodes."""
    rows, length = int(header["count"]), 1 + int(header["upper_links"])
    levels = np.zeros(rows, dtype=np.int32)
    starts: list[int] = []
    position = 0
    numbers = words.data  # much faster than an array to read one by one
    for node in range(rows):
        size = numbers[position] if position < len(numbers) else 0
        if size:
            levels[node], rest = divmod(size, 4 * length)
            if rest or levels[node] > header["levels"]:
                raise ValueError("the size of the links of a node is out of range")
            starts.append(position + 1)
        position += 1 + size // 4
    if position != len(numbers):
        raise ValueError("its length is not that of its links")
    if header["entry"] >= rows or levels[header["entry"]] != header["levels"]:
        raise ValueError("its first node is not on the highest level")
    tops = levels[levels > 0]
    for level in range(1, 1 + int(header["levels"])):
        first = np.array(starts)[tops >= level] + (level - 1) * length
        links = words[first[:, None] + np.arange(length)]  # (nodes, length)
        if (links[:, 0] >= length).any() or (links[:, 1:] >= rows).any():
            raise ValueError("a link is out of range")
        used = np.arange(1, length) <= links[:, :1]
        if (levels[links[:, 1:][used]] < level).any():
            raise ValueError("a link leads to a node that is not on its level")
