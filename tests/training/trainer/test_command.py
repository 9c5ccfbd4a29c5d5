import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

ROOT = Path(__file__).parents[3]
LIMIT = 300  # seconds; only a run that hangs takes as long


def make_command(pairs: Path, encoder: Path, settings: dict[str, Any]) -> list[str]:
    command = [sys.executable, "-m", "training", "train", str(pairs), str(encoder)]
    for key, value in settings.items():
        command += [f"--{key}", str(value)]
    # so that a run that was quicker than its kill is repeated
    return [*command, "--threads", "1", "--force"]


def equal_weights(one: Path, other: Path) -> bool:
    a, b = ((path / "model.safetensors").read_bytes() for path in (one, other))
    return a == b


def read_state(path: Path) -> bytes:
    """Return the content of a checkpoint's state.json; empty while there is none."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


def kill_somewhere(new_process: Any, command: list[str], encoder: Path) -> None:
    """Start a run, and kill it some time after a checkpoint.

    A checkpoint that the run before wrote in its last moments does not count.
    """
    state = encoder.with_name(f"{encoder.name}-checkpoint") / "state.json"
    before = read_state(state)
    killed = new_process.start(command, cwd=ROOT)
    wait_for(
        lambda: killed.poll() is not None or read_state(state) not in (b"", before)
    )
    time.sleep(random.random() * 0.3)
    killed.kill()
    # 0 if the run was quicker
    assert killed.wait(timeout=LIMIT) in (0, -signal.SIGKILL)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_for_first_step(encoder: Path) -> Path:
    """Wait until a run has logged a step, and return its log."""
    log = encoder.with_name(f"{encoder.name}-checkpoint.log.jsonl")
    wait_for(lambda: log.is_file() and log.stat().st_size > 0)
    return log


@pytest.fixture(scope="module")
def long_settings(small_settings: dict[str, Any]) -> dict[str, Any]:
    return {
        **small_settings,
        "training.epochs": 40,
        "training.checkpoint_every": 7,
        "training.schedule.@schedules": "spacy-sapbert.Linear.v1",
    }


@pytest.fixture(scope="module")
def unbroken(
    pairs_file: Path,
    long_settings: dict[str, Any],
    tmp_path_factory: Any,
    shared_process: Any,
) -> Path:
    """The encoder of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("unbroken") / "encoder"
    command = make_command(pairs_file, folder, long_settings)
    shared_process.run([*command, "--quiet"], cwd=ROOT, check=True, timeout=LIMIT)
    return folder


def test_train_killed_at_random_steps_equals_an_unbroken_run(
    pairs_file: Path,
    long_settings: dict[str, Any],
    unbroken: Path,
    tmp_path: Path,
    new_process: Any,
) -> None:
    encoder = tmp_path / "encoder"
    command = make_command(pairs_file, encoder, long_settings)
    kill_somewhere(new_process, command, encoder)
    kill_somewhere(new_process, command, encoder)
    new_process.run(command, cwd=ROOT, check=True, timeout=LIMIT)
    assert equal_weights(encoder, unbroken)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["encoder"]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_train_interrupted_saves_and_can_be_repeated(
    sent: signal.Signals,
    pairs_file: Path,
    long_settings: dict[str, Any],
    unbroken: Path,
    tmp_path: Path,
    new_process: Any,
) -> None:
    encoder = tmp_path / "encoder"
    command = make_command(pairs_file, encoder, long_settings)
    run = new_process.start(command, cwd=ROOT, stderr=new_process.PIPE, text=True)
    wait_for_first_step(encoder)
    run.send_signal(sent)
    _, printed = run.communicate(timeout=LIMIT)
    assert run.returncode == 128 + sent
    assert "Repeat the same command" in printed
    assert (tmp_path / "encoder-checkpoint" / "state.json").is_file()
    done = new_process.run(command, cwd=ROOT, timeout=LIMIT)
    assert done.returncode == 0
    assert "Wrote" in done.stdout
    assert equal_weights(encoder, unbroken)


def test_train_with_an_unknown_setting_names_the_nearest(
    pairs_file: Path, small_settings: dict[str, Any], tmp_path: Path, new_process: Any
) -> None:
    wrong = {**small_settings, "training.optimizer.learning_rat": 1}
    command = make_command(pairs_file, tmp_path / "encoder", wrong)
    done = new_process.run(command, cwd=ROOT)
    assert done.returncode == 1
    text = " ".join((done.stdout + done.stderr).split())
    assert "did you mean training.optimizer.learning_rate?" in text
    assert not any(tmp_path.iterdir())


def test_train_with_validation_runs_without_spacy(
    pairs_file: Path, small_settings: dict[str, Any], tmp_path: Path, new_process: Any
) -> None:
    write_concepts(tmp_path / "concepts.jsonl", [Concept("C1", ["heart attack"])])
    (tmp_path / "mentions.txt").write_text("attack, heart||C1\n", "utf8")
    more = {
        "training.steps": 2,
        "validation.mentions": tmp_path / "mentions.txt",
        "validation.concepts": tmp_path / "concepts.jsonl",
    }
    command = make_command(pairs_file, tmp_path / "encoder", {**small_settings, **more})
    code = (
        "import sys; sys.modules['spacy'] = None\n"
        "from training.__main__ import app; app()"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = command[command.index("train") :]
    new_process.python(code, *words, cwd=ROOT, env=env, check=True)
    card = (tmp_path / "encoder" / "README.md").read_text("utf8")
    assert "| best accuracy | 1.0 |" in card
