"""What every index backend must do, in each of its forms."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.exact import LayeredIndex, keep_best, search_among
from spacy_sapbert.kb.indexes.registry import (
    Index,
    build_index,
    index_files,
    make_backend,
)
from spacy_sapbert.kb.indexes.row_file import RowFile, write_rows

MakeIndex = Callable[..., Index]
UnitRows = Callable[[int, int, int], np.ndarray]
FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "exact": ("exact", {}),
    "hnsw": ("hnsw", {}),
    "faiss": ("faiss", {"pca": 12}),
    "faiss, full": ("faiss", {"pca": 0}),
}
PRECISION = 1e-4  # of a cosine with rows of 16 bits
Make = Callable[..., Index]


@pytest.fixture(params=FORMS)
def make(request: pytest.FixtureRequest, make_index: MakeIndex) -> Make:
    """Builds and opens an index of each form; settings may be added."""
    backend, settings = FORMS[request.param]

    def build(folder: Path, vectors: np.ndarray, **more: int) -> Index:
        return make_index(folder, backend, vectors, **settings, **more)

    return build


@pytest.fixture(params=FORMS)
def form(
    request: pytest.FixtureRequest, make_index: MakeIndex, open_index: MakeIndex
) -> tuple[str, dict[str, int], Make, Callable[..., Index]]:
    """The backend and settings of each form, and functions to build and to open it."""
    backend, settings = FORMS[request.param]
    if library := make_backend(backend).library:
        pytest.importorskip(library)

    def build(folder: Path, vectors: np.ndarray) -> Index:
        return make_index(folder, backend, vectors, **settings)

    def load(folder: Path, rows: int, width: int) -> Index:
        return open_index(folder, backend, rows, width, **settings)

    return backend, settings, build, load


def near_rows(rows: int, width: int, seed: int) -> np.ndarray:
    """Return unit vectors that differ more in the first columns, as names do."""
    vectors = np.random.default_rng(seed).normal(size=(rows, width))
    vectors *= np.linspace(1, 0.1, width)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


@pytest.mark.parametrize("threads", [1, 4])
def test_index_search_equals_brute_force(
    make: Make, threads: int, tmp_path: Path
) -> None:
    vectors, queries = near_rows(3000, 16, 1), near_rows(50, 16, 2)
    index = make(tmp_path, vectors, threads=threads)
    rows, scores = index.search(queries, 10)
    cosines = queries.astype(np.float64) @ vectors.astype(np.float64).T
    tenth = np.sort(cosines, axis=1)[:, -10:-9]
    found = np.take_along_axis(cosines, rows, 1)
    assert (found >= tenth - PRECISION).mean() > 0.98
    assert rows.dtype == np.int64
    assert scores.dtype == np.float32
    assert np.abs(scores - found).max() < PRECISION
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len({*row}) == 10 for row in rows.tolist())


def test_index_search_of_one_equals_that_of_many(make: Make, tmp_path: Path) -> None:
    index, queries = make(tmp_path, near_rows(500, 16, 1)), near_rows(300, 16, 2)
    rows, scores = index.search(queries, 5)
    for place in (0, 133, 299):
        row, score = index.search(queries[place : place + 1], 5)
        assert row.tolist() == rows[place : place + 1].tolist()
        assert np.abs(score - scores[place]).max() < 1e-6


def test_index_vectors_returns_its_vectors(
    make: Make, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = unit_rows(20, 8, 3)
    index = make(tmp_path, vectors)
    assert index.width == 8
    for rows in ([7, 0, 19], [3, 4, 5], [6, 6], []):
        found = index.vectors(np.array(rows, dtype=np.int64))
        assert found.dtype == np.float32
        assert found.shape == (len(rows), 8)
        assert np.allclose(found, vectors[rows], atol=2e-5)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_index_search_with_fewer_rows_than_k(
    make: Make, rows: int, unit_rows: UnitRows, tmp_path: Path
) -> None:
    index = make(tmp_path, unit_rows(rows, 8, 4))
    found, scores = index.search(unit_rows(3, 8, 5), 10)
    assert found.shape == scores.shape == (3, rows)
    assert all(sorted(row) == list(range(rows)) for row in found.tolist())


def test_index_search_orders_equal_vectors_by_row(
    make: Make, unit_rows: UnitRows, tmp_path: Path
) -> None:
    vectors = np.repeat(unit_rows(1, 8, 6), 6, axis=0)
    rows, scores = make(tmp_path, vectors).search(vectors[:1], 6)
    assert rows.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert np.ptp(scores) < 1e-6


def test_index_search_of_another_width_is_an_error(
    make: Make, unit_rows: UnitRows, tmp_path: Path
) -> None:
    index = make(tmp_path, unit_rows(5, 8, 7))
    with pytest.raises(SapbertError, match="width 8"):
        index.search(unit_rows(1, 9, 7), 1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_index_search_of_a_value_that_is_not_finite_is_an_error(
    make: Make, value: float, unit_rows: UnitRows, tmp_path: Path
) -> None:
    index, queries = make(tmp_path, unit_rows(5, 8, 7)), unit_rows(2, 8, 7)
    queries[1, 3] = value
    with pytest.raises(SapbertError, match="E301.*NaN"):
        index.search(queries, 1)


def test_index_search_without_queries_is_empty(
    make: Make, unit_rows: UnitRows, tmp_path: Path
) -> None:
    index = make(tmp_path, unit_rows(5, 8, 8))
    rows, scores = index.search(np.empty((0, 8), dtype=np.float32), 3)
    assert len(rows) == len(scores) == 0


def test_search_among_goes_deeper_for_vectors_far_from_the_rows(
    make_index: MakeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacy_sapbert.kb.indexes.exact.EXACT_ROWS", 100)
    vectors = near_rows(3000, 16, 3)
    index = make_index(tmp_path / "far", "hnsw", vectors)
    # The allowed rows are those farthest from the first query.
    order = np.argsort(vectors @ vectors[0])
    allowed = np.sort(order[:2000])
    queries = np.concatenate([vectors[:1], vectors[order[:3]]])
    mask = np.isin(np.arange(3000), allowed)
    rows, scores = search_among(index, queries, 20, mask)
    exact = np.sort(queries @ vectors[allowed].T, axis=1)[:, ::-1][:, :20]
    assert np.isin(rows, allowed).all()
    assert scores[0] == pytest.approx(exact[0], abs=0.01)


def test_index_search_among_some_rows(make: Make, tmp_path: Path) -> None:
    vectors, queries = near_rows(600, 16, 3), near_rows(20, 16, 4)
    index, allowed = make(tmp_path, vectors), np.arange(5, 600, 7)
    mask = np.isin(np.arange(600), allowed)
    rows, scores = search_among(index, queries, 4, mask)
    cosines = queries @ vectors[allowed].T
    assert {*rows.ravel().tolist()} <= {*allowed.tolist()}
    assert np.allclose(scores, np.sort(cosines, 1)[:, :-5:-1], atol=PRECISION)


def test_index_as_a_layer(make: Make, unit_rows: UnitRows, tmp_path: Path) -> None:
    vectors = unit_rows(40, 8, 5)
    first = make(tmp_path / "first", vectors[:30])
    second = make(tmp_path / "second", vectors[30:])
    index = LayeredIndex(first, second, 30)
    rows, _ = index.search(vectors[[35, 2]], 40)
    assert rows[:, 0].tolist() == [35, 2]
    assert all(sorted(row) == list(range(40)) for row in rows.tolist())
    assert np.allclose(index.vectors(np.array([39, 3])), vectors[[39, 3]], atol=2e-5)


def test_build_index_twice_writes_the_same_bytes(form: Any, tmp_path: Path) -> None:
    _, _, build, _ = form
    vectors = near_rows(300, 8, 9)
    contents = []
    for name in ("one", "two"):
        build(tmp_path / name, vectors)
        files = sorted((tmp_path / name).iterdir())
        contents.append([file.read_bytes() for file in files])
    assert contents[0] == contents[1]


@pytest.mark.parametrize("compact", [True, False])
def test_build_index_of_a_file_of_rows(
    form: Any, compact: bool, unit_rows: UnitRows, tmp_path: Path
) -> None:
    backend, settings, _, load = form
    vectors = unit_rows(60, 8, 10)
    source = tmp_path / "rows"
    write_rows(vectors, source, compact=compact, progress=False)
    rows = RowFile(source, rows=60, width=8, compact=compact)
    folder = tmp_path / "index"
    folder.mkdir()
    build_index(rows, folder, backend=backend, settings=settings, threads=1)
    assert {*index_files(backend, settings)} == {p.name for p in folder.iterdir()}
    found, _ = load(folder, 60, 8).search(vectors, 1)
    assert found[:, 0].tolist() == list(range(60))


@pytest.mark.parametrize(("rows", "width"), [(49, 8), (51, 8), (50, 7), (0, 8)])
def test_load_index_of_another_size_is_an_error(
    form: Any, rows: int, width: int, unit_rows: UnitRows, tmp_path: Path
) -> None:
    _, _, build, load = form
    build(tmp_path, unit_rows(50, 8, 5))
    with pytest.raises(SapbertError, match="E306"):
        load(tmp_path, rows, width)


def test_load_index_missing_or_empty_file_is_an_error(
    form: Any, unit_rows: UnitRows, tmp_path: Path
) -> None:
    _, _, build, load = form
    build(tmp_path, unit_rows(50, 8, 5))
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        path.write_bytes(b"")
        with pytest.raises(SapbertError, match="E306"):
            load(tmp_path, 50, 8)
        path.unlink()
        with pytest.raises(SapbertError, match="E004"):
            load(tmp_path, 50, 8)
        path.write_bytes(content)


def test_load_index_cut_or_longer_file_is_an_error(
    form: Any, unit_rows: UnitRows, tmp_path: Path
) -> None:
    _, _, build, load = form
    build(tmp_path, unit_rows(50, 8, 5))
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        for changed in (content[:-4], content + bytes(4), content[: len(content) // 2]):
            path.write_bytes(changed)
            with pytest.raises(SapbertError, match="E306"):
                load(tmp_path, 50, 8)
        path.write_bytes(content)
        load(tmp_path, 50, 8)


def test_load_index_damaged_anywhere_ends_in_an_error_or_an_answer(
    form: Any, tmp_path: Path
) -> None:
    """Whatever the files hold, native code reads nothing outside of them."""
    _, _, build, load = form
    queries, random = near_rows(8, 8, 6), np.random.default_rng(7)
    build(tmp_path, near_rows(200, 8, 5))
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        for _ in range(60):
            damaged = bytearray(content)
            place = int(random.integers(len(content)))
            damaged[place : place + 4] = random.bytes(4)[: len(content) - place]
            path.write_bytes(damaged)
            with suppress(SapbertError):
                rows, _ = load(tmp_path, 200, 8).search(queries, 5)
                assert ((rows >= 0) & (rows < 200)).all()
        path.write_bytes(content)


def test_index_search_in_a_forked_child(
    form: Any, unit_rows: UnitRows, tmp_path: Path, new_process: Any
) -> None:
    backend, settings, build, _ = form
    vectors = unit_rows(400, 8, 5)
    build(tmp_path, vectors)
    np.save(tmp_path / "vectors.npy", vectors)
    code = f"""
