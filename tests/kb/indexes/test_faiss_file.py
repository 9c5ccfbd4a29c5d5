from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.faiss_graph import (
    HEADER,
    describe_end,
    describe_start,
)
from spacy_sapbert.kb.indexes.registry import Index

pytest.importorskip("faiss")
MakeIndex = Callable[..., Index]
UnitRows = Callable[[int, int, int], np.ndarray]
ROWS, WIDTH = 900, 8


class Graph:
    """The parts of the file of a graph, as arrays that can be changed."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        rows = int(np.frombuffer(data, HEADER, 1)["rows"][0])
        levels = int(np.frombuffer(data, "<u8", 1, np.dtype(HEADER).itemsize)[0])
        start, end = describe_start(rows, levels), describe_end(WIDTH)
        self.first = np.frombuffer(self.data, start, 1)[0]
        total = int(self.first["link_count"])
        self.found = np.frombuffer(self.data, "<i4", total, start.itemsize)
        self.last = np.frombuffer(self.data, end, 1, start.itemsize + 4 * total)[0]
        self.links, self.levels = self.first["places"], self.first["levels"]
        self.starts, self.ranges = self.first["starts"], self.last["ranges"]

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
        graph.first["kind"] = b"IHN2"
    elif case in ("width", "rows", "trained", "metric"):
        graph.first[case] = graph.first[case] + 1
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
        graph.last["entry"] = ROWS
    elif case == "entry of a lower level":
        graph.last["entry"] = lower(graph, level)
    elif case == "top":
        graph.last["top"] += 1
    elif case == "links of a level":
        graph.links[2] += 1
    elif case == "code kind":
        graph.last["kind"] = b"IxPQ"
    elif case == "code rows":
        graph.last["rows"] = ROWS - 1
    elif case in ("type", "code_width", "code_bytes", "code_count"):
        graph.last[case] += 1
    elif case == "range":
        graph.ranges[1] = 1e30
    elif case == "range of NaN":
        graph.ranges[1] = np.nan


CASES = """kind, width, rows, trained, metric, link, negative link, link of an upper
level, link to a lower node, level 0, level, level of a node, start, last start, entry,
entry of a lower level, top, links of a level, code kind, code rows, type, code_width,
code_bytes, code_count, range, range of NaN"""


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
    with pytest.raises(SapbertError, match="E306.*index.faiss"):
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
