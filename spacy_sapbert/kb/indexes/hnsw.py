"""Approximate search in a graph, by hnswlib, then by the full cosine.

The graph has shortened vectors, since hnswlib reads its whole file into memory.
"""

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
    check_library,
    is_usable,
    setting,
)
from .exact import FILE as ROWS_FILE
from .exact import Exact
from .row_file import (
    RowFile,
    Vectors,
    check_numbers,
    damaged_index,
    name_damage,
    write_rows,
)
from .short_vectors import (
    PROJECTION_FILE,
    ShortIndex,
    fit_projection,
    project,
    read_projection,
    sample_rows,
)

FILE = "index.hnsw"
MOST_EXACT_ROWS = 500_000  # compared one by one without hnswlib
BLOCK_ROWS = 4096
BLOCK_BYTES = 1 << 23
# The file has: this header; for each node its links, its short vector and its row; and
# for each node the size of its links on the upper levels, and these links.
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
    ef_construction: int = setting(400, 1, 100_000)  # candidates kept while building
    ef: int = setting(100, 1, 100_000, changeable=True)  # … while searching
    seed: int = setting(100, 0, 2**32 - 1)  # of the levels of the nodes
    pca: int = setting(128, 0, 1 << 16)  # width in the graph; 0 = full
    rerank: int = setting(100, 1, 100_000, changeable=True)  # results ordered again

    @property
    def files(self) -> list[str]:
        return [FILE, ROWS_FILE, *([PROJECTION_FILE] if self.pca else [])]

    def graph_width(self, width: int) -> int:
        return min(self.pca or width, width)

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        import hnswlib

        rows, width = vectors.shape
        write_rows(vectors, folder / ROWS_FILE, compact=False, progress=run.progress)
        matrix = None
        if self.pca:
            matrix = fit_projection(sample_rows(vectors), self.pca)
            (folder / PROJECTION_FILE).write_bytes(matrix.tobytes())
        index = hnswlib.Index(space="ip", dim=self.graph_width(width))
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
                short = project(block, matrix)
                index.add_items(short, numbers, num_threads=run.threads or -1)
                bar.update(len(block))
        index.save_index(str(folder / FILE))

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> Index:
        path, short = paths[FILE], self.graph_width(width)
        check_graph(path, describe_node(self.M, short), M=self.M, rows=rows)
        if not is_usable(self.name):
            check_exact(self, rows)
            return Exact().load(paths, rows=rows, width=width)
        import hnswlib

        matrix = None
        if self.pca:
            matrix = read_projection(paths[PROJECTION_FILE], width, short)
        stored = RowFile(paths[ROWS_FILE], rows=rows, width=width, compact=False)

        graph = hnswlib.Index(space="ip", dim=short)
        try:
            graph.load_index(str(path), max_elements=rows)
        except RuntimeError as error:
            raise damaged_index(path=path, reason=error) from None
        # Saved with the graph is everything but this.
        graph.set_ef(self.ef)
        # The encoder has the other cores; threads for a few mentions gain nothing.
        graph.set_num_threads(1)
        return HnswIndex(graph, matrix, stored, self.rerank)


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


class HnswIndex(ShortIndex):
    """A graph of hnswlib, whose own functions do not check what they get."""

    def search_graph(self, queries: np.ndarray, rows: np.ndarray) -> None:
        if not rows.size:
            return
        try:
            rows[:] = self.graph.knn_query(queries, k=rows.shape[1])[0]
        except RuntimeError:
            # Some node has no way to so many others: it raises rather than returning
            # what it found. The other queries find what they would find alone.
            if len(queries) > 1:
                for number in range(len(queries)):
                    one = slice(number, number + 1)
                    self.search_graph(queries[one], rows[one])
            else:
                self.search_graph(queries, rows[:, : rows.shape[1] // 2])


def check_graph(path: Path, node: np.dtype[Any], *, M: int, rows: int) -> None:
    """Check the file of a graph.

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
        check_nodes(file, node, rows)
        check_upper_links(np.fromfile(file, "<u4"), header)


def check_nodes(file: BinaryIO, node: np.dtype[Any], rows: int) -> None:
    """Check the rows of all nodes, and their links on the lowest level."""
    has_node = np.zeros(rows, dtype=bool)
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
        has_node[row] = True
    if not has_node.all():
        raise ValueError("two nodes have the same row")


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
