from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.hnsw import FILE, HEADER, Hnsw
from spacy_sapbert.kb.indexes.registry import Index, build_index

pytest.importorskip("hnswlib")
MakeIndex = Callable[..., Index]
UnitRows = Callable[[int, int, int], np.ndarray]
UNUSED = ("scale", "ef_construction")  # of a header; only building uses them


def test_hnsw_keeps_ef_after_loading(
    make_index: MakeIndex, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors, queries = unit_rows(4000, 32, 10), unit_rows(100, 32, 11)
    recalls: dict[int, float] = {}
    expected = (queries @ vectors.T).argmax(axis=1)
    for ef in (10, 200):
        settings = {"ef": ef, "M": 4, "ef_construction": 20}
        index = make_index(tmp_path / str(ef), "hnsw", vectors, **settings)
        rows, _ = index.search(queries, 1)
        recalls[ef] = float((rows[:, 0] == expected).mean())
    assert recalls[200] > recalls[10] + 0.1


@pytest.mark.parametrize(("said", "threads"), [("1", 1), ("3", 3), ("0", 1)])
def test_hnsw_uses_the_threads_of_the_environment(
    said: str,
    threads: int,
    make_index: MakeIndex,
    unit_rows: UnitRows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    index = make_index(tmp_path, "hnsw", unit_rows(50, 8, 15))
    assert index.graph.num_threads == threads  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [1, 4])
def test_hnsw_map_vectors_equal_those_of_the_library(
    open_index: MakeIndex, unit_rows: UnitRows, tmp_path: Path, threads: int
) -> None:
    vectors = unit_rows(700, 24, 4)
    build_index(vectors, tmp_path, backend="hnsw", settings={}, threads=threads)
    index = open_index(tmp_path, "hnsw", 700, 24)
    rows = np.array([699, 0, 5, 5, 321])
    np.testing.assert_array_equal(index.vectors(rows), vectors[rows])
    graph = index.graph  # type: ignore[attr-defined]
    np.testing.assert_array_equal(graph.get_items(rows), index.vectors(rows))
    assert index.vectors(rows[:0]).shape == (0, 24)


@pytest.mark.parametrize(
    ("name", "value"),
    [("M", 0), ("M", 1), ("M", -1), ("M", 10**5), ("ef", 0), ("ef_construction", 0)]
    + [("seed", -1), ("ef", 10**9)],
)
def test_build_index_setting_out_of_range_is_an_error(
    name: str, value: int, unit_rows: UnitRows, tmp_path: Path
) -> None:
    settings = {name: value}
    with pytest.raises(SapbertError, match=f"Expected {name} from .* got {value}"):
        build_index(unit_rows(5, 8, 12), tmp_path, backend="hnsw", settings=settings)
    assert not [*tmp_path.iterdir()]


def bend(path: Path, case: str, *, rows: int, width: int) -> None:
    """Change one number of an index, as a damage or a hostile author would."""
    M = Hnsw.M
    node = [("links", "<u4", (1 + 2 * M,)), ("vector", "<f4", (width,)), ("row", "<u8")]
    with open(path, "rb") as file:
        header = np.fromfile(file, HEADER, 1)
        nodes = np.fromfile(file, node, rows)
        upper = np.fromfile(file, "<u4")
    first = int(np.flatnonzero(upper)[0])  # the size of the links of a node
    lowest = int(np.flatnonzero(upper[:first] == 0)[0])  # a node without such links
    if case in HEADER.names:
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
    elif case == "odd upper size":
        upper[first] += 4
    elif case == "upper count":
        upper[first + 1] = 65535
    elif case == "upper link":
        upper[first + 2] = rows
    elif case == "upper link to a lower node":
        upper[first + 2] = lowest
    elif case == "no upper links":
        upper = np.zeros(rows, "<u4")
    parts = b"".join(part.tobytes() for part in (header, nodes, upper))
    path.write_bytes(
        parts[:-100] if case == "cut" else parts + b"\0" * (case == "longer")
    )


@pytest.mark.parametrize(
    "case",
    [name for name in HEADER.names or () if name not in UNUSED]
    + ["cut", "longer", "link", "row", "link count", "deleted"]
    + ["row twice", "upper size", "odd upper size", "upper count", "upper link"]
    + ["upper link to a lower node", "no upper links"],
)
def test_load_index_damaged_or_crafted_graph_is_an_error(
    case: str,
    make_index: MakeIndex,
    open_index: MakeIndex,
    unit_rows: UnitRows,
    tmp_path: Path,
) -> None:
    rows, width = 300, 8
    make_index(tmp_path, "hnsw", unit_rows(rows, width, 5))
    path = tmp_path / FILE
    bend(path, "", rows=rows, width=width)
    open_index(tmp_path, "hnsw", rows, width)  # nothing was changed
    bend(path, case, rows=rows, width=width)
    with pytest.raises(SapbertError, match="E306"):
        open_index(tmp_path, "hnsw", rows, width)


@pytest.mark.parametrize(("M", "rows"), [(2, 1), (2, 400), (3, 2), (64, 300)])
def test_load_index_accepts_graphs_of_any_shape(
    M: int, rows: int, make_index: MakeIndex, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = unit_rows(rows, 8, 13)
    index = make_index(tmp_path, "hnsw", vectors, M=M)
    assert index.search(vectors[:1], 1)[0].tolist() == [[0]]


def test_search_that_the_graph_cannot_answer_in_full_shortens_no_other_query(
    make_index: MakeIndex, unit_rows: UnitRows, tmp_path: Path
) -> None:
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
