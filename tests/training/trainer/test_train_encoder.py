import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from training.trainer.config import DEFAULT_CONFIG

ROOT = Path(__file__).parents[3]


def make_command(pairs: Path, encoder: Path, settings: dict[str, Any]) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "training.trainer.train_encoder",
        str(pairs),
        str(encoder),
    ]
    for key, value in settings.items():
        command += [f"--{key}", str(value)]
    return [*command, "--threads", "1"]


def equal_weights(one: Path, other: Path) -> bool:
    a, b = (load_file(path / "model.safetensors") for path in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def kill_somewhere(command: list[str], encoder: Path, *, times: int) -> None:
    """Start a run and kill it a little after a checkpoint, again and again."""
    state = encoder.with_name(f"{encoder.name}-checkpoint") / "state.json"
    chance = random.Random()
    before = ""
    for _ in range(times):
        killed = subprocess.Popen(command, cwd=ROOT)
        deadline = time.monotonic() + 120
        # until it has come farther than the one before, and then a little more
        while time.monotonic() < deadline:
            now = state.read_text("utf8") if state.is_file() else ""
            if now and now != before:
                break
            time.sleep(0.005)
        before = now
        time.sleep(chance.random() * 0.3)
        killed.send_signal(signal.SIGKILL)
        if killed.wait() != -signal.SIGKILL:
            break  # it was quicker


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
    pairs_file: Path, long_settings: dict[str, Any], tmp_path_factory: Any
) -> Path:
    """The encoder of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("unbroken") / "encoder"
    command = make_command(pairs_file, folder, long_settings)
    subprocess.run([*command, "--quiet"], cwd=ROOT, check=True, timeout=120)
    return folder


def test_training_killed_at_random_steps_and_resumed_equals_an_unbroken_run(
    pairs_file: Path, long_settings: dict[str, Any], unbroken: Path, tmp_path: Path
) -> None:
    encoder = tmp_path / "encoder"
    command = make_command(pairs_file, encoder, long_settings)
    kill_somewhere(command, encoder, times=2)
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True)
    assert equal_weights(encoder, unbroken)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["encoder"]


def test_training_on_all_files_killed_and_resumed_ends_with_the_same_bytes(
    pairs_file: Path,
    forest: dict[str, str],
    long_settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    settings = {
        **long_settings,
        **forest,
        "config": DEFAULT_CONFIG.with_name("hierarchy.cfg"),
        "training.epochs": 16,  # of 15 steps, mixed of pairs, relations and families
    }
    encoders = [tmp_path / name / "encoder" for name in ("unbroken", "killed")]
    commands = [make_command(pairs_file, each, settings) for each in encoders]
    kill_somewhere(commands[1], encoders[1], times=1)
    assert not encoders[1].exists()
    for command in commands:
        subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True)
    one, other = ((folder / "model.safetensors").read_bytes() for folder in encoders)
    assert one == other
    lines = (encoders[1] / "training.jsonl").read_text("utf8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 241))


def test_training_interrupted_saves_and_says_how_to_go_on(
    pairs_file: Path, long_settings: dict[str, Any], unbroken: Path, tmp_path: Path
) -> None:
    encoder = tmp_path / "encoder"
    command = make_command(pairs_file, encoder, long_settings)
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    log = tmp_path / "encoder-checkpoint.log.jsonl"
    while not (log.is_file() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "the same command again" in output
    assert (tmp_path / "encoder-checkpoint" / "state.json").is_file()
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    assert "Wrote" in done.stdout
    assert equal_weights(encoder, unbroken)


def test_an_unknown_setting_ends_with_its_name_and_the_fix(
    pairs_file: Path, small_settings: dict[str, Any], tmp_path: Path
) -> None:
    wrong = {**small_settings, "training.optimizer.learning_rat": 1}
    command = make_command(pairs_file, tmp_path / "encoder", wrong)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    text = " ".join((done.stdout + done.stderr).split())
    assert "did you mean training.optimizer.learning_rate?" in text
    assert not any(tmp_path.iterdir())


def test_training_does_not_need_spacy() -> None:
    code = (
        "import sys; sys.modules['spacy'] = None; import training.trainer.train_encoder"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True)
