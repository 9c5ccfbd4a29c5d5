"""What every index backend must do, in each of its forms."""

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes import (
    backends,
    exact,
    faiss_graph,
    hnsw,
    row_file,
    short_vectors,
)
from spacy_sapbert.kb.indexes.backends import Index, choose_index, make_backend
from spacy_sapbert.kb.indexes.exact import keep_best, search_among
from spacy_sapbert.kb.indexes.row_file import (
    RowFile,
    encode_rows,
    find_runs,
    write_at,
    write_rows,
)

FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "exact": ("exact", {}),
    "hnsw": ("hnsw", {"pca": 12}),
    "hnsw, full": ("hnsw", {"pca": 0}),
    "faiss": ("faiss", {"pca": 12}),
    "faiss, full": ("faiss", {"pca": 0}),
}
PRECISION = 1e-4  # of a cosine with rows of 16 bits
Make = Callable[..., Index]


class Form(NamedTuple):
    """A backend with settings, and functions to build and to open an index of it."""

    backend: str
    settings: dict[str, int]
    make: Make
    load: Callable[..., Index]


@pytest.fixture(params=FORMS)
def form(request, make_index, open_index) -> Form:
    backend, settings = FORMS[request.param]
    if library := make_backend(backend).library:
        pytest.importorskip(library)

    def build(folder: Path, vectors: np.ndarray, **more: int) -> Index:
        return make_index(folder, backend, vectors, **settings, **more)

    def load(folder: Path, rows: int, width: int) -> Index:
        return open_index(folder, backend, rows, width, **settings)

    return Form(backend, settings, build, load)


@pytest.fixture
def make(form) -> Make:
    """Builds and opens an index of each form; settings may be added."""
    return form.make


def near_rows(rows: int, width: int, seed: int) -> np.ndarray:
    """Return unit vectors that differ more in the first columns, as names do."""
    vectors = np.random.default_rng(seed).normal(size=(rows, width))
    vectors *= np.linspace(1, 0.1, width)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def test_index_search_equals_brute_force(make, tmp_path):
    vectors, queries = near_rows(3000, 16, 1), near_rows(50, 16, 2)
    index = make(tmp_path, vectors, threads=4)
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


def test_faiss_starts_at_whole_levels_and_leaves_its_threads(make_index, tmp_path):
    faiss = pytest.importorskip("faiss")
    before = faiss.omp_get_max_threads()
    make_index(tmp_path, "faiss", near_rows(300, 16, 1), threads=before + 2)
    assert faiss.omp_get_max_threads() == before
    graph = faiss.IndexHNSWFlat(2, 8)
    graph.add(near_rows(20_000, 2, 1))
    levels = faiss.vector_to_array(graph.hnsw.levels)
    nodes = faiss_graph.choose_start_nodes(graph)
    assert len(nodes) >= faiss_graph.LEAST_START_NODES
    lowest = levels[nodes].min()
    assert lowest > np.delete(levels, nodes).max()
    assert (levels > lowest).sum() < faiss_graph.LEAST_START_NODES


def test_sample_of_rows_has_the_first_and_the_last():
    rows = np.arange(2.0 * short_vectors.SAMPLE)[:, None]
    sample = short_vectors.sample_rows(rows)
    assert (sample[0], sample[-1], len(sample)) == (0, rows[-1], short_vectors.SAMPLE)


@pytest.mark.parametrize("rows", [1, 20])
def test_index_of_few_rows(make, rows, unit_rows, tmp_path):
    vectors = unit_rows(rows, 8, 4)
    index = make(tmp_path, vectors)
    assert index.width == 8
    found, scores = index.search(unit_rows(3, 8, 5), 30)
    assert found.shape == scores.shape == (3, rows)
    assert all(sorted(row) == list(range(rows)) for row in found.tolist())
    for some in ([rows - 1, 0], [rows - 1, rows - 1], []):
        own = index.vectors(np.array(some, dtype=np.int64))
        assert own.dtype == np.float32
        assert own.shape == (len(some), 8)
        assert np.allclose(own, vectors[some], atol=2e-5)
    found, scores = index.search(np.empty((0, 8), dtype=np.float32), 3)
    assert len(found) == len(scores) == 0
    with pytest.raises(SapbertError, match="width 8"):
        index.search(unit_rows(1, 9, 7), 1)
    for value in (np.nan, np.inf):
        queries = unit_rows(2, 8, 7)
        queries[1, 3] = value
        with pytest.raises(SapbertError, match="E301.*NaN"):
            index.search(queries, 1)
    # Rows of equal vectors are ordered by their numbers.
    index = make(tmp_path / "equal", np.repeat(vectors[:1], 6, axis=0))
    found, scores = index.search(vectors[:1], 6)
    assert found.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert np.ptp(scores) < 1e-6


