"""The build of a graph of faiss goes on where it was stopped, with the same bytes."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.indexes import faiss_graph
from spacy_sapbert.kb.indexes.registry import build_index

pytest.importorskip("faiss")

ROWS, WIDTH = 1500, 16
FILES = ("index.faiss", "index.i16", "index.pca")
SETTINGS = {"pca": 8, "ef_construction": 20}
BUILD = """
import sys, time
from pathlib import Path
import numpy as np
from spacy_sapbert.kb.indexes import faiss_graph
from spacy_sapbert.kb.indexes.registry import build_index
vectors, folder = np.load(sys.argv[1]), Path(sys.argv[2])
faiss_graph.BLOCK_ROWS, faiss_graph.PART_ROWS = 100, 300
class Slow:
    shape = vectors.shape
    def __len__(self):
        return len(vectors)
    def __getitem__(self, rows):
        time.sleep(0.02)
        return vectors[rows]
(folder / "kb").mkdir(exist_ok=True)
build_index(Slow(), folder / "kb", backend="faiss",
            settings={"pca": 8, "ef_construction": 20}, threads=1, work=folder)
"""


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_graph, "BLOCK_ROWS", 100)
    monkeypatch.setattr(faiss_graph, "PART_ROWS", 300)


@pytest.fixture
def vectors(unit_rows: Callable[[int, int, int], np.ndarray]) -> np.ndarray:
    return unit_rows(ROWS, WIDTH, 0)


def build(vectors: np.ndarray, folder: Path, work: Path | None) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    options: dict[str, Any] = {"settings": SETTINGS, "threads": 1, "work": work}
    build_index(vectors, folder, backend="faiss", **options)
    return {name: (folder / name).read_bytes() for name in FILES}


class Stopping:
    """Vectors whose reading stops after some calls."""

    shape = (ROWS, WIDTH)

    def __init__(self, vectors: np.ndarray, calls: int) -> None:
        self.vectors, self.calls = vectors, calls

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, rows: Any) -> np.ndarray:
        self.calls -= 1
        if not self.calls:
            raise KeyboardInterrupt
        return self.vectors[rows]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("calls", [2, 6, 7, 12, 18])
def test_build_index_stopped_continues_with_the_same_bytes(
    calls: int, vectors: np.ndarray, tmp_path: Path
) -> None:
    whole = build(vectors, tmp_path / "whole", None)
    work = tmp_path / "work"
    work.mkdir()
    stopping: Any = Stopping(vectors, calls)
    with pytest.raises(KeyboardInterrupt):
        build(stopping, tmp_path / "kb", work)
    reading: Any = Stopping(vectors, 1000)
    for name in FILES:
        (tmp_path / "kb" / name).unlink(missing_ok=True)
    assert build(reading, tmp_path / "kb", work) == whole
    kept = max(0, calls - 4) // 3 * 3  # blocks; those before write and measure
    assert 1000 - reading.calls == 15 - kept + (2 if kept else 3)
    assert [path.name for path in work.iterdir()] == ["index.faiss"]
    assert (work / "index.faiss").samefile(tmp_path / "kb" / "index.faiss")


def test_build_index_killed_continues_with_the_same_bytes(
    vectors: np.ndarray, tmp_path: Path, small_parts: None, new_process: Any
) -> None:
    whole = build(vectors, tmp_path / "whole", None)
    np.save(tmp_path / "vectors.npy", vectors)
    part = tmp_path / "index.faiss"
    command = [sys.executable, "-c", BUILD, tmp_path / "vectors.npy", tmp_path]
    with new_process.start(command) as process:
        while not part.exists():
            assert process.poll() is None
            time.sleep(0.005)
        new_process.kill(process)
    assert 0 < faiss_graph.count_rows(part) < ROWS
    for name in FILES:
        (tmp_path / "kb" / name).unlink(missing_ok=True)
    assert build(vectors, tmp_path / "kb", tmp_path) == whole


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("damage", ["cut", "link", "empty", "other", "larger"])
def test_build_index_does_not_continue_a_damaged_graph(
    damage: str, vectors: np.ndarray, tmp_path: Path
) -> None:
    whole = build(vectors, tmp_path / "whole", None)
    data = whole["index.faiss"]
    links = data.index(np.full(8, -1, "<i4").tobytes())
    bad = {
        "cut": data[:-100],
        "link": data[:links] + np.int32(ROWS + 7).tobytes() + data[links + 4 :],
        "empty": b"",
        "other": b"x" * 5000,
        "larger": data,
    }[damage]
    (tmp_path / "index.faiss").write_bytes(bad)
    if damage == "larger":
        vectors = vectors[:-200]
        whole = build(vectors, tmp_path / "whole2", None)
    assert build(vectors, tmp_path / "kb", tmp_path) == whole


def test_build_index_on_a_full_disk_is_an_error_and_continues(
    vectors: np.ndarray, tmp_path: Path, new_process: Any
) -> None:
    np.save(tmp_path / "vectors.npy", vectors)
    words = (BUILD, tmp_path / "vectors.npy", tmp_path)
    done = new_process.python(*words, largest_file=100_000)
    assert "[E004]" in done.stderr
    assert 0 < faiss_graph.count_rows(tmp_path / "index.faiss") < ROWS
    new_process.python(*words, check=True)
    assert faiss_graph.count_rows(tmp_path / "kb" / "index.faiss") == ROWS


def test_build_index_that_cannot_be_written_is_an_error(
    vectors: np.ndarray, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match="E004"):
        build(vectors, tmp_path / "kb", tmp_path / "missing")
