import itertools
import json
import os
import signal
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import srsly
import torch

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.training.trainer.test_processes import equal_weights
from training.trainer.settings import make_settings
from training.trainer.validation import read_validation, validate


@pytest.fixture
def validation_settings(tmp_path) -> dict[str, Any]:
    """Four mentions: two equal to names, one of a concept that is not there."""
    concepts = [
        Concept("C1", ["heart attack", "infarction"]),
        Concept("C2", ["fever", "pyrexia"]),
        Concept("C3", ["Fever"]),
    ]
    write_concepts(tmp_path / "concepts.jsonl", concepts)
    lines = ["Heart Attack||C1", "fever||C2", "fever||C9", "infarction||OLD"]
    (tmp_path / "mentions.txt").write_text("\n".join(lines) + "\n", "utf8")
    (tmp_path / "aliases.tsv").write_text("OLD\tC1\n", "utf8")
    return {
        "validation.mentions": str(tmp_path / "mentions.txt"),
        "validation.concepts": str(tmp_path / "concepts.jsonl"),
        "validation.aliases": str(tmp_path / "aliases.tsv"),
        "validation.every": 2,
    }


def test_validate_counts_ties_with_their_probability(
    make_config, validation_settings, monkeypatch
):
    assert read_validation(make_settings(make_config())) is None
    settings = make_settings(make_config(validation_settings))
    validation = read_validation(settings)
    assert validation is not None
    tokenizer, model = load_encoder(settings.encoder.base)
    model.train()
    state = torch.get_rng_state()
    # of four: heart attack, half of one fever, and the alias
    assert validate(model, tokenizer, validation, settings) == 2.5 / 4
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    for name, size in (("NAMES_PER_BLOCK", 1), ("MENTIONS_PER_BLOCK", 1)):
        monkeypatch.setattr(f"training.trainer.validation.{name}", size)
        assert validate(model, tokenizer, validation, settings) == 2.5 / 4


def test_train_with_a_validation_of_unknown_concepts_is_an_error_at_the_start(
    train_small, validation_settings, tmp_path
):
    lines = ["Heart Attack||MESH:C1", "fever||C8", "both||C1+C7"]
    (tmp_path / "mentions.txt").write_text("\n".join(lines) + "\n", "utf8")
    with pytest.raises(SapbertError, match=r"E106.*none of 3"):
        train_small(validation_settings)
    assert not (tmp_path / "encoder-corpus-pairs").exists()


def test_train_writes_the_encoder_with_the_best_validation(
    train_small, validation_settings, tmp_path, monkeypatch
):
    accuracies = iter([0.2, 0.6, 0.6, 0.1])
    monkeypatch.setattr("training.trainer.run.validate", lambda *_: next(accuracies))
    config = {**validation_settings, "training.steps": 7}
    summary = train_small(config, "long")
    assert (summary["best_step"], summary["best_accuracy"]) == (6, 0.6)
    log = (tmp_path / "long" / "encoder" / "training.jsonl").read_text("utf8")
    tried = [json.loads(line) for line in log.splitlines() if "accuracy" in line]
    assert [entry["step"] for entry in tried] == [2, 4, 6, 7]
    train_small({"training.steps": 6}, "short")
    assert equal_weights(*(tmp_path / name / "encoder" for name in ("long", "short")))


def test_train_stops_after_patience(
    train_small, validation_settings, tmp_path, monkeypatch
):
    monkeypatch.setattr("training.trainer.run.validate", lambda *_: 0.5)
    summary = train_small({**validation_settings, "validation.patience": 2})
    assert summary["steps"] == 6  # two did not better the first one
    assert summary["best_step"] == 6  # the last of equal ones
    assert not (tmp_path / "encoder-checkpoint").exists()


def stop_at(steps: int) -> Callable[[], bool]:
    """Stop a run after so many of its own steps."""
    asked = itertools.count(1)
    return lambda: next(asked) >= steps


def test_train_resumed_keeps_the_best_validation(
    train_small, validation_settings, tmp_path, monkeypatch
):
    """Whether a checkpoint was written at its step, later, or not at all."""
    accuracies = [0.1, 0.9, 0.2, 0.3, 0.9, 0.4, 0.5, 0.6]  # of steps 2, 4, ... 15
    config = {**validation_settings, "training.checkpoint_seconds": 1000}

    def train(name: str, *stops: int) -> Path:
        left = iter(accuracies)
        monkeypatch.setattr("training.trainer.run.validate", lambda *_: next(left))
        for steps in stops:
            assert train_small(config, name, is_stopped=stop_at(steps)) is None
        summary = train_small(config, name)
        assert (summary["best_step"], summary["best_accuracy"]) == (10, 0.9)
        return tmp_path / name / "encoder"

    encoders = [train("unbroken"), train("at", 4, 6, 1), train("later", 5, 6, 1, 1)]
    train_small({"training.steps": 10}, "short")
    short = tmp_path / "short" / "encoder"
    assert all(equal_weights(encoder, short) for encoder in encoders)


