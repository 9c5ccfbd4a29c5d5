"""Loggers: what TensorBoard and Weights & Biases get of a run."""

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import srsly

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.training.conftest import WORDS
from tests.training.trainer.test_processes import ROOT, fork_ranks
from tests.training.trainer.test_run import stopped
from training.losses.functions import registry
from training.trainer import run as run_module
from training.trainer.settings import read_config

TRACKER = {"training.logger.@loggers": "spacy-sapbert.Tracker.v1"}
CURVES = {
    *("loss/pairs", "mined/pairs", "learning_rate", "pairs", "seconds"),
    *("accuracy", "pairs_per_second", "checkpoint_bytes"),
}

# a part of a run of three steps, to its end or only a step of it
WANDB = """
import json, sys
from pathlib import Path
from training.trainer.run import train
from training.trainer.settings import RunPaths, read_config

pairs, folder, settings, parts = sys.argv[1:]
for part in parts:
    config = read_config(None, json.loads(settings))
    paths = RunPaths(Path(pairs), Path(folder, "encoder"))
    train(paths, config, is_stopped=lambda: part == "1")
"""


def check_no_names(folder: Path) -> None:
    """No file has a word of the vocabulary."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes().lower()
        assert not [word for word in WORDS if len(word) > 4 and word.encode() in data]


@pytest.fixture
def validated(tmp_path) -> dict[str, Any]:
    """Settings of a validation with names of the vocabulary."""
    write_concepts(tmp_path / "concepts.jsonl", [Concept("C1", ["liver fever"])])
    (tmp_path / "mentions.txt").write_text("Fever, liver||C1\n", "utf8")
    return {
        "validation.mentions": str(tmp_path / "mentions.txt"),
        "validation.concepts": str(tmp_path / "concepts.jsonl"),
        "validation.every": 1,
        "training.steps": 7,
    }


def test_tensorboard_gets_each_step_once_also_of_a_run_that_was_killed(
    train_small, validated, tmp_path, monkeypatch, recwarn
):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracked = {**validated, **TRACKER}
    assert train_small(tracked, is_stopped=stopped) is None
    # two more without a checkpoint
    with monkeypatch.context() as patch:
        step, left = run_module.train_step, iter("ab")
        patch.setattr(
            run_module, "train_step", lambda *a, **k: next(left) and step(*a, **k)
        )
        with pytest.raises(StopIteration):
            train_small(tracked)
    assert train_small(validated, is_stopped=stopped) is None  # none that is tracked
    assert train_small(tracked)["steps"] == 7
    assert not [each for each in recwarn if "W625" in str(each.message)]
    tracker = tmp_path / "encoder-tracker"
    check_no_names(tracker)
    read = EventAccumulator(str(tracker))
    read.Reload()
    assert {*read.Tags()["scalars"]} == CURVES
    log = [*srsly.read_jsonl(tmp_path / "encoder" / "training.jsonl")]
    for curve in CURVES - {"pairs_per_second"}:
        points = read.Scalars(curve)
        assert [point.step for point in points] == [*range(1, 8)], curve
        expected = [entry[curve.split("/")[0]] for entry in log]
        assert [point.value for point in points] == pytest.approx(expected), curve
    rates = [point.value for point in read.Scalars("pairs_per_second")]
    assert rates == pytest.approx([each["pairs"] / each["seconds"] for each in log])
    text = read.Tensors("settings/text_summary")[-1].tensor_proto.string_val[0]
    assert b"- training.batch_size: `16`" in text


def read_wandb(path: Path) -> Iterator[Any]:
    """Yield the records of a run, which is in blocks as LevelDB's log is."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, record = path.read_bytes(), 7, b""
    while place + 7 < len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
        _, length, kind = struct.unpack_from("<IHB", data, place)
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or its last part
            yield Record.FromString(record)
            record = b""


def test_wandb_gets_each_step_once_and_a_resumed_run_keeps_its_id(
    pairs_file, small_settings, validated, tmp_path, new_process
):
    pytest.importorskip("wandb", reason="wandb is not installed")
    settings = {**small_settings, **validated, **TRACKER, "training.steps": 3}
    settings["training.logger.to"] = "wandb"
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "WANDB_MODE": "offline"}
    env["WANDB_PROJECT"] = "names"

    def train(parts: str, **more: str) -> Any:
        given = (WANDB, pairs_file, tmp_path, srsly.json_dumps(settings), parts)
        return new_process.python(*given, cwd=ROOT, env={**env, **more})

    refused = train("1", WANDB_MODE="online", WANDB_API_KEY="", NETRC=str(home / "no"))
    assert "[E634] Expected Weights & Biases to take this run" in refused.stderr
    refused = train("1", WANDB_MODE="on")
    assert "[E634] Expected Weights & Biases to take this run" in refused.stderr
    done = train("11.")
    assert done.returncode == 0, done.stderr
    tracker = tmp_path / "encoder-tracker"
    check_no_names(tracker)
    files = sorted(tracker.rglob("*.wandb"), key=lambda path: path.stat().st_mtime)
    assert len(files) == 3
    assert len({path.name for path in files}) == 1
    records = [*read_wandb(files[-1])]
    (run,) = (each.run for each in records if each.WhichOneof("record_type") == "run")
    config = {each.key: each.value_json for each in run.config.update}
    assert (run.project, config["training.batch_size"]) == ("names", "16")
    rows = [
        {item.nested_key[0] if item.nested_key else item.key: item.value_json
         for item in each.history.item}
        for each in records
        if each.WhichOneof("record_type") == "history"
    ]  # fmt: skip
    log = [*srsly.read_jsonl(tmp_path / "encoder" / "training.jsonl")]
    assert [int(row["_step"]) for row in rows] == [1, 2, 3]
    assert all(row.keys() >= CURVES for row in rows)
    for name in ("loss/pairs", "accuracy", "checkpoint_bytes"):
        found = [float(row[name]) for row in rows]
        assert found == pytest.approx([each[name.split("/")[0]] for each in log])


@pytest.mark.parametrize(
    ("to", "module"),
    [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb")],
)
def test_logger_without_its_package_is_an_error_before_the_training(
    to, module, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SapbertError, match=f"E521.*`pip install {to}`"):
        read_config(None, {**TRACKER, "training.logger.to": to})
    with pytest.raises(SapbertError, match=r"E612.*logger\.to"):
        read_config(None, {**TRACKER, "training.logger.to": "paper"})


def make_list(path: str) -> Any:
    """A logger of another package."""

    def open_run(folder: Path, run: str, settings: dict[str, Any]) -> Any:
        def write(word: object = "closed") -> None:
            with Path(path).open("a") as file:
                file.write(f"{word} ")

        return lambda entry: write(entry["step"]), write

    return open_run


def test_logger_of_another_package_is_called_by_one_process_and_closed_after_an_error(
    pairs_file, make_config, run_training, tmp_path, monkeypatch, new_process
):
    registry.loggers.register("test.List.v1", func=make_list)
    path = tmp_path / "list"
    config = make_config(
        {
            "training.logger.@loggers": "test.List.v1",
            "training.logger.path": str(path),
            "training.optimizer.learning_rate": 1e300,
        }
    )

    def fail(ranks: Any) -> None:
        with pytest.raises(SapbertError, match="E607"):
            run_training(tmp_path, pairs_file, config, ranks=ranks)

    assert fork_ranks(new_process, fail) == [0, 0]
    assert path.read_text().split() == ["1", "closed"]
