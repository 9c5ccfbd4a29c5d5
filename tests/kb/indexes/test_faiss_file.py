from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.backend import Index
from spacy_sapbert.kb.indexes.faiss_file import CODES, HEADER, SEARCH

pytest.importorskip("faiss")
MakeIndex = Callable[..., Index]
UnitRows = Callable[[int, int, int], np.ndarray]
ROWS, WIDTH = 900, 8


class Graph:
    """The parts of the file of a graph, as arrays that can be changed."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = bytearray(data), 0
        self.header = self.take(HEADER, 1)
        self.chances = self.array("<f8")
        self.links = self.array("<i4")
        self.levels = self.array("<i4")
        self.starts = self.array("<u8")
        self.found = self.array("<i4")
        self.search = self.take(SEARCH, 1)
        self.code_header = self.take(HEADER, 1)
        self.codes = self.take(CODES, 1)
        self.ranges = self.array("<f4")

    def take(self, layout: Any, many: int) -> Any:
        """Return a part that shares memory with the data."""
        found = np.frombuffer(self.data, layout, many, self.place)
        self.place += found.nbytes
        return found

    def array(self, layout: str) -> Any:
        (length,) = self.take("<u8", 1)
        return self.take(layout, int(length))

    def slots(self, level: int) -> tuple[int, slice]:
        """Return a node of a level, and the places of its links there."""
        node = int(np.flatnonzero(self.levels > level)[0])
        first = int(self.starts[node])
        return node, slice(first + self.links[level], first + self.links[level + 1])


def lower(graph: Graph, level: int) -> int:
    """Return a node that is not on a level."""
    return int(np.flatnonzero(graph.levels <= level)[0])


def bend(graph: Graph, case: str) -> None:
    """Change a number as a damage or a hostile author would."""
    level = 1
    if case == "kind":
        graph.header["kind"] = b"IHN2"
    elif case in ("width", "rows", "trained", "metric"):
        graph.header[case] = graph.header[case] + 1
    elif case == "link":
        graph.found[3] = ROWS
    elif case == "negative link":
        graph.found[3] = -2
    elif case == "link of an upper level":
        graph.found[graph.slots(level)[1].start] = ROWS
    elif case == "link to a lower node":
        graph.found[graph.slots(level)[1].start] = lower(graph, level)
    elif case == "level 0":
        graph.levels[5] = 0
    elif case == "level":
        graph.levels[5] = 99
    elif case == "level of a node":
        graph.levels[lower(graph, 1)] = 2
    elif case == "start":
        graph.starts[7] += 1
    elif case == "last start":
        graph.starts[-1] += 1
    elif case == "entry":
        graph.search["entry"] = ROWS
    elif case == "entry of a lower level":
        graph.search["entry"] = lower(graph, level)
    elif case == "top":
        graph.search["top"] += 1
    elif case == "links of a level":
        graph.links[2] += 1
    elif case == "code kind":
        graph.code_header["kind"] = b"IxPQ"
    elif case == "code rows":
        graph.code_header["rows"] = ROWS - 1
    elif case in ("type", "code width", "bytes"):
        graph.codes[case.removeprefix("code ")] += 1
    elif case == "range":
        graph.ranges[1] = 1e30
    elif case == "range of NaN":
        graph.ranges[1] = np.nan


CASES = """kind, width, rows, trained, metric, link, negative link, link of an upper
level, link to a lower node, level 0, level, level of a node, start, last start, entry,
entry of a lower level, top, links of a level, code kind, code rows, type, code width,
bytes, range, range of NaN"""


@pytest.mark.parametrize("case", " ".join(CASES.split()).split(", "))
def test_load_index_crafted_graph_is_an_error(
    case: str,
    make_index: MakeIndex,
    open_index: MakeIndex,
    unit_rows: UnitRows,
    tmp_path: Path,
) -> None:
    make_index(tmp_path, "faiss", unit_rows(ROWS, WIDTH, 5), M=4)
    path = tmp_path / "index.faiss"
    graph = Graph(path.read_bytes())
    bend(graph, "")
    path.write_bytes(graph.data)
    open_index(tmp_path, "faiss", ROWS, WIDTH, M=4)  # nothing was changed
    bend(graph, case)
    assert graph.data != path.read_bytes()
    path.write_bytes(graph.data)
    with pytest.raises(SapbertError, match="E343.*index.faiss"):
        open_index(tmp_path, "faiss", ROWS, WIDTH, M=4)


@pytest.mark.parametrize(("M", "rows"), [(2, 1), (2, 400), (3, 2), (64, 300)])
def test_load_index_accepts_graphs_of_any_shape(
    M: int, rows: int, make_index: MakeIndex, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = unit_rows(rows, 8, 13)
    index = make_index(tmp_path, "faiss", vectors, M=M)
    assert index.search(vectors[:1], 1)[0].tolist() == [[0]]


def test_faiss_search_returns_rows_that_the_graph_does_not_reach(
    make_index: MakeIndex, open_index: MakeIndex, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = unit_rows(50, WIDTH, 3)
    make_index(tmp_path, "faiss", vectors, pca=0)
    path = tmp_path / "index.faiss"
    graph = Graph(path.read_bytes())
    graph.found[:] = -1
    path.write_bytes(graph.data)
    rows, scores = open_index(tmp_path, "faiss", 50, WIDTH, pca=0).search(
        vectors[:4], 9
    )
    assert rows.shape == (4, 9)
    assert all(len({*row}) == 9 and min(row) >= 0 for row in rows.tolist())
    expected = (vectors[:4, None] * vectors[rows]).sum(2)
    assert np.allclose(scores, expected, atol=1e-4)