def test_search_among_goes_deeper_for_vectors_far_from_the_rows(
    make_index, tmp_path, monkeypatch
):
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
    mask[0] = True
    assert search_among(index, vectors[:1], 5, mask)[0][0, 0] == 0


BLOCKS = {
    exact: ("BLOCK_ROWS", "READ_ROWS"),
    row_file: ("BLOCK_ROWS",),
    hnsw: ("BLOCK_ROWS",),
    short_vectors: ("SAMPLE_AT_ONCE", "ROWS_AT_ONCE"),
    faiss_graph: ("LINKS_AT_ONCE",),
}


def test_index_does_not_depend_on_the_size_of_blocks(form, tmp_path, monkeypatch):
    vectors, queries = near_rows(200, 8, 1), near_rows(9, 8, 2)
    allowed = np.arange(200) % 3 > 0
    whole = form.make(tmp_path / "whole", vectors)
    rows, scores = whole.search(queries, 20)
    among = search_among(whole, queries, 20, allowed)
    for module, names in BLOCKS.items():
        for name in names:
            monkeypatch.setattr(module, name, 7)
    monkeypatch.setattr(hnsw, "BLOCK_BYTES", 1000)
    parts = form.make(tmp_path / "parts", vectors)
    # sums of floats; faiss rounds those of its graph to bytes
    sums = {".pca", ".hnsw"} if form.settings.get("pca") else set()
    for path in (tmp_path / "whole").iterdir():
        if path.suffix not in sums:
            assert (tmp_path / "parts" / path.name).read_bytes() == path.read_bytes()
    for (mine, of_mine), (its, of_its) in (
        (parts.search(queries, 20), (rows, scores)),
        (search_among(parts, queries, 20, allowed), among),
    ):
        assert of_mine == pytest.approx(of_its, abs=1e-6)
        # Rows that are nearer to each other than this may be in any order.
        gaps = np.abs(np.diff(of_its, axis=1)) > 1e-5
        clear = np.pad(gaps, ((0, 0), (1, 0)), constant_values=True)
        clear[:, :-1] &= gaps
        clear[:, -1] = False  # the next one is not known
        assert mine[clear].tolist() == its[clear].tolist()
        assert clear.any()


def test_rows_of_a_file_by_hand(tmp_path):
    runs = find_runs(np.array([0, 1, 2, 9, 1, 2, 4]))
    assert runs.tolist() == [0, 3, 4, 6, 7]
    assert find_runs(np.zeros(0, dtype=int)).tolist() == [0]
    stored = encode_rows(np.array([[1, -1], [0.25, 2], [-3, 0]]), compact=True)
    assert stored.tolist() == [[32767, -32767], [8192, 32767], [-32767, 0]]
    with open(tmp_path / "rows", "w+b") as file:
        write_at(file, np.array([2, 0, 3]), stored)
        write_at(file, np.array([1]), stored[:1])
    rows = RowFile(tmp_path / "rows", rows=4, width=2)
    values = np.array([[0.25, 1], [1, -1], [1, -1], [-1, 0]])
    assert rows[:] == pytest.approx(values, abs=2e-5)
    assert rows[1:3].tolist() == rows[np.array([1, 2])].tolist()


