"""Runs: what they write, resume and refuse, over pairs and over families."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import srsly
import torch
from confection import Config
from safetensors.torch import load_file

from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_own_settings,
    read_settings,
)
from spacy_sapbert.errors import SapbertError
from tests.encoder.test_published_folders import (
    make_masked_bert,
    make_xlm_roberta,
    old_names,
    save_shards,
    vectors_of,
)
from tests.training.conftest import WORDS
from training.trainer.settings import (
    DEFAULT_CONFIG,
    complete_encoder,
    flatten_config,
    read_config,
)
from training.trainer.validation import embed_texts


def stopped() -> bool:
    return True


def test_train_lowers_the_loss_and_writes_a_plain_encoder(
    pairs_file, make_config, run_training, tmp_path
):
    config = make_config({"training.epochs": 12})
    summary = run_training(tmp_path, pairs_file, config)
    assert (summary["pairs"], summary["concepts"], summary["steps"]) == (72, 72, 60)
    assert summary["last_loss"] < 0.8 * summary["first_loss"]
    encoder = tmp_path / "encoder"
    assert read_settings(encoder) == EncoderSettings("mean", 25, True)
    card = " ".join((encoder / "README.md").read_text("utf8").split())
    assert "| training.optimizer.learning_rate | `0.001` |" in card
    assert "in 60 steps with seed 0" in card
    assert "| pairs of names | 864 | 72 | 12 |" in card
    assert "not validated" in card
    written = read_config(encoder / "training.cfg")
    assert flatten_config(written) == flatten_config(complete_encoder(config))
    assert not (tmp_path / "encoder-checkpoint").exists()


def test_trained_encoder_is_read_by_sentence_transformers(train_small, tmp_path):
    train_small({"training.steps": 2, "encoder.max_length": 12})
    folder = tmp_path / "encoder"
    card = (folder / "README.md").read_text("utf8")
    assert "library_name: sentence-transformers" in card
    settings = read_settings(folder)
    (folder / "sapbert.json").unlink()
    assert read_own_settings(folder) == {"pooling": "mean"}  # by its files
    reason = "sentence-transformers is not installed"
    library = pytest.importorskip("sentence_transformers", reason=reason)
    names = ["fever", "Heart attack", "acute myocardial infarction, not elsewhere"]
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(names)
    tokenizer, model = load_encoder(str(folder))
    lower = [name.lower() for name in names]
    ours = embed_texts(model.eval(), tokenizer, lower, pooling="mean", max_length=12)
    assert settings.max_length == 12
    assert np.allclose((theirs * ours.numpy()).sum(1), 1, atol=1e-5)


@pytest.mark.parametrize(
    "more", [{"training.chunks": 3}, {"encoder.adapter_reduction": 4}]
)
def test_train_resumed_equals_an_unbroken_run(train_small, more, tmp_path):
    linear = {"training.schedule.@schedules": "spacy-sapbert.Linear.v1"}
    config = {**linear, **more}
    train_small(config, "unbroken")
    broken = tmp_path / "broken"
    for _ in range(3):  # each goes on by one step
        assert train_small(config, "broken", is_stopped=stopped) is None
    assert not (broken / "encoder").exists()
    summary = train_small(config, "broken")
    assert summary["steps"] == 15
    log = srsly.read_jsonl(broken / "encoder" / "training.jsonl")
    assert [entry["step"] for entry in log] == [*range(1, 16)]
    # also the tokenizer, and so the fingerprint of a knowledge base
    unbroken = tmp_path / "unbroken" / "encoder"
    for path in unbroken.rglob("*"):
        # two have seconds
        if path.is_file() and path.name not in ("README.md", "training.jsonl"):
            other = broken / "encoder" / path.relative_to(unbroken)
            assert path.read_bytes() == other.read_bytes(), path.name


def test_train_writes_checkpoints_by_time_alone(train_small, tmp_path):
    def is_saved() -> bool:
        return any(tmp_path.glob("*/encoder-checkpoint/state.json"))

    endless = {"training.epochs": 3000}  # minutes
    later = {"training.steps": 600, "training.checkpoint_seconds": 1000}
    summary = train_small({**endless, **later}, "later", is_stopped=is_saved)
    assert summary["steps"] == 600
    config = {**endless, "training.checkpoint_seconds": 1}
    assert train_small(config, "soon", is_stopped=is_saved) is None


def test_train_goes_on_with_less_memory_and_fewer_steps(train_small):
    train_small(is_stopped=stopped)
    free = {"training.checkpoint_seconds": 9, "training.chunks": 3, "training.steps": 9}
    with pytest.warns(UserWarning, match=r"W625.*training.chunks, training.steps"):
        summary = train_small(free)
    assert summary["steps"] == 9


def test_train_with_force_replaces_a_stopped_run_of_other_settings_only(
    train_small, tmp_path
):
    train_small(is_stopped=stopped)
    train_small(is_stopped=stopped, force=True)
    path = tmp_path / "encoder-checkpoint" / "state.json"
    assert json.loads(path.read_text("utf8"))["progress"]["step"] == 2  # continued
    other = {"training.miner.margin": 0.1, "training.steps": 3}
    with pytest.raises(SapbertError, match=r"another training.miner.margin.*--force"):
        train_small(other)
    with pytest.warns(UserWarning, match=r"W625.*another training.miner.margin"):
        train_small(other, is_stopped=stopped, force=True)
    assert train_small(other)["steps"] == 3
    # one that ends before its first checkpoint leaves none of the run before
    train_small(is_stopped=stopped, force=True)
    endless = {"training.optimizer.learning_rate": 1e300}
    with pytest.raises(SapbertError, match="E607"), pytest.warns(match="W625"):
        train_small(endless, force=True)
    assert not (tmp_path / "encoder-checkpoint").exists()


@pytest.mark.parametrize("folder", ["encoder-checkpoint", "encoder-corpus-pairs"])
def test_train_replaces_no_folder_of_another_kind(train_small, tmp_path, folder):
    notes = tmp_path / folder / "notes.csv"
    notes.parent.mkdir()
    notes.write_text("of hours", "utf8")
    with pytest.raises(SapbertError, match=r"E003.*it has notes.csv"):
        train_small(force=True)
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert notes.read_text("utf8") == "of hours"


def test_train_with_nan_names_the_lines(train_small, tmp_path):
    endless = {"training.optimizer.learning_rate": 1e300}
    with pytest.raises(SapbertError, match="nan at step 2; its pairs are l") as caught:
        train_small(endless)
    assert not any(word in str(caught.value) for word in ("heart", "fever", "skin"))
    assert not (tmp_path / "encoder").exists()


def test_train_with_infinite_weights_keeps_the_last_good_checkpoint(
    train_small, tmp_path
):
    config = {"training.checkpoint_seconds": 0}
    assert train_small(config, is_stopped=stopped) is None
    saved = (tmp_path / "encoder-checkpoint" / "model.safetensors").read_bytes()
    path = tmp_path / "encoder-checkpoint" / "state.json"
    state = json.loads(path.read_text("utf8"))
    # the same run, but its next step has an infinite rate
    endless = {"training.optimizer.learning_rate": 1e300}
    state["settings"].update(endless)
    path.write_text(json.dumps(state), "utf8")
    config = {"training.checkpoint_seconds": 0, **endless}
    with pytest.raises(SapbertError, match=r"E607.* after step 2, .*not finite"):
        train_small(config)
    assert (tmp_path / "encoder-checkpoint" / "model.safetensors").read_bytes() == saved
    assert not (tmp_path / "encoder").exists()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_train_in_half_precision_has_float32_weights(train_small, precision, tmp_path):
    more = {"training.precision": precision, "training.steps": 3}
    states = []
    for _ in range(2):
        assert train_small(more, is_stopped=stopped) is None
        states.append(srsly.read_json(tmp_path / "encoder-checkpoint" / "state.json"))
    steps = [state["scaler"].get("_growth_tracker") for state in states]
    assert steps == ([1, 2] if precision == "fp16" else [None, None])
    summary = train_small(more)
    assert summary["steps"] == 3
    weights = load_file(tmp_path / "encoder" / "model.safetensors")
    assert {each.dtype for each in weights.values()} == {torch.float32}


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_train_of_a_published_base_starts_with_its_vectors(
    kind, small_settings, pairs_file, run_training, tmp_path
):
    """With a learning rate of zero, these are also the vectors of the end."""
    base, encoder = tmp_path / "base", tmp_path / "encoder"
    if kind == "bert":  # as BiomedBERT, whose weights are pickled
        save_shards(base, old_names(make_masked_bert(base)))
    else:
        make_xlm_roberta(base)
    settings = {
        **small_settings,
        "encoder.base": str(base),
        "encoder.pooling": None,
        "training.steps": 1,
        "training.optimizer.learning_rate": 0.0,
    }
    run_training(tmp_path, pairs_file, read_config(None, settings))
    assert read_settings(encoder) == read_settings(base)
    np.testing.assert_allclose(vectors_of(encoder), vectors_of(base), atol=1e-6)
    assert not [*encoder.glob("*.bin")]


@pytest.fixture(scope="module")
def config(forest, small_settings) -> Callable[..., Config]:
    """The config file for hierarchies with the tiny encoder."""

    def make(more: dict[str, Any] | None = None) -> Config:
        path = DEFAULT_CONFIG.with_name("hierarchy.cfg")
        return read_config(path, {**small_settings, **forest, **(more or {})})

    return make


def test_train_on_incomplete_families_is_an_error(
    config, run_training, tmp_path, pairs_file
):
    odd = tmp_path / "odd.tsv"
    odd.write_text("a\tb\tc\n", "utf8")
    with pytest.raises(SapbertError, match="families of 3 lines.*1 lines"):
        run_training(tmp_path, pairs_file, config({"hierarchy.families": str(odd)}))


RUNS: list[dict[str, Any]] = [
    {
        "training.chunks": 2,
        "training.miner.margin": 0.02,
        "training.optimizer.weight_decay": 0.5,
        "training.schedule.warmup_steps": 2,
        "training.steps": 17,
        "validation.every": 6,
        "validation.sample": 20,
    },
    {
        "encoder.adapter_reduction": 4,
        "training.relations": None,
        "hierarchy.families": None,
        "hierarchy.concepts": None,
        "training.seed": 3,
        "training.miner.distance": "euclidean",
        "training.miner.margin": 0.05,
        "training.optimizer.learning_rate": 0.02,
        "training.steps": 6,
    },
]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_train_logs_what_the_last_version_logged(
    number, config, forest, quiet_encoder, run_training, pairs_file, tmp_path
):
    """After a change that is meant, delete the file, and read what git shows."""
    pairs = product(enumerate(WORDS), enumerate(WORDS[:4]))
    lines = [f"{two} in {one}||c{i}{j}\n" for (i, one), (j, two) in pairs]
    (tmp_path / "mentions.txt").write_text("".join(lines), "utf8")
    files = {
        "validation.mentions": str(tmp_path / "mentions.txt"),
        "validation.concepts": forest["hierarchy.concepts"],
    }
    own = {"encoder.base": str(quiet_encoder), **files, **RUNS[number]}
    run_training(tmp_path, pairs_file, config(own))
    log = [*srsly.read_jsonl(tmp_path / "encoder" / "training.jsonl")]
    found = [{k: v for k, v in entry.items() if k != "seconds"} for entry in log]
    path = Path(__file__).parents[1] / "examples" / f"log-{number}.jsonl"
    if not path.exists():
        srsly.write_jsonl(path, found)
        pytest.fail(f"{path} is written anew: read what git shows.")
    for entry, expected in zip(found, srsly.read_jsonl(path), strict=True):
        assert entry.pop("source") == expected.pop("source")
        assert entry == pytest.approx(expected, rel=1e-3)
