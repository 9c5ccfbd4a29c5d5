import json
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
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
from training.trainer.settings import complete_encoder, flatten_config, read_config
from training.trainer.validation import embed_texts

MakeConfig = Callable[..., Config]


def equal_weights(one: Path, other: Path) -> bool:
    a, b = ((path / "model.safetensors").read_bytes() for path in (one, other))
    return a == b


def stopped() -> Event:
    stop = Event()
    stop.set()
    return stop


def test_train_lowers_the_loss_and_writes_a_plain_encoder(
    pairs_file: Path, make_config: MakeConfig, run_training: Any, tmp_path: Path
) -> None:
    config = make_config({"training.epochs": 12})
    summary = run_training(tmp_path, pairs_file, config)
    assert summary["pairs"] == 72
    assert summary["concepts"] == 72
    assert summary["steps"] == 60
    assert summary["last_loss"] < 0.8 * summary["first_loss"]
    encoder = tmp_path / "encoder"
    _, model = load_encoder(str(encoder))
    assert model.config.hidden_size == 32
    assert read_settings(encoder) == EncoderSettings("mean", 25, True)
    card = (encoder / "README.md").read_text("utf8")
    assert "| training.optimizer.learning_rate | `0.001` |" in card
    log = (encoder / "training.jsonl").read_text("utf8").splitlines()
    assert [json.loads(line)["step"] for line in log] == list(range(1, 61))
    written = read_config(encoder / "training.cfg")
    assert flatten_config(written) == flatten_config(complete_encoder(config))
    assert not (tmp_path / "checkpoint").exists()


def test_train_uses_the_pooling_of_the_base(
    pairs_file: Path, small_settings: dict[str, Any], run_training: Any, tmp_path: Path
) -> None:
    """Which is the mean; without a base that has one it would be the first token."""
    mean = {**small_settings, "training.steps": 2}
    assert mean["encoder.pooling"] == "mean"
    own = {key: mean[key] for key in mean if key != "encoder.pooling"}
    for name, settings in (("own", own), ("mean", mean)):
        run_training(tmp_path / name, pairs_file, read_config(None, settings))
    one, other = (tmp_path / name / "encoder" for name in ("own", "mean"))
    assert read_settings(one) == EncoderSettings("mean", 25, True)
    assert equal_weights(one, other)
    assert "Use mean pooling" in read_card(one)
    written = flatten_config(read_config(one / "training.cfg"))
    assert written["encoder.pooling"] == "mean"
    assert written["encoder.lowercase"] is True


def test_trained_encoder_is_read_by_sentence_transformers(
    train_small: Any, tmp_path: Path
) -> None:
    train_small({"training.steps": 2, "encoder.max_length": 12})
    folder = tmp_path / "encoder"
    card = (folder / "README.md").read_text("utf8")
    assert "library_name: sentence-transformers" in card
    settings = read_settings(folder)
    (folder / "sapbert.json").unlink()
    assert read_own_settings(folder) == {"pooling": "mean"}  # by its files
    reason = "sentence-transformers is missing"
    library = pytest.importorskip("sentence_transformers", reason=reason)
    names = ["fever", "Heart attack", "acute myocardial infarction, not elsewhere"]
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(names)
    tokenizer, model = load_encoder(str(folder))
    lower = [name.lower() for name in names]
    ours = embed_texts(model.eval(), tokenizer, lower, pooling="mean", max_length=12)
    assert settings.max_length == 12
    assert np.allclose((theirs * ours.numpy()).sum(1), 1, atol=1e-5)


def test_trained_adapter_is_not_offered_to_others(
    train_small: Any, tmp_path: Path
) -> None:
    train_small({"training.steps": 2, "encoder.adapter_reduction": 4})
    assert not (tmp_path / "encoder" / "modules.json").exists()
    card = (tmp_path / "encoder" / "README.md").read_text("utf8")
    assert "library_name: transformers" in card


