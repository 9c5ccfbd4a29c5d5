"""The recipes that build a knowledge base with several workers, run as they are."""

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert import Concept, build_kb, write_concepts

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "many_machines"
WORKERS = 2


@pytest.fixture(scope="module")
def concepts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many names that each worker has a shard."""
    path = tmp_path_factory.mktemp("many") / "concepts.jsonl"
    write_concepts(path, (Concept(f"C{n}", [f"pain {n}"]) for n in range(9_000)))
    return path


@pytest.fixture(scope="module")
def expected(
    concepts: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files that one process writes."""
    kb = tmp_path_factory.mktemp("expected") / "kb"
    build_kb(concepts, kb, str(tiny_encoder), threads=1)
    return read_files(kb)


def read_files(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(ROOT))
        patched.setenv("OMP_NUM_THREADS", "1")
        patched.setenv("PYSPARK_PYTHON", sys.executable)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        patched.setenv("PATH", path)
        yield


def run(new_process: Any, *words: object, **variables: str) -> None:
    done = new_process.run([*map(str, words)], env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr


def shards(kb: Path) -> list[str]:
    return sorted(path.name for path in (kb.parent / ".kb.build").glob("shard-*"))


@pytest.mark.skipif(os.name != "posix", reason="the script is for bash")
@pytest.mark.usefixtures("one_thread")
def test_torchrun_embeds_all_shards(
    concepts: Path,
    tiny_encoder: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
    new_process: Any,
) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--no-python"]
    torchrun += ["--standalone", f"--nproc-per-node={WORKERS}"]
    kb = tmp_path / "kb"
    run(
        new_process,
        *torchrun,
        "bash",
        RECIPES / "build_worker.sh",
        concepts,
        kb,
        tiny_encoder,
    )
    assert shards(kb) == ["shard-000000.npy", "shard-000001.npy"]
    build_kb(concepts, kb, str(tiny_encoder), threads=1)
    assert read_files(kb) == expected


@pytest.mark.skipif(os.name != "posix", reason="the script is for bash")
@pytest.mark.usefixtures("one_thread")
def test_slurm_task_embeds_its_shard(
    concepts: Path, tiny_encoder: Path, tmp_path: Path, new_process: Any
) -> None:
    task = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "2"}
    script = ["bash", RECIPES / "build_worker.sh"]
    run(
        new_process, *script, concepts, tmp_path / "kb", tiny_encoder, "--quiet", **task
    )
    assert shards(tmp_path / "kb") == ["shard-000001.npy"]


def run_recipe(monkeypatch: pytest.MonkeyPatch, name: str, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", [*map(str, (name, *words))])
    runpy.run_path(str(RECIPES / name), run_name="__main__")


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_spark_recipe_writes_the_bytes_of_one_process(
    concepts: Path,
    tiny_encoder: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kb = tmp_path / "kb"
    run_recipe(monkeypatch, "build_spark.py", concepts, kb, tiny_encoder, WORKERS)
    assert read_files(kb) == expected


@pytest.mark.xdist_group("ray")
@pytest.mark.usefixtures("ray_data")
def test_ray_recipe_writes_the_bytes_of_one_process(
    concepts: Path,
    tiny_encoder: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kb = tmp_path / "kb"
    run_recipe(monkeypatch, "build_ray.py", concepts, kb, tiny_encoder, WORKERS)
    assert read_files(kb) == expected
