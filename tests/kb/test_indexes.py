from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes import hnsw
from spacy_sapbert.kb.indexes.exact import keep_best
from spacy_sapbert.kb.indexes.registry import (
    BACKENDS,
    Index,
    build_index,
    load_backend,
    load_index,
)


def unit_rows(rows: int, width: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def make(folder: Path, backend: str, vectors: np.ndarray, **settings: int) -> Index:
    folder.mkdir(exist_ok=True)
    used = build_index(vectors, folder, backend=backend, settings=settings, threads=1)
    rows, width = vectors.shape
    return load_index(folder, backend=backend, settings=used, rows=rows, width=width)


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
    index = hnsw.load_index(tmp_path, settings=settings, rows=700, width=24)
    assert index.mapped is not None
    rows = np.array([699, 0, 5, 5, 321])
    np.testing.assert_array_equal(index.vectors(rows), vectors[rows])
    np.testing.assert_array_equal(index.graph.get_items(rows), index.vectors(rows))
    assert index.vectors(rows[:0]).shape == (0, 24)
    # A file that is laid out in another way is left to the library.
    index.mapped = None
    np.testing.assert_array_equal(index.vectors(rows), vectors[rows])


@pytest.mark.parametrize("offset", [0, 16, 24, 32])
def test_hnsw_map_vectors_of_another_layout_is_none(
    tmp_path: Path, offset: int
) -> None:
    vectors = unit_rows(50, 8, 5)
    hnsw.build_index(
        vectors, tmp_path, settings=hnsw.DEFAULTS, threads=1, progress=False
    )
    path = tmp_path / hnsw.FILE
    assert hnsw.map_vectors(path, rows=50, width=8) is not None
    assert hnsw.map_vectors(path, rows=49, width=8) is None
    assert hnsw.map_vectors(path, rows=50, width=7) is None
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    assert hnsw.map_vectors(path, rows=50, width=8) is None
