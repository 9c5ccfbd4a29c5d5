import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Dict

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.hf import EncoderSettings, load_encoder, read_settings
from training.batches import read_pairs, tokenize_names
from training.settings import TrainingSettings, count_steps, scheduled_rate
from training.steps import embed_names
from training.train_encoder import planned_batches, train

ROOT = Path(__file__).parent.parent.parent
WORDS = ["heart", "attack", "fever", "pain", "acute", "lung", "skin", "bone", "liver"]


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two orders of two words are one concept: easy to learn."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    lines = [
        f"C{i}{j}\t{one} {other}\t{other}, {one}"
        for i, one in enumerate(WORDS)
        for j, other in enumerate(WORDS)
        if i != j
    ]
    path.write_text("\n".join(lines) + "\n", "utf8")
    return path


@pytest.fixture(scope="module")
def settings(tiny_encoder: Path) -> TrainingSettings:
    return TrainingSettings(
        base=str(tiny_encoder),
        pooling="mean",
        batch_size=16,
        epochs=3,
        learning_rate=1e-3,
        chunks=2,
    )


def run(
    folder: Path, pairs: Path, settings: TrainingSettings, **kwargs: object
) -> Dict:
    summary = train(
        pairs,
        folder / "encoder",
        settings,
        checkpoint=folder / "checkpoint",
        progress=False,
        **kwargs,  # type: ignore[arg-type]
    )
    assert summary is not None
    return summary