def test_load_index_of_another_size_is_an_error(form, unit_rows, tmp_path):
    _, _, build, load = form
    build(tmp_path, unit_rows(50, 8, 5))
    for rows, width in ((49, 8), (51, 8), (50, 7), (0, 8)):
        with pytest.raises(SapbertError, match="E306"):
            load(tmp_path, rows, width)
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        half = content[: len(content) // 2]
        for changed in (b"", content[:-4], content + bytes(4), half):
            path.write_bytes(changed)
            with pytest.raises(SapbertError, match="E306"):
                load(tmp_path, 50, 8)
        path.unlink()
        with pytest.raises(SapbertError, match="E004"):
            load(tmp_path, 50, 8)
        path.write_bytes(content)
        load(tmp_path, 50, 8)


def test_load_index_damaged_anywhere_ends_in_an_error_or_an_answer(form, tmp_path):
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


FORKING = """
import os, sys
import numpy as np
from pathlib import Path
from spacy_sapbert.kb.indexes.backends import *
vectors = np.random.default_rng(5).normal(size=(400, 8)).astype("f4")
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
for number, (backend, settings) in enumerate(eval(sys.argv[2])):
    folder = Path(sys.argv[1]) / str(number)
    folder.mkdir()
    used = build_index(vectors, folder, backend=backend, settings=settings, threads=1)
    paths = {name: folder / name for name in index_files(backend, used)}
    size = {"settings": used, "rows": 400, "width": 8}
    index = load_index(paths, backend=backend, **size)
    before = index.search(vectors, 3)[0]
    if not (child := os.fork()):
        again = load_index(paths, backend=backend, **size)
        found = [one.search(vectors, 3)[0] for one in (index, again)]
        os._exit(0 if all((before == rows).all() for rows in found) else 3)
    print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_index_search_in_a_forked_child(tmp_path, new_process):
    pytest.importorskip("faiss")
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    words = (FORKING, tmp_path, [*FORMS.values()])
    done = new_process.python(*words, env=environment)
    assert done.stdout.split() == ["0"] * len(FORMS), done.stderr


GRAPH = {"M": (2, 1024), "ef_construction": (1, 100_000), "ef": (1, 100_000)}
SHORT = {"pca": (0, 65_536), "rerank": (1, 100_000)}
RANGES = {
    "exact": {},
    "hnsw": GRAPH | SHORT | {"seed": (0, 2**32 - 1)},
    "faiss": GRAPH | SHORT,
}


@pytest.mark.parametrize("backend", RANGES)
def test_settings_of_a_backend_have_a_range(backend):
    assert make_backend(backend).settings.keys() == RANGES[backend].keys()
    for name, (low, high) in RANGES[backend].items():
        for value in (low, high):
            assert make_backend(backend, {name: value}).settings[name] == value
        for value in (low - 1, high + 1):
            with pytest.raises(SapbertError, match=f"{name} from {low} .*{value}"):
                make_backend(backend, {name: value})
    with pytest.raises(SapbertError, match="'efSearch'"):
        make_backend(backend, {"efSearch": 3})
    with pytest.raises(SapbertError, match="'exact', 'faiss', 'hnsw'"):
        make_backend("annoy")


def test_hnsw_reads_no_full_vectors_into_memory(make_index, unit_rows, tmp_path):
    pytest.importorskip("hnswlib")
    vectors = unit_rows(300, 384, 1)
    index = make_index(tmp_path, "hnsw", vectors)
    # hnswlib copies the whole file of the graph
    assert (tmp_path / hnsw.FILE).stat().st_size < 300 * backends.HNSW_BYTES
    assert index.search(vectors[:1], 1)[1][0, 0] == pytest.approx(1, abs=1e-6)
    assert (index.vectors(np.array([7, 3])) == vectors[[7, 3]]).all()


def test_keep_best_keeps_the_smallest_rows_of_a_tie():
    rows = np.array([[3, 4, 5, 6, 7]])
    scores = np.array([[0.5, 0.9, 0.5, 0.5, 0.1]], dtype=np.float32)
    kept, best = keep_best(rows, scores, 3)
    assert kept.tolist() == [[3, 4, 5]]
    assert np.allclose(best, [[0.5, 0.9, 0.5]])


def test_row_file_that_is_cut_while_it_is_used_is_an_error(unit_rows, tmp_path):
    path = tmp_path / "rows"
    write_rows(unit_rows(100, 8, 4), path, compact=True, progress=False)
    rows = RowFile(path, rows=100, width=8)
    os.truncate(path, 500)
    assert rows[np.array([2, 9])].shape == (2, 8)
    for some in (np.array([2, 70]), slice(60, 80)):
        with pytest.raises(SapbertError, match="E306.*cut"):
            rows[some]


@pytest.mark.parametrize(
    ("rows", "missing", "expected"),
    [
        (20_000, (), "exact"),
        (20_001, (), "hnsw"),
        (3_000_000, (), "hnsw"),
        (3_000_001, (), "faiss"),
        (20_001, ("hnsw",), "faiss"),
        (3_000_001, ("hnsw", "faiss"), "exact"),
    ],
)
def test_choose_index_by_rows_and_libraries(rows, missing, expected, monkeypatch):
    monkeypatch.setattr(backends, "is_usable", lambda backend: backend not in missing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_index(rows) == make_backend(expected)
