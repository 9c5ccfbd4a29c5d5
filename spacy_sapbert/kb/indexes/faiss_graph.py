"""Approximate search in a graph of 8-bit codes, by faiss, then by the full cosine.

The graph has shortened vectors, a byte for each value: a third of the memory of hnsw.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import not_written
from ...io import forks
from ...io.progress import show_progress
from .backends import Backend, BuildRun, Index, setting
from .row_file import (
    RowFile,
    Vectors,
    check_numbers,
    check_size,
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

FILE = "index.faiss"
ROWS_FILE = "index.i16"
BLOCK_ROWS = 65_536  # each call of `add` prepares memory for all rows
# A search begins at one node and may end far from the best: each query has several.
STARTS = 6
LEAST_START_NODES = 1000  # that are compared with a query to choose its starts
SEPARATE_SEARCHES = 1  # a search of its own from each start; SOURCE: search_level_0
LINKS_AT_ONCE = 1 << 18  # nodes whose links are checked together
MAX_VALUE = 4.0  # of a range of codes; the values of unit vectors are from −1 to 1


@dataclass(frozen=True)
class Faiss(Backend):
    """A graph of faiss."""

    name = "faiss"
    library, package = "faiss", "faiss-cpu"
    M: int = setting(16, 2, 1024)  # links of a node; 1 would give endless levels
    ef_construction: int = setting(200, 1, 100_000)  # candidates kept while building
    ef: int = setting(100, 1, 100_000, changeable=True)  # … while searching
    pca: int = setting(128, 0, 1 << 16)  # width in the graph; 0 = full
    rerank: int = setting(100, 1, 100_000, changeable=True)  # results ordered again

    @property
    def files(self) -> list[str]:
        return [FILE, ROWS_FILE, *([PROJECTION_FILE] if self.pca else [])]

    def graph_width(self, width: int) -> int:
        return min(self.pca or width, width)

    def create_graph(self, width: int) -> Any:
        faiss = import_faiss()
        codes = faiss.ScalarQuantizer.QT_8bit
        return faiss.IndexHNSWSQ(width, codes, self.M, faiss.METRIC_INNER_PRODUCT)

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        faiss = import_faiss()
        rows, width = vectors.shape
        write_rows(vectors, folder / ROWS_FILE, compact=True, progress=run.progress)
        matrix, sample, path = None, sample_rows(vectors), folder / FILE
        if self.pca:
            matrix = fit_projection(sample, self.pca)
            (folder / PROJECTION_FILE).write_bytes(matrix.tobytes())
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(run.threads or before)
        try:
            graph = self.create_graph(self.graph_width(width))
            graph.hnsw.efConstruction = self.ef_construction
            graph.train(project(sample, matrix))
            del sample  # some hundred MB
            with show_progress(
                total=rows, unit="names", desc="Index", quiet=not run.progress
            ) as bar:
                for start in range(0, rows, BLOCK_ROWS):
                    block = vectors[start : start + BLOCK_ROWS]
                    graph.add(project(block, matrix))
                    bar.update(len(block))
            faiss.write_index(graph, str(path))
        except RuntimeError as error:
            raise not_written(path=path, reason=first_line(error)) from None
        finally:
            faiss.omp_set_num_threads(before)

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> Index:
        faiss = import_faiss()
        path, short = paths[FILE], self.graph_width(width)
        empty = self.create_graph(short)  # must live while its numbers are copied
        links = faiss.vector_to_array(empty.hnsw.cum_nneighbor_per_level)
        with name_damage(path):
            check_graph(path, rows=rows, width=short, links=links)
        try:
            graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise damaged_index(path=path, reason=first_line(error)) from None
        graph.hnsw.efSearch = self.ef
        matrix = None
        if self.pca:
            matrix = read_projection(paths[PROJECTION_FILE], width, short)
        stored = RowFile(paths[ROWS_FILE], rows=rows, width=width)
        return FaissIndex(graph, matrix, stored, self.rerank)


def import_faiss() -> Any:
    """Import faiss, whose type hints lack much of it, when it is used."""
    return import_module("faiss")


def first_line(error: Exception) -> str:
    """Return the text of an error of faiss, which begins with a place in its code."""
    return str(error).strip().splitlines()[0].rpartition("failed: ")[2]


def limit_threads() -> None:
    """Use one thread in a forked process, which lacks the other threads of faiss."""
    if forks.forked:
        import_faiss().omp_set_num_threads(1)


class FaissIndex(ShortIndex):
    """A graph of faiss, with bytes for values."""

    def __init__(
        self, graph: Any, matrix: np.ndarray | None, stored: RowFile, depth: int
    ) -> None:
        limit_threads()
        super().__init__(graph, matrix, stored, depth)
        self.start_nodes = choose_start_nodes(graph)
        self.start_vectors = graph.reconstruct_batch(self.start_nodes)

    def search_graph(self, queries: np.ndarray, rows: np.ndarray) -> None:
        limit_threads()
        swig_ptr = import_faiss().swig_ptr
        scores = np.empty(rows.shape, dtype=np.float32)  # of the codes, not used
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
        # Some node has no way to so many others: any other rows take the free places.
        for number in np.flatnonzero((rows < 0).any(axis=1)):
            free = rows[number] < 0
            others = np.setdiff1d(np.arange(rows.shape[1]), rows[number])
            rows[number, free] = others[: free.sum()]


def choose_start_nodes(graph: Any) -> np.ndarray:
    """Return the nodes of the highest level that has enough. Shape: (n,)."""
    levels = import_faiss().vector_to_array(graph.hnsw.levels)
    for level in range(int(levels.max()), 0, -1):
        nodes = np.flatnonzero(levels >= level)
        if len(nodes) >= LEAST_START_NODES:
            break
    return nodes


# The file of a graph. faiss checks most numbers when it reads one, but not that a link
# leads to a node of its own level, and it reads any other index that a file may have.

HEADER = [
    ("kind", "S4"),
    ("width", "<i4"),
    ("rows", "<i8"),
    ("unused", "<i8", (2,)),
    ("trained", "u1"),
    ("metric", "<i4"),
]


def describe_start(rows: int, levels: int) -> np.dtype[Any]:
    """Return the layout of a file up to the links; each array has its length before.

    Of each node it has the number of its levels, and the place of its links.
    """
    return np.dtype(
        [
            *HEADER,
            ("chance_count", "<u8"),
            ("chances", "<f8", (levels,)),
            ("place_count", "<u8"),
            ("places", "<i4", (levels + 1,)),  # for links up to each level
            ("level_count", "<u8"),
            ("levels", "<i4", (rows,)),
            ("start_count", "<u8"),
            ("starts", "<u8", (rows + 1,)),
            ("link_count", "<u8"),
        ]
    )


def describe_end(width: int) -> np.dtype[Any]:
    """Return the layout between the links and the codes."""
    return np.dtype(
        [
            ("entry", "<i4"),
            ("top", "<i4"),  # the highest level
            ("search", "<i4", (3,)),
            *HEADER,
            ("type", "<i4"),  # 0 = 8 bits, a range for each value
            ("range", "<i4"),
            ("argument", "<f4"),
            ("code_width", "<u8"),
            ("code_bytes", "<u8"),
            ("range_count", "<u8"),
            ("ranges", "<f4", (2 * width,)),
            ("code_count", "<u8"),
        ]
    )


def check_graph(path: Path, *, rows: int, width: int, links: np.ndarray) -> None:
    """Check the file of a graph: then faiss reads only inside of what it maps.

    `links` are the places for links of a node up to each level, from 0, (levels + 1,).
    SOURCE: faiss 1.15, `read_index_up` and `HNSW::search`.
    """
    size = path.stat().st_size
    start, end = describe_start(rows, len(links) - 1), describe_end(width)
    if size < start.itemsize:
        raise ValueError(f"it is truncated, at {size} bytes")
    data = np.memmap(path, dtype=np.uint8, mode="r")
    first = data[: start.itemsize].view(start)[0]
    levels = first["levels"]
    header = {"width": width, "rows": rows, "trained": 1, "metric": 0}
    counts = {
        "chance_count": len(links) - 1,
        "place_count": len(links),
        "level_count": rows,
        "start_count": rows + 1,
    }
    check_numbers(first, {"kind": b"IHNs", **header, **counts})
    if (first["places"] != links).any():
        raise ValueError("its numbers of links are of other settings")
    if not 1 <= levels.min() <= levels.max() < len(links):
        raise ValueError("the level of a node is out of range")
    total = int(links[levels].sum(dtype=np.int64))
    check_numbers(first, {"link_count": total})
    middle = start.itemsize + 4 * total
    check_size(size, middle + end.itemsize + rows * width)
    check_links(
        data[start.itemsize : middle].view("<i4"), levels, first["starts"], links
    )
    last = data[middle : middle + end.itemsize].view(end)[0]
    codes = {
        "type": 0,
        "code_width": width,
        "code_bytes": width,
        "range_count": 2 * width,
        "code_count": rows * width,
    }
    check_numbers(last, {"kind": b"IxSQ", **header, **codes, "top": levels.max() - 1})
    if not 0 <= last["entry"] < rows or levels[last["entry"]] != levels.max():
        raise ValueError("its first node is not on the highest level")
    if not (np.abs(last["ranges"]) <= MAX_VALUE).all():  # false for NaN
        raise ValueError("a range of its codes is not valid")


def check_links(
    links: np.ndarray, levels: np.ndarray, starts: np.ndarray, capacities: np.ndarray
) -> None:
    """Check the links of all nodes; −1 = none.

    Each node has a number of levels, and a place where its links start; `capacities`
    are the `links` of `check_graph`.
    """
    rows = len(levels)
    begin = 0
    for first in range(0, rows, LINKS_AT_ONCE):
        block_levels = levels[first : first + LINKS_AT_ONCE]
        ends = begin + np.cumsum(capacities[block_levels], dtype=np.int64)
        expected = np.concatenate([[begin], ends])
        if (starts[first : first + len(expected)] != expected).any():
            raise ValueError("the place of the links of a node is wrong")
        block = links[begin : ends[-1]]
        begin = int(ends[-1])
        # As numbers without a sign, −1 is the largest; one more makes it 0.
        if ((block.view("<u4") + np.uint32(1)) > rows).any():
            raise ValueError("a link is out of range")
        # Links of level 0 may lead to any node.
        for level in range(1, int(block_levels.max())):
            high = expected[:-1][block_levels > level]
            slots = np.arange(capacities[level], capacities[level + 1])
            targets = links[high[:, None] + slots]
            if (levels[targets[targets >= 0]] <= level).any():
                raise ValueError("a link leads to a node that is not on its level")