import os, sys
import numpy as np
from pathlib import Path
from spacy_sapbert.kb.indexes.registry import *
folder, backend = Path({str(tmp_path)!r}), {backend!r}
settings = make_backend(backend, {settings!r}).settings
paths = {{name: folder / name for name in index_files(backend, settings)}}
vectors = np.load(folder / "vectors.npy")
index = load_index(paths, backend=backend, settings=settings, rows=400, width=8)
before = index.search(vectors, 3)[0]
child = os.fork()
if not child:
    again = load_index(paths, backend=backend, settings=settings, rows=400, width=8)
    found = [one.search(vectors, 3)[0] for one in (index, again)]
    os._exit(0 if all((before == rows).all() for rows in found) else 3)
print(os.waitpid(child, 0)[1])
"""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    done = new_process.python(code, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.stdout.strip() == "0", done.stderr


def test_build_index_unknown_backend_is_an_error() -> None:
    with pytest.raises(SapbertError, match="'exact', 'faiss', 'hnsw'"):
        make_backend("annoy")


def test_build_index_unknown_setting_is_an_error(
    unit_rows: UnitRows, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match="'efSearch'"):
        build_index(
            unit_rows(5, 8, 12), tmp_path, backend="hnsw", settings={"efSearch": 3}
        )


def test_keep_best_keeps_the_smallest_rows_of_a_tie() -> None:
    rows = np.array([[3, 4, 5, 6, 7]])
    scores = np.array([[0.5, 0.9, 0.5, 0.5, 0.1]], dtype=np.float32)
    kept, best = keep_best(rows, scores, 3)
    assert kept.tolist() == [[3, 4, 5]]
    assert np.allclose(best, [[0.5, 0.9, 0.5]])


def test_build_index_with_a_full_disk_is_an_error_or_cannot_be_loaded(
    form: Any, tmp_path: Path, new_process: Any
) -> None:
    backend, settings, _, _ = form
    code = f"""
from pathlib import Path
import numpy as np
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes.registry import *
vectors = np.eye(400, 400, dtype=np.float32)
folder = Path({str(tmp_path)!r})
backend, settings = {backend!r}, {settings!r}
try:
    used = build_index(vectors, folder, backend=backend, settings=settings, threads=1)
    paths = {{name: folder / name for name in index_files(backend, used)}}
    load_index(paths, backend=backend, settings=used, rows=400, width=400)
except (SapbertError, OSError) as error:
    print("refused:", error)
"""
    done = new_process.python(code, largest_file=50_000)
    assert done.stdout.startswith("refused:"), done.stdout + done.stderr
