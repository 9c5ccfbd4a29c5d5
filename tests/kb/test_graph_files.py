"""Graphs of damaged or crafted files, and searches that a graph cannot answer."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.faiss_graph import HEADER, describe_end, describe_start
from spacy_sapbert.kb.indexes.hnsw import FILE, Hnsw
from spacy_sapbert.kb.indexes.hnsw import HEADER as HNSW_HEADER

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
    if case in ("width", "rows"):
        graph.first[case] = graph.first[case] + 1
    elif case == "link":
        graph.found[3] = ROWS
    elif case == "link of an upper level":
        graph.found[graph.slots(level)[1].start] = ROWS
    elif case == "link to a lower node":
        graph.found[graph.slots(level)[1].start] = lower(graph, level)
    elif case == "level":
        graph.levels[5] = 99
    elif case == "start":
        graph.starts[7] += 1
    elif case == "last start":
        graph.starts[-1] += 1
    elif case == "entry":
        graph.last["entry"] = ROWS
    elif case == "top":
        graph.last["top"] += 1
    elif case == "links of a level":
        graph.links[2] += 1
    elif case in ("type", "code_width", "code_bytes", "code_count"):
        graph.last[case] += 1
    elif case == "range of NaN":
        graph.ranges[1] = np.nan


CASES = """width, rows, link, link of an upper level, link to a lower node, level,
start, last start, entry, top, links of a level, type, code_width, code_bytes,
code_count, range of NaN"""


@pytest.mark.parametrize("case", " ".join(CASES.split()).split(", "))
def test_load_index_crafted_graph_is_an_error(
    case, make_index, open_index, unit_rows, tmp_path
):
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


def test_faiss_search_returns_rows_that_the_graph_does_not_reach(
    make_index, open_index, unit_rows, tmp_path
):
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


pytest.importorskip("hnswlib")
UNUSED = ("scale", "ef_construction")  # of a header; only building uses them


def test_hnsw_keeps_ef_after_loading(make_index, unit_rows, tmp_path):
    vectors, queries = unit_rows(4000, 32, 10), unit_rows(100, 32, 11)
    recalls: dict[int, float] = {}
    expected = (queries @ vectors.T).argmax(axis=1)
    for ef in (10, 200):
        settings = {"ef": ef, "M": 4, "ef_construction": 20}
        index = make_index(tmp_path / str(ef), "hnsw", vectors, **settings)
        rows, _ = index.search(queries, 1)
        recalls[ef] = float((rows[:, 0] == expected).mean())
    assert recalls[200] > recalls[10] + 0.1


def test_hnsw_without_its_library_compares_all_rows(
    make_index, open_index, unit_rows, tmp_path, monkeypatch
):
    vectors, queries = unit_rows(700, 24, 4), unit_rows(20, 24, 5)
    make_index(tmp_path, "hnsw", vectors, threads=2)
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.warns(UserWarning, match="W560.* 700 names.*pip install hnswlib"):
        index = open_index(tmp_path, "hnsw", 700, 24)
    rows, scores = index.search(queries, 5)
    cosines = queries @ vectors.T
    np.testing.assert_array_equal(rows, np.argsort(-cosines)[:, :5])
    np.testing.assert_allclose(scores, -np.sort(-cosines)[:, :5], atol=1e-6)
    np.testing.assert_array_equal(index.vectors(rows[0]), vectors[rows[0]])
    monkeypatch.setattr("spacy_sapbert.kb.indexes.hnsw.MOST_EXACT_ROWS", 699)
    with pytest.raises(SapbertError, match="E521.*pip install hnswlib"):
        open_index(tmp_path, "hnsw", 700, 24)


def test_hnsw_file_that_is_cut_while_it_is_used_is_an_error(
    make_index, unit_rows, tmp_path
):
    vectors = unit_rows(50, 8, 4)
    index = make_index(tmp_path, "hnsw", vectors)
    np.testing.assert_array_equal(index.vectors(np.array([9, 2])), vectors[[9, 2]])
    os.truncate(tmp_path / FILE, 500)
    with pytest.raises(SapbertError, match="E306.*cut"):
        index.vectors(np.array([40]))


def bend_hnsw(path: Path, case: str, *, rows: int, width: int) -> None:
    """Change one number of an index, as a damage or a hostile author would."""
    M = Hnsw.M
    node = [("links", "<u4", (1 + 2 * M,)), ("vector", "<f4", (width,)), ("row", "<u8")]
    with open(path, "rb") as file:
        header = np.fromfile(file, HNSW_HEADER, 1)
        nodes = np.fromfile(file, node, rows)
        upper = np.fromfile(file, "<u4")
    first = int(np.flatnonzero(upper)[0])  # the size of the links of a node
    lowest = int(np.flatnonzero(upper[:first] == 0)[0])  # a node without such links
    if case in HNSW_HEADER.names:
        header[case] = 2**31 - 1
    elif case == "link count":
        nodes["links"][:, 0] = 65535
    elif case == "link":
        nodes["links"][:, 1] = 2**31 - 1
    elif case == "deleted":
        nodes["links"][:, 0] |= 1 << 16
    elif case == "row":
        nodes["row"][0] = 10**12
    elif case == "row twice":
        nodes["row"][0] = nodes["row"][1]
    elif case == "upper size":
        upper[first] = 4 * len(upper)
    elif case == "upper count":
        upper[first + 1] = 65535
    elif case == "upper link":
        upper[first + 2] = rows
    elif case == "upper link to a lower node":
        upper[first + 2] = lowest
    parts = b"".join(part.tobytes() for part in (header, nodes, upper))
    path.write_bytes(
        parts[:-100] if case == "cut" else parts + b"\0" * (case == "longer")
    )


@pytest.mark.parametrize(
    "case",
    [name for name in HNSW_HEADER.names or () if name not in UNUSED]
    + ["cut", "longer", "link", "row", "link count", "deleted"]
    + ["row twice", "upper size", "upper count", "upper link"]
    + ["upper link to a lower node"],
)
def test_load_index_crafted_hnsw_graph_is_an_error(
    case, make_index, open_index, unit_rows, tmp_path
):
    rows, width = 300, 8
    make_index(tmp_path, "hnsw", unit_rows(rows, width, 5))
    path = tmp_path / FILE
    bend_hnsw(path, "", rows=rows, width=width)
    open_index(tmp_path, "hnsw", rows, width)  # nothing was changed
    bend_hnsw(path, case, rows=rows, width=width)
    with pytest.raises(SapbertError, match="E306"):
        open_index(tmp_path, "hnsw", rows, width)


def test_search_that_the_graph_cannot_answer_in_full_shortens_no_other_query(
    make_index, unit_rows, tmp_path
):
    """hnswlib raises for all queries if one of them reaches too few rows."""
    vectors = unit_rows(60, 8, 21)
    index = make_index(tmp_path, "hnsw", vectors)
    whole_rows, whole_scores = index.search(vectors[:3], 10)
    graph = index.graph

    class PartlyUnreachable:
        """The graph, of which the second query reaches five rows."""

        element_count, dim = graph.element_count, graph.dim

        def knn_query(self, queries: np.ndarray, k: int) -> tuple:
            if k > 5 and (queries == vectors[1]).all(axis=1).any():
                raise RuntimeError("Cannot return the results in a contiguous 2D array")
            return graph.knn_query(queries, k=k)

    index.graph = PartlyUnreachable()
    rows, scores = index.search(vectors[:3], 10)
    for query in (0, 2):
        assert rows[query].tolist() == whole_rows[query].tolist()
        assert scores[query].tolist() == whole_scores[query].tolist()
    assert rows[1].tolist() == [*whole_rows[1, :5].tolist(), *[-1] * 5]
