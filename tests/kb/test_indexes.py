from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes import hnsw
from spacy_sapbert.kb.indexes.exact import keep_best
from spacy_sapbert.kb.indexes.hnsw_file import HEADER
from spacy_sapbert.kb.indexes.registry import (
    BACKENDS,
    Index,
    build_index,
    check_settings,
    index_file,
    load_backend,
    load_index,
)

UNUSED = ("scale", "ef_construction")  # of a header; only building uses them


def unit_rows(rows: int, width: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def make(folder: Path, backend: str, vectors: np.ndarray, **settings: int) -> Index:
    folder.mkdir(exist_ok=True)
    used = build_index(vectors, folder, backend=backend, settings=settings, threads=1)
    rows, width = vectors.shape
    path = folder / index_file(backend)
    return load_index(path, backend=backend, settings=used, rows=rows, width=width)


def brute_force(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    scores = queries.astype(np.float64) @ vectors.astype(np.float64).T
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_index_search_equals_brute_force(backend: str, tmp_path: Path) -> None:
    vectors, queries = unit_rows(3000, 24, 1), unit_rows(50, 24, 2)
    index = make(tmp_path, backend, vectors)
    rows, scores = index.search(queries, 10)
    expected = brute_force(vectors, queries, 10)
    recall = np.mean(
        [len(set(a) & set(b)) / 10 for a, b in zip(rows, expected, strict=False)]
    )
    assert recall == 1 if backend == "exact" else recall > 0.98
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32
    assert np.allclose(scores, (queries[:, None] * vectors[rows]).sum(2), atol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_index_vectors_returns_its_vectors(backend: str, tmp_path: Path) -> None:
    vectors = unit_rows(20, 8, 3)
    index = make(tmp_path, backend, vectors)
    assert np.allclose(index.vectors(np.array([7, 0, 19])), vectors[[7, 0, 19]])


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_index_search_with_fewer_rows_than_k(
    backend: str, rows: int, tmp_path: Path
) -> None:
    index = make(tmp_path, backend, unit_rows(rows, 8, 4))
    found, scores = index.search(unit_rows(3, 8, 5), 10)
    assert found.shape == scores.shape == (3, rows)
    assert all(sorted(row) == list(range(rows)) for row in found.tolist())


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_index_search_orders_equal_vectors_by_row(backend: str, tmp_path: Path) -> None:
    vectors = np.repeat(unit_rows(1, 8, 6), 6, axis=0)
    rows, _ = make(tmp_path, backend, vectors).search(vectors[:1], 6)
    assert rows.tolist() == [[0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_index_search_of_another_width_is_an_error(
    backend: str, tmp_path: Path
) -> None:
    index = make(tmp_path, backend, unit_rows(5, 8, 7))
    with pytest.raises(SapbertError, match="width 8"):
        index.search(unit_rows(1, 9, 7), 1)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_index_search_without_queries_is_empty(backend: str, tmp_path: Path) -> None:
    index = make(tmp_path, backend, unit_rows(5, 8, 8))
    rows, scores = index.search(np.empty((0, 8), dtype=np.float32), 3)
    assert len(rows) == len(scores) == 0


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_build_index_twice_writes_the_same_bytes(backend: str, tmp_path: Path) -> None:
    vectors = unit_rows(300, 8, 9)
    contents = []
    for name in ("one", "two"):
        make(tmp_path / name, backend, vectors)
        files = sorted((tmp_path / name).iterdir())
        contents.append([file.read_bytes() for file in files])
    assert contents[0] == contents[1]


def test_hnsw_keeps_ef_after_loading(tmp_path: Path) -> None:
    vectors, queries = unit_rows(4000, 32, 10), unit_rows(100, 32, 11)
    recalls: dict[int, float] = {}
    expected = brute_force(vectors, queries, 1)
    for ef in (10, 200):
        index = make(
            tmp_path / str(ef), "hnsw", vectors, ef=ef, M=4, ef_construction=20
        )
        rows, _ = index.search(queries, 1)
        recalls[ef] = float((rows == expected).mean())
    assert recalls[200] > recalls[10] + 0.1


@pytest.mark.parametrize(("said", "threads"), [("1", 1), ("3", 3), ("0", 1)])
def test_hnsw_uses_the_threads_of_the_environment(
    said: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    index = make(tmp_path, "hnsw", unit_rows(50, 8, 15))
    assert index.graph.num_threads == threads  # type: ignore[attr-defined]


def test_build_index_unknown_backend_is_an_error() -> None:
    with pytest.raises(SapbertError, match="'exact', 'hnsw'"):
        load_backend("faiss")


def test_build_index_unknown_setting_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SapbertError, match="'efSearch'"):
        make(tmp_path, "hnsw", unit_rows(5, 8, 12), efSearch=3)


def test_keep_best_keeps_the_smallest_rows_of_a_tie() -> None:
    rows = np.array([[3, 4, 5, 6, 7]])
    scores = np.array([[0.5, 0.9, 0.5, 0.5, 0.1]], dtype=np.float32)
    kept, best = keep_best(rows, scores, 3)
    assert kept.tolist() == [[3, 4, 5]]
    assert np.allclose(best, [[0.5, 0.9, 0.5]])


@pytest.mark.parametrize("threads", [1, 4])
def test_hnsw_map_vectors_equal_those_of_the_library(
    tmp_path: Path, threads: int
) -> None:
    vectors = unit_rows(700, 24, 4)
    settings = hnsw.DEFAULTS
    hnsw.build_index(
        vectors, tmp_path, settings=settings, threads=threads, progress=False
    )
    path = tmp_path / hnsw.FILE
    index = hnsw.load_index(path, settings=settings, rows=700, width=24)
    rows = np.array([699, 0, 5, 5, 321])
    np.testing.assert_array_equal(index.vectors(rows), vectors[rows])
    np.testing.assert_array_equal(index.graph.get_items(rows), index.vectors(rows))
    assert index.vectors(rows[:0]).shape == (0, 24)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_check_settings_accepts_the_defaults(backend: str) -> None:
    check_settings(backend, load_backend(backend).DEFAULTS)


@pytest.mark.parametrize(
    ("name", "value"),
    [("M", 0), ("M", 1), ("M", -1), ("M", 10**5), ("ef", 0), ("ef_construction", 0)]
    + [("seed", -1), ("ef", 10**9)],
)
def test_build_index_setting_out_of_range_is_an_error(
    name: str, value: int, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match=f"Expected {name} from .* got {value}"):
        make(tmp_path, "hnsw", unit_rows(5, 8, 12), **{name: value})
    assert not [*tmp_path.iterdir()]


def test_check_settings_missing_setting_is_an_error() -> None:
    with pytest.raises(SapbertError, match="but seed is missing"):
        check_settings("hnsw", {"M": 16, "ef_construction": 200, "ef": 100})


def bend(path: Path, case: str, *, rows: int, width: int) -> None:
    """Change one number of an index, as a damage or a hostile author would."""
    M = hnsw.DEFAULTS["M"]
    if path.name.endswith(".f32"):
        data = bytearray(path.read_bytes())
        if case == "cut":
            del data[-4:]
        elif case == "longer":
            data += bytes(4)
        else:
            data[:4] = np.float32("nan" if case == "nan" else 9).tobytes()
        path.write_bytes(data)
        return
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
    elif case == "nan":
        nodes["vector"][rows // 2, 3] = np.nan
    elif case == "large":
        nodes["vector"][rows // 2] *= 1e30
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
    ("backend", "case"),
    [("exact", case) for case in ("cut", "longer", "nan", "large")]
    + [("hnsw", case) for case in HEADER.names if case not in UNUSED]
    + [("hnsw", case) for case in ("cut", "longer", "nan", "large", "link", "row")]
    + [("hnsw", case) for case in ("link count", "deleted", "row twice")]
    + [("hnsw", case) for case in ("upper size", "odd upper size", "upper count")]
    + [("hnsw", case) for case in ("upper link", "upper link to a lower node")]
    + [("hnsw", "no upper links")],
)
def test_load_index_damaged_or_crafted_file_is_an_error(
    backend: str, case: str, tmp_path: Path
) -> None:
    rows, width = 300, 8
    make(tmp_path, backend, unit_rows(rows, width, 5))
    path = tmp_path / index_file(backend)
    sizes = {"backend": backend, "settings": load_backend(backend).DEFAULTS}
    bend(path, "", rows=rows, width=width) if backend == "hnsw" else None
    load_index(path, rows=rows, width=width, **sizes)  # nothing was changed
    bend(path, case, rows=rows, width=width)
    with pytest.raises(SapbertError, match="E343"):
        load_index(path, rows=rows, width=width, **sizes)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize(("rows", "width"), [(49, 8), (51, 8), (50, 7), (0, 8)])
def test_load_index_of_another_size_is_an_error(
    backend: str, rows: int, width: int, tmp_path: Path
) -> None:
    make(tmp_path, backend, unit_rows(50, 8, 5))
    path, settings = tmp_path / index_file(backend), load_backend(backend).DEFAULTS
    with pytest.raises(SapbertError, match="E343"):
        load_index(path, backend=backend, settings=settings, rows=rows, width=width)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_load_index_empty_file_is_an_error(backend: str, tmp_path: Path) -> None:
    path, settings = tmp_path / "index", load_backend(backend).DEFAULTS
    path.touch()
    with pytest.raises(SapbertError, match="E343"):
        load_index(path, backend=backend, settings=settings, rows=0, width=8)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_load_index_missing_file_is_an_error(backend: str, tmp_path: Path) -> None:
    settings = load_backend(backend).DEFAULTS
    with pytest.raises(SapbertError, match="E010"):
        load_index(
            tmp_path / "none", backend=backend, settings=settings, rows=1, width=8
        )


@pytest.mark.parametrize(("M", "rows"), [(2, 1), (2, 400), (3, 2), (64, 300)])
def test_load_index_accepts_graphs_of_any_shape(
    M: int, rows: int, tmp_path: Path
) -> None:
    vectors = unit_rows(rows, 8, 13)
    folder = tmp_path / "graph"
    folder.mkdir()
    used = build_index(vectors, folder, backend="hnsw", settings={"M": M}, threads=2)
    path = folder / index_file("hnsw")
    index = load_index(path, backend="hnsw", settings=used, rows=rows, width=8)
    assert index.search(vectors[:1], 1)[0].tolist() == [[0]]


def test_build_index_with_a_full_disk_cannot_be_loaded(
    tmp_path: Path, run_python: Any
) -> None:
    code = f"""
import resource, signal
from pathlib import Path
import numpy as np
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.registry import build_index, index_file, load_index
vectors = np.eye(400, 400, dtype=np.float32)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
folder = Path({str(tmp_path)!r})
used = build_index(vectors, folder, backend="hnsw", settings={{}}, threads=1)
try:
    load_index(
        folder / index_file("hnsw"), backend="hnsw", settings=used, rows=400, width=400
    )
except SapbertError as error:
    print(error)
"""
    done = run_python(code)
    assert "it is truncated, at 300000 bytes" in done.stdout, done.stderr