def test_train_killed_between_a_best_validation_and_the_next_checkpoint_makes_it_again(
    train_small, validation_settings, tmp_path, monkeypatch, new_process
):
    config = {
        **validation_settings,
        "training.checkpoint_seconds": 1000,
        "validation.every": 1,
        "training.steps": 7,
    }
    accuracies = [0.3, 0.1, 0.2, 0.8, 0.1, 0.7, 0.6]
    left = iter(accuracies)
    monkeypatch.setattr("training.trainer.run.validate", lambda *_: next(left))
    unbroken = train_small(config, "unbroken")
    left = iter(accuracies)
    assert train_small(config, "broken", is_stopped=stop_at(2)) is None
    if not (child := new_process.fork()):
        try:
            die = (os.kill(os.getpid(), signal.SIGKILL) for _ in range(1))
            left = itertools.chain((0.2, 0.8), die)
            train_small(config, "broken")
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    log = (tmp_path / "broken" / "encoder-checkpoint.log.jsonl").read_text("utf8")
    assert json.loads(log.splitlines()[-1])["accuracy"] == 0.8
    summary = train_small(config, "broken")
    assert (summary["best_step"], unbroken["best_step"]) == (4, 4)
    encoders = [tmp_path / name / "encoder" for name in ("unbroken", "broken")]
    assert equal_weights(*encoders)


def test_train_writes_no_checkpoint_for_a_best_validation_and_counts_the_bytes(
    train_small, validation_settings, tmp_path, monkeypatch
):
    steps = itertools.count()
    monkeypatch.setattr("training.trainer.run.validate", lambda *_: next(steps) / 99)
    config = {**validation_settings, "validation.every": 1, "training.steps": 5}

    def train(name: str, seconds: int, **kwargs: Any) -> list[int]:
        more = {**config, "training.checkpoint_seconds": seconds}
        summary = train_small(more, name, **kwargs)
        log = srsly.read_jsonl(tmp_path / name / "encoder" / "training.jsonl")
        written = [entry["checkpoint_bytes"] for entry in log]
        assert summary["bytes_written_by_checkpoints"] == written[-1]
        return written

    assert train("none", 1000) == [0, 0, 0, 0, 0]
    assert train_small(config, "each", is_stopped=stop_at(1)) is None
    first = {path.name: path.stat().st_size for path in (tmp_path / "each").rglob("*")}
    size = sum(size for name, size in first.items() if name.endswith(".safetensors"))
    assert train("each", 0) == [0, size, 2 * size, 3 * size, 4 * size]
    monkeypatch.setattr("training.trainer.run.validate", lambda *_: 1 / next(steps))
    linked = size - first["best.safetensors"]  # the best is that of the first step
    more = [size + linked * number for number in range(4)]
    assert train("linked", 0) == [0, *more]


def test_validate_of_a_cased_encoder_keeps_the_case_of_both_sides(
    make_config, make_bert, tmp_path
):
    capitals = ["REMEDY", "WAX", "JIG"]
    letters = [*string.ascii_letters, *(f"##{each}" for each in string.ascii_letters)]
    cased_encoder = make_bert(tmp_path / "cased", letters, lowercase=False)
    write_concepts(
        tmp_path / "concepts.jsonl",
        [Concept("C1", ["Polish"]), Concept("C2", ["polish"])]
        + [Concept(f"X{word}", [word]) for word in capitals],
    )
    lines = ["Polish||C1", "polish||C2", "  Polish ||C1"]
    lines += [f"{word}||X{word}" for word in capitals]
    (tmp_path / "mentions.txt").write_text("\n".join(lines) + "\n", "utf8")
    found = {}
    for lowercase in (False, True):
        more = {
            "encoder.base": str(cased_encoder),
            "encoder.lowercase": lowercase,
            "validation.mentions": str(tmp_path / "mentions.txt"),
            "validation.concepts": str(tmp_path / "concepts.jsonl"),
        }
        settings = make_settings(make_config(more))
        validation = read_validation(settings)
        assert validation is not None
        tokenizer, model = load_encoder(settings.encoder.base)
        found[lowercase] = validate(model, tokenizer, validation, settings)
    # lower-cased, the first two names are one, and each of three mentions is a tie
    assert found == {False: 1.0, True: 0.75}