def equal_weights(one: Path, other: Path) -> bool:
    a, b = (load_file(path / "model.safetensors") for path in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def test_training_lowers_the_loss_and_writes_a_plain_encoder(
    pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    summary = run(tmp_path, pairs_file, replace(settings, epochs=12))
    assert summary["pairs"] == 72
    assert summary["steps"] == 60
    assert summary["last_loss"] < 0.8 * summary["first_loss"]
    _, model = load_encoder(str(tmp_path / "encoder"))
    assert model.config.hidden_size == 32
    assert read_settings(tmp_path / "encoder") == EncoderSettings("mean", 25, True)
    card = (tmp_path / "encoder" / "README.md").read_text("utf8")
    assert "72 pairs" in card
    assert "| learning_rate | `0.001` |" in card
    log = (tmp_path / "encoder" / "training.jsonl").read_text("utf8").splitlines()
    assert [json.loads(line)["step"] for line in log] == list(range(1, 61))
    assert not (tmp_path / "checkpoint").exists()


def test_training_is_the_same_for_a_seed(
    pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        run(tmp_path / name, pairs_file, replace(settings, seed=seed, steps=4))
    encoders = [tmp_path / name / "encoder" for name in ("one", "two", "three")]
    assert equal_weights(encoders[0], encoders[1])
    assert not equal_weights(encoders[0], encoders[2])


def test_training_stopped_and_resumed_equals_an_unbroken_run(
    pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    linear = replace(settings, schedule="linear")
    run(tmp_path / "unbroken", pairs_file, linear)
    stop = Event()
    stop.set()
    broken = tmp_path / "broken"
    for _ in range(3):  # each goes on by one step
        stopped = train(
            pairs_file,
            broken / "encoder",
            linear,
            checkpoint=broken / "checkpoint",
            progress=False,
            stop=stop,
        )
        assert stopped is None
    assert not (broken / "encoder").exists()
    summary = run(broken, pairs_file, linear)
    assert summary["steps"] == 15
    assert equal_weights(tmp_path / "unbroken" / "encoder", broken / "encoder")


def test_training_killed_and_resumed_equals_an_unbroken_run(
    pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    command = [
        *(sys.executable, "-m", "training.train_encoder", str(pairs_file)),
        *("ENCODER", "--base", settings.base, "--pooling", "mean", "--quiet"),
        *("--batch-size", "16", "--epochs", "40", "--learning-rate", "1e-3"),
        *("--chunks", "2", "--precision", "float32", "--threads", "1"),
        *("--checkpoint-every", "7"),
    ]

    def start(folder: str) -> subprocess.Popen:
        command[4] = str(tmp_path / folder)
        return subprocess.Popen(command, cwd=ROOT)

    killed = start("killed")
    checkpoint = tmp_path / "killed-checkpoint" / "state.json"
    deadline = time.monotonic() + 120
    while not checkpoint.is_file() and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    assert start("killed").wait(timeout=120) == 0
    assert start("unbroken").wait(timeout=120) == 0
    assert equal_weights(tmp_path / "killed", tmp_path / "unbroken")


def test_a_checkpoint_of_other_settings_is_refused(
    pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    stop = Event()
    stop.set()
    places = {"output": tmp_path / "encoder", "checkpoint": tmp_path / "checkpoint"}
    train(pairs_file, settings=settings, progress=False, stop=stop, **places)
    other = replace(settings, margin=0.1)
    with pytest.raises(SapbertError, match="another margin.*--fresh"):
        train(pairs_file, settings=other, progress=False, **places)
    train(pairs_file, settings=other, progress=False, fresh=True, **places)
    assert (tmp_path / "encoder" / "model.safetensors").is_file()


def test_a_loss_that_is_no_number_stops_and_names_lines_not_names(
    pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    endless = replace(settings, learning_rate=float("inf"))
    with pytest.raises(SapbertError, match="nan at step 2; its pairs are l") as caught:
        run(tmp_path, pairs_file, endless)
    assert not any(word in str(caught.value) for word in WORDS)
    assert not (tmp_path / "encoder").exists()


def test_chunks_change_neither_vectors_nor_gradient(
    pairs_file: Path, settings: TrainingSettings
) -> None:
    tokenizer, model = load_encoder(settings.base)
    pairs = read_pairs(pairs_file)
    tokens = tokenize_names(tokenizer, pairs.names, max_length=25)
    names = np.arange(20)
    gradients, outputs = [], []
    for chunks in (1, 5):
        model.zero_grad()
        vectors = embed_names(model, tokens, names, replace(settings, chunks=chunks))
        (vectors[:, 0] * vectors[:, 1]).sum().backward()
        outputs.append(vectors.detach())
        gradients.append(
            torch.cat(
                [p.grad.flatten() for p in model.parameters() if p.grad is not None]
            )
        )
    assert torch.allclose(*outputs, atol=1e-6)
    assert torch.allclose(*gradients, atol=1e-6)
    assert torch.allclose(outputs[0].norm(dim=1), torch.ones(20))


def test_planned_batches_go_on_after_the_steps_that_are_done() -> None:
    settings = TrainingSettings(base="", batch_size=4, epochs=2, steps=5)
    everything = list(planned_batches(10, settings, done=0))
    assert [step for step, _ in everything] == [0, 1, 2, 3, 4]
    assert count_steps(10, settings) == 5
    rest = list(planned_batches(10, settings, done=3))
    assert [(s, b.tolist()) for s, b in rest] == [
        (s, b.tolist()) for s, b in everything[3:]
    ]


def test_linear_schedule_falls_to_zero() -> None:
    settings = TrainingSettings(base="", learning_rate=1.0, schedule="linear")
    assert [scheduled_rate(step, 4, settings) for step in range(4)] == [
        1,
        0.75,
        0.5,
        0.25,
    ]
    assert scheduled_rate(3, 4, replace(settings, schedule="constant")) == 1


@pytest.mark.parametrize("field", ["pooling", "loss", "schedule", "precision"])
def test_an_unknown_choice_is_an_error(
    field: str, pairs_file: Path, settings: TrainingSettings, tmp_path: Path
) -> None:
    with pytest.raises(SapbertError, match=f"{field} to be one of"):
        run(tmp_path, pairs_file, replace(settings, **{field: "wrong"}))


def test_training_does_not_need_spacy() -> None:
    code = "import sys; sys.modules['spacy'] = None; import training.train_encoder"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