def test_train_from_pickled_weights_writes_safetensors(
    train_small: Any, tiny_encoder: Path, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    torch.save(load_file(base / "model.safetensors"), base / "pytorch_model.bin")
    (base / "model.safetensors").unlink()
    for name, encoder in (("pickled", base), ("plain", tiny_encoder)):
        train_small({"encoder.base": str(encoder), "training.steps": 2}, name)
    one, other = (tmp_path / name / "encoder" for name in ("pickled", "plain"))
    assert equal_weights(one, other)
    assert not [*one.glob("*.bin")]


def read_card(encoder: Path) -> str:
    """Return the model card of an encoder in one line."""
    return " ".join((encoder / "README.md").read_text("utf8").split())


def test_train_writes_what_was_used_into_the_model_card(
    train_small: Any, tmp_path: Path
) -> None:
    train_small({"training.steps": 2, "training.seed": 3})
    card = read_card(tmp_path / "encoder")
    assert "in 2 steps with seed 3" in card
    assert "| pairs of names | 32 | 72 | 0.444 |" in card  # 2 batches of 16
    assert "not validated" in card
    assert "on 72 pairs" not in card


def test_train_is_the_same_for_a_seed(train_small: Any, tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        train_small({"training.seed": seed, "training.steps": 4}, name)
    encoders = [tmp_path / name / "encoder" for name in ("one", "two", "three")]
    assert equal_weights(encoders[0], encoders[1])
    assert not equal_weights(encoders[0], encoders[2])


@pytest.mark.parametrize(
    "more", [{}, {"training.chunks": 3}, {"encoder.adapter_reduction": 4}]
)
def test_train_resumed_equals_an_unbroken_run(
    train_small: Any, more: dict[str, Any], tmp_path: Path
) -> None:
    linear = {"training.schedule.@schedules": "spacy-sapbert.Linear.v1"}
    config = {**linear, **more}
    train_small(config, "unbroken")
    broken = tmp_path / "broken"
    for _ in range(3):  # each goes on by one step
        assert train_small(config, "broken", stop=stopped()) is None
    assert not (broken / "encoder").exists()
    summary = train_small(config, "broken")
    assert summary["steps"] == 15
    # also the tokenizer, and so the fingerprint of a knowledge base
    unbroken = tmp_path / "unbroken" / "encoder"
    for path in unbroken.rglob("*"):
        # two have seconds
        if path.is_file() and path.name not in ("README.md", "training.jsonl"):
            other = broken / "encoder" / path.relative_to(unbroken)
            assert path.read_bytes() == other.read_bytes(), path.name


def test_train_that_lost_its_log_counts_all_steps(
    train_small: Any, tmp_path: Path
) -> None:
    for _ in range(2):
        assert train_small(stop=stopped()) is None
    log = tmp_path / "checkpoint.log.jsonl"
    second = json.loads(log.read_text("utf8").splitlines()[1])
    # steps of a process that was killed after its checkpoint
    late = [json.dumps({**second, "step": step}) + "\n" for step in (3, 4)]
    log.write_text("".join([json.dumps(second) + "\n", *late]), "utf8")
    assert train_small()["steps"] == 15
    assert "in 15 steps with seed" in read_card(tmp_path / "encoder")
    lines = (tmp_path / "encoder" / "training.jsonl").read_text("utf8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*range(2, 16)]


def test_train_writes_checkpoints_by_time_besides_by_steps(
    train_small: Any, tmp_path: Path
) -> None:
    class StopAfterCheckpoint(Event):
        def is_set(self) -> bool:
            return (tmp_path / "checkpoint" / "state.json").exists()

    more = {"training.checkpoint_every": 100_000, "training.checkpoint_seconds": 1}
    config = {"training.epochs": 3000, **more}  # minutes
    stop = StopAfterCheckpoint()
    assert train_small(config, stop=stop) is None


def test_train_refuses_a_checkpoint_of_other_settings(train_small: Any) -> None:
    train_small(stop=stopped())
    other = {"training.miner.margin": 0.1, "training.steps": 3}
    with pytest.raises(SapbertError, match=r"another training.miner.margin.*--force"):
        train_small(other)


def test_train_goes_on_with_less_memory_and_fewer_steps(train_small: Any) -> None:
    train_small(stop=stopped())
    free = {"training.checkpoint_every": 2, "training.chunks": 3, "training.steps": 9}
    with pytest.warns(UserWarning, match=r"W625.*training.chunks, training.steps"):
        summary = train_small(free)
    assert summary["steps"] == 9


def test_train_with_force_replaces_a_stopped_run_of_other_settings_only(
    train_small: Any, tmp_path: Path
) -> None:
    train_small(stop=stopped())
    train_small(stop=stopped(), force=True)
    state = json.loads((tmp_path / "checkpoint" / "state.json").read_text("utf8"))
    assert state["progress"]["step"] == 2  # continued
    other = {"training.miner.margin": 0.1, "training.steps": 3}
    with pytest.warns(UserWarning, match=r"W625.*another training.miner.margin"):
        train_small(other, stop=stopped(), force=True)
    assert train_small(other)["steps"] == 3


def test_train_replaces_a_finished_encoder_with_force_only(
    train_small: Any, tmp_path: Path
) -> None:
    train_small({"training.steps": 1})
    before = (tmp_path / "encoder" / "model.safetensors").read_bytes()
    other = {"training.steps": 2}
    with pytest.raises(SapbertError, match=r"E003.*--force"):
        train_small(other)
    assert (tmp_path / "encoder" / "model.safetensors").read_bytes() == before
    train_small(other, force=True)
    assert (tmp_path / "encoder" / "model.safetensors").read_bytes() != before


@pytest.mark.parametrize("folder", ["checkpoint", "corpus", "corpus-families"])
def test_train_replaces_no_folder_of_another_kind(
    train_small: Any, tmp_path: Path, folder: str
) -> None:
    notes = tmp_path / folder / "notes.csv"
    notes.parent.mkdir()
    notes.write_text("of hours", "utf8")
    with pytest.raises(SapbertError, match=r"E003.*it has notes.csv"):
        train_small(force=True)
    assert [path.name for path in tmp_path.iterdir()] == [folder]
    assert notes.read_text("utf8") == "of hours"


def test_train_with_nan_names_the_lines(train_small: Any, tmp_path: Path) -> None:
    endless = {"training.optimizer.learning_rate": 1e300}
    with pytest.raises(SapbertError, match="nan at step 2; its pairs are l") as caught:
        train_small(endless)
    assert not any(word in str(caught.value) for word in ("heart", "fever", "skin"))
    assert not (tmp_path / "encoder").exists()


def test_train_with_infinite_weights_keeps_the_last_good_checkpoint(
    train_small: Any, tmp_path: Path
) -> None:
    config = {"training.checkpoint_every": 1}
    assert train_small(config, stop=stopped()) is None
    saved = (tmp_path / "checkpoint" / "model.safetensors").read_bytes()
    settings = json.loads((tmp_path / "checkpoint" / "state.json").read_text("utf8"))
    # the same run, but its next step has an infinite rate
    endless = {"training.optimizer.learning_rate": 1e300}
    settings["settings"].update(endless)
    (tmp_path / "checkpoint" / "state.json").write_text(json.dumps(settings), "utf8")
    config = {"training.checkpoint_every": 1, **endless}
    with pytest.raises(SapbertError, match=r"E607.* after step 2, .*not finite"):
        train_small(config)
    assert (tmp_path / "checkpoint" / "model.safetensors").read_bytes() == saved
    assert not (tmp_path / "encoder").exists()


def test_train_with_infinite_weights_at_the_end_writes_no_encoder(
    train_small: Any, tmp_path: Path
) -> None:
    more = {"training.optimizer.learning_rate": 1e300, "training.steps": 1}
    with pytest.raises(SapbertError, match=r"E607.* after step 1, .*not finite"):
        train_small(more)
    assert not (tmp_path / "encoder").exists()


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_train_in_half_precision_has_float32_weights(
    train_small: Any, precision: str, tmp_path: Path
) -> None:
    more = {"training.precision": precision, "training.steps": 3}
    assert train_small(more, stop=stopped()) is None
    summary = train_small(more)
    assert summary["steps"] == 3
    weights = load_file(tmp_path / "encoder" / "model.safetensors")
    assert {each.dtype for each in weights.values()} == {torch.float32}
