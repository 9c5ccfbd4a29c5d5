"""Graphs of damaged or crafted files, and searches that a graph cannot answer."""

import sys
from collections.abc import Callable
from operator import setitem
from typing import Any

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

    def link_above(self) -> int:
        """Return the place of a link of level 1."""
        node = int(np.flatnonzero(self.levels > 1)[0])
        return int(self.starts[node] + self.links[1])


# What a damage or a hostile author would change: array, place, and the new number.
DAMAGES: dict[str, Callable[[Graph], tuple[Any, Any, Any]]] = {
    "link": lambda graph: (graph.found, 3, ROWS),
    "link of an upper level": lambda graph: (graph.found, graph.link_above(), ROWS),
    "link to a lower node": lambda graph: (
        *(graph.found, graph.link_above()),
        np.flatnonzero(graph.levels <= 1)[0],
    ),
    "level": lambda graph: (graph.levels, 5, len(graph.links)),
    "start": lambda graph: (graph.starts, 7, graph.starts[7] + 1),
    "last start": lambda graph: (graph.starts, -1, graph.starts[-1] + 1),
    "entry": lambda graph: (graph.last, "entry", ROWS),
    "links of a level": lambda graph: (graph.links, 2, graph.links[2] + 1),
    "range of NaN": lambda graph: (graph.ranges, 1, np.nan),
    **{
        f"first {name}": lambda graph, name=name: (
            *(graph.first, name),
            graph.first[name] + 1,
        )
        for name in ("width", "rows", "trained", "metric", "chance_count")
        + ("place_count", "level_count", "start_count", "link_count")
    },
    **{
        name: lambda graph, name=name: (graph.last, name, graph.last[name] + 1)
        for name in ("top", "type", "code_width", "code_bytes", "code_count")
    },
}


@pytest.mark.parametrize("case", DAMAGES)
def test_load_index_crafted_graph_is_an_error(
    case, make_index, open_index, unit_rows, tmp_path
):
    make_index(tmp_path, "faiss", unit_rows(ROWS, WIDTH, 5), M=4)
    path = tmp_path / "index.faiss"
    graph = Graph(path.read_bytes())
    path.write_bytes(graph.data)
    open_index(tmp_path, "faiss", ROWS, WIDTH, M=4)  # nothing was changed
    setitem(*DAMAGES[case](graph))
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
    found = np.take_along_axis(cosines, rows, axis=1)
    np.testing.assert_allclose(found, -np.sort(-cosines)[:, :5], atol=1e-6)
    np.testing.assert_allclose(scores, -np.sort(-cosines)[:, :5], atol=1e-6)
    np.testing.assert_array_equal(index.vectors(rows[0]), vectors[rows[0]])
    monkeypatch.setattr("spacy_sapbert.kb.indexes.hnsw.MOST_EXACT_ROWS", 699)
    with pytest.raises(SapbertError, match="E521.*pip install hnswlib"):
        open_index(tmp_path, "hnsw", 700, 24)


class HnswGraph:
    """The parts of the file of an index of hnswlib, as arrays that can be changed."""

    def __init__(self, data: bytes, rows: int, width: int) -> None:
        links = ("links", "<u4", (1 + 2 * Hnsw.M,))
        node = np.dtype([links, ("vector", "<f4", (width,)), ("row", "<u8")])
        start = np.dtype(HNSW_HEADER).itemsize
        self.data = bytearray(data)
        self.header = np.frombuffer(self.data, HNSW_HEADER, 1)
        nodes = np.frombuffer(self.data, node, rows, start)
        self.links, self.rows = nodes["links"], nodes["row"]
        self.upper = np.frombuffer(
            self.data, "<u4", offset=start + rows * node.itemsize
        )
        self.first = int(np.flatnonzero(self.upper)[0])  # size of the links of a node
        self.lowest = int(np.flatnonzero(self.upper[: self.first] == 0)[0])


HNSW_DAMAGES: dict[str, Callable[[HnswGraph], tuple[Any, Any, Any]]] = {
    "link count": lambda graph: (graph.links, np.s_[0, 0], graph.links.shape[1]),
    "link": lambda graph: (graph.links, np.s_[0, -1], len(graph.rows)),
    "deleted": lambda graph: (graph.links, np.s_[:, 0], graph.links[:, 0] | 1 << 16),
    "row": lambda graph: (graph.rows, 0, len(graph.rows)),
    "row twice": lambda graph: (graph.rows, 0, graph.rows[1]),
    "upper size": lambda graph: (graph.upper, graph.first, 4 * len(graph.upper)),
    "upper size and a part": lambda graph: (
        *(graph.upper, graph.first),
        graph.upper[graph.first] + 4,
    ),
    "upper count": lambda graph: (graph.upper, graph.first + 1, 1 + Hnsw.M),
    "upper count of links that exist": lambda graph: (
        *(graph.upper, np.s_[graph.first + 1 : graph.first + 2 + Hnsw.M]),
        [1 + Hnsw.M, *[graph.upper[graph.first + 2]] * Hnsw.M],
    ),
    "upper link": lambda graph: (graph.upper, graph.first + 2, len(graph.rows)),
    "upper link to a lower node": lambda graph: (
        *(graph.upper, graph.first + 2),
        graph.lowest,
    ),
    **{
        f"header, {name}": lambda graph, name=name: (
            *(graph.header, name),
            graph.header[name] + 1,
        )
        for name in HNSW_HEADER.names or ()
        if name not in ("scale", "ef_construction")  # only building uses them
    },
}


@pytest.mark.parametrize("case", HNSW_DAMAGES)
def test_load_index_crafted_hnsw_graph_is_an_error(
    case, make_index, open_index, unit_rows, tmp_path
):
    rows, width = 300, 8
    make_index(tmp_path, "hnsw", unit_rows(rows, width, 5))
    path = tmp_path / FILE
    graph = HnswGraph(path.read_bytes(), rows, width)
    setitem(*HNSW_DAMAGES[case](graph))
    assert graph.data != path.read_bytes()
    path.write_bytes(graph.data)
    with pytest.raises(SapbertError, match="E306"):
        open_index(tmp_path, "hnsw", rows, width)


def test_search_that_the_graph_cannot_answer_in_full_shortens_no_other_query(
    make_index, unit_rows, tmp_path
):
    """hnswlib raises for all queries if one of them reaches too few rows."""
    vectors = unit_rows(60, 8, 21)
    index = make_index(tmp_path, "hnsw", vectors, pca=0, rerank=10)
    whole_rows, whole_scores = index.search(vectors[:3], 10)
    graph = index.graph

    class PartlyUnreachable:
        """The graph, of which the second query reaches five rows."""

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
