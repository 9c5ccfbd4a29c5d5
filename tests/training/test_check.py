"""`check` lists what would stop the steps of a workflow, before the first of them."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training import check
from training.check import estimate_needs, read_sizes
from training.trainer.settings import read_config

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "assets" / "sample"


@pytest.fixture
def settings(tiny_encoder: Path) -> list[str]:
    return ["--encoder.base", str(tiny_encoder)]


def test_check_passes_if_every_step_can_run(
    invoke: Callable[..., Any],
    settings: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = invoke("check", SAMPLE, "--name", "sample", *settings)
    assert "Every step can run" in shown.output
    assert not any(tmp_path.iterdir())


def test_check_lists_all_problems_at_once(
    invoke: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("packages").write_text("a file in the place of a folder")
    names = ["--name", "My KB", "--version", "one", "--lang", "qq"]
    wrong = ["--encoder.base", "models/none", "--training.epoch", "2"]
    shown = invoke("check", "assets/umls", *names, *wrong, code=1)
    codes = ("E001", "E316", "E317", "E723", "E004", "E613")
    assert [code for code in codes if f"[{code}]" not in shown.output] == []
    base = ["--encoder.base", "./models/none"]
    shown = invoke("check", SAMPLE, "--name", "kb", *base, code=1)
    assert "[E208]" in shown.output


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no such users")
@pytest.mark.parametrize(
    ("function", "value", "code"),
    [("total_memory", 1e6, "E628"), ("find_spec", None, "E626")],
)
def test_check_names_what_the_machine_lacks(
    invoke: Callable[..., Any],
    settings: list[str],
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    value: Any,
    code: str,
) -> None:
    monkeypatch.setattr(check, function, lambda *_: value)
    shown = invoke("check", SAMPLE, "--name", "sample", *settings, code=1)
    assert f"[{code}]" in shown.output


def test_check_compares_the_disk_with_the_estimate(
    invoke: Callable[..., Any], settings: list[str], tmp_path: Path
) -> None:
    concepts = tmp_path / "concepts.jsonl"
    write_concepts(concepts, [Concept("C0000001", ["Fever"])])
    os.truncate(concepts, 10**13)  # takes no space on the disk
    shown = invoke("check", concepts, "--name", "large", *settings, code=1)
    assert "[E627]" in shown.output


def test_check_of_a_base_with_pickled_weights_counts_them(
    invoke: Callable[..., Any], tiny_encoder: Path, tmp_path: Path
) -> None:
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    (base / "model.safetensors").rename(base / "pytorch_model.bin")
    invoke("check", SAMPLE, "--name", "sample", "--encoder.base", base)
    sizes = read_sizes(str(tiny_encoder))
    assert sizes["bytes"] > 0
    assert read_sizes(str(base)) == sizes


def test_check_reads_the_settings_of_the_base(
    invoke: Callable[..., Any],
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    words = ["check", SAMPLE, "--name", "sample", "--encoder.base", base]
    with pytest.warns(UserWarning, match=r"W601.*encoder\.pooling to be 'mean'"):
        invoke(*words, "--encoder.pooling", "cls")
    (base / "sapbert.json").write_text('{"pooling": "mean"}', "utf8")
    assert "[E202]" in invoke(*words, code=1).output


def test_estimate_needs_grows_with_names_and_batch(tmp_path: Path) -> None:
    small = read_config(None, {"encoder.base": "BERT"})
    large = read_config(None, {"encoder.base": "BERT", "training.batch_size": 512})
    table = tmp_path / "names.tsv"
    table.write_bytes(b"x" * 1000)
    few = estimate_needs([table], small)
    assert few.names == 10
    assert estimate_needs([table, table], small).disk > few.disk
    assert estimate_needs([table], large).memory > few.memory
