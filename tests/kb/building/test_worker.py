"""Workers embed the names of one knowledge base beside each other."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building import row_vectors
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.building.plan import lock_work_folder
from spacy_sapbert.kb.building.worker import embed_shards
from tests.building import build_small_kb
from tests.commands import invoke

Contents = Callable[[Path], dict[Path, bytes]]
Embed = Callable[..., None]
SLOW_WORKER = """
import sys, time
from pathlib import Path
from spacy_sapbert import embed_shards
from spacy_sapbert.kb.building import row_vectors
row_vectors.SHARD_ROWS = 4
write = row_vectors.write_shard
def write_slowly(path, vectors):
    write(path, vectors)
    time.sleep(60)
row_vectors.write_shard = write_slowly
paths = map(Path, sys.argv[1:3])
embed_shards(*paths, sys.argv[3], (0, 2), engine="torch")
"""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_vectors, "SHARD_ROWS", 4)


@pytest.fixture
def embed(concepts_file: Path, tiny_encoder: Path, tmp_path: Path) -> Embed:
    """Runs a worker for the knowledge base `kb`."""

    def embed(worker: tuple[int, int], **options: Any) -> None:
        options = {"encoder": str(tiny_encoder), "engine": "torch", **options}
        embed_shards(concepts_file, tmp_path / "kb", worker=worker, **options)

    return embed


def shards(folder: Path) -> list[int]:
    return [int(path.stem[-6:]) for path in sorted(folder.glob("shard-*.npy"))]


@pytest.mark.parametrize("backend", ["exact", "hnsw"])
def test_workers_and_build_kb_write_the_bytes_of_one_process(
    backend: str,
    embed: Embed,
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    contents: Contents,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build: dict[str, Any] = {"encoder": str(tiny_encoder), "threads": 1}
    build["engine"] = "torch"
    build_kb(concepts_file, tmp_path / "one", backend=backend, **build)
    embed((2, 3), backend=backend)
    work = tmp_path / ".kb.build"
    assert shards(work) == [2, 5]
    assert not (work / "concepts.db").exists()
    embed((0, 3))  # with the index of the first
    embed((1, 3), backend=backend)
    assert shards(work) == [0, 1, 2, 3, 4, 5]
    assert not [*work.glob(".*")]
    with monkeypatch.context() as patched:
        patched.delattr(row_vectors, "embed_shard")
        build_kb(concepts_file, tmp_path / "kb", **build)
    assert contents(tmp_path / "kb") == contents(tmp_path / "one")
    assert not work.exists()


def test_build_kb_embeds_what_a_worker_has_not(
    embed: Embed,
    concepts_file: Path,
    tiny_encoder: Path,
    sample_kb: Path,
    tmp_path: Path,
) -> None:
    embed((1, 2), backend="hnsw", reuse=sample_kb)
    manifest = build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder)
    assert manifest.counts.rows > 20


def test_worker_that_is_killed_does_only_its_missing_shards_again(
    embed: Embed,
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    new_process: Any,
) -> None:
    kb, work = tmp_path / "kb", tmp_path / ".kb.build"
    command = [sys.executable, "-c", SLOW_WORKER, concepts_file, kb, tiny_encoder]
    with new_process.start(command) as process:
        while not shards(work):
            assert process.poll() is None
            time.sleep(0.01)
        # While it runs, others may work, but not build.
        embed((1, 2))
        with pytest.raises(SapbertError, match="E350"):
            build_small_kb(concepts_file, kb, tiny_encoder)
        new_process.kill(process)
    first = (work / "shard-000000.npy").stat()
    assert shards(work) == [0, 1, 3, 5]
    embed((0, 2))
    assert shards(work) == [0, 1, 2, 3, 4, 5]
    assert (work / "shard-000000.npy").stat() == first
    build_small_kb(concepts_file, kb, tiny_encoder)
    assert [*tmp_path.iterdir()] == [kb]


def test_worker_with_another_plan_keeps_the_shards_of_others(
    embed: Embed,
    make_bert: Any,
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
) -> None:
    embed((0, 2))
    work = tmp_path / ".kb.build"
    before = {path.name: path.stat() for path in work.iterdir()}
    other = str(make_bert(tmp_path / "bert", ["fever"]))
    changes: dict[str, dict[str, Any]] = {
        "fingerprint": {"encoder": other},
        "precision": {"precision": "bf16", "force": True},
        "index": {"backend": "hnsw"},
    }
    for name, change in changes.items():
        with pytest.raises(SapbertError, match=rf"E394.*\(other: {name}\)"):
            embed((1, 2), **change)
        if not change.pop("force", False):
            options = {"encoder": str(tiny_encoder), **change}
            with pytest.raises(SapbertError, match="E394.*--force"):
                build_kb(concepts_file, tmp_path / "kb", **options)
    assert before.items() <= {path.name: path.stat() for path in work.iterdir()}.items()
    build_small_kb(concepts_file, tmp_path / "kb", other, force=True)
    assert not work.exists()


def test_worker_while_a_build_runs_is_an_error(embed: Embed, tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    with (
        lock_work_folder(tmp_path / "kb"),
        pytest.raises(SapbertError, match="E350"),
    ):
        embed((0, 2))


@pytest.mark.parametrize("worker", ["2/2", "1", "a/b", "-1/2", "0/0", "/"])
def test_worker_that_is_none_is_an_error(
    worker: str, concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    words = ["kb", "build", concepts_file, tmp_path / "kb", "--encoder", tiny_encoder]
    assert "E395" in invoke(*words, f"--worker={worker}", code=1).output
    assert [*tmp_path.iterdir()] == []


def test_worker_of_an_existing_kb_is_an_error(embed: Embed, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    with pytest.raises(SapbertError, match="E003"):
        embed((0, 2))
