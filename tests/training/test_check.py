"""`check` lists what would stop the steps of a workflow, before the first of them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training import check

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
    codes = ("E001", "E331", "E004", "E333")
    assert [code for code in codes if f"[{code}]" not in shown.output] == []
    base = ["--encoder.base", "./models/none"]
    assert "[E634]" in invoke("check", SAMPLE, "--name", "kb", *base, code=1).output


def test_check_names_the_packages_that_are_missing(
    invoke: Callable[..., Any], settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "WHEELS", ("build", "no_such_package"))
    shown = invoke("check", SAMPLE, "--name", "sample", *settings, code=1)
    assert "[E521]" in shown.output
    assert "no_such_package is not installed" in " ".join(shown.output.split())


def test_check_estimates_what_validation_costs(
    invoke: Callable[..., Any], settings: list[str], tmp_path: Path
) -> None:
    concepts = [Concept(f"C{n}", [f"name {n}", f"other {n}"]) for n in range(3000)]
    write_concepts(tmp_path / "concepts.jsonl", concepts)
    (tmp_path / "mentions.txt").write_text("name 1||C1\nboth||C1+C2\n", "utf8")
    more = ["--validation.mentions", tmp_path / "mentions.txt"]
    more += ["--validation.concepts", tmp_path / "concepts.jsonl"]
    more += ["--validation.every", 10, "--training.batch_size", 100]
    words = ["check", SAMPLE, "--name", "sample", *settings, *more]
    shown = " ".join(invoke(*words).output.split())
    assert "about 6,000 names every 10 steps, which takes 50% of the time" in shown
    shown = " ".join(invoke(*words, "--validation.sample", 998).output.split())
    assert "about 2,000 names every 10 steps, which takes 25% of the time" in shown


def test_check_without_spacy_is_of_training_alone(
    invoke: Callable[..., Any], settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "find_spec", lambda _: None)
    shown = invoke("check", SAMPLE, "--name", "Sample", *settings)
    assert "`pairs` and `train` can run, no other step" in shown.output


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
    assert "[E203]" in invoke(*words, code=1).output
