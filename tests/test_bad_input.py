"""Bad input to commands is an error with a code or of the usage: no traceback, no hang.

`invoke` raises what a user would see as a traceback.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.cli.main import app as package_app
from tests.commands import invoke
from training.__main__ import app as training_app

SAMPLE = Path(__file__).parents[1] / "assets" / "sample"
DOCUMENTS = SAMPLE / "annotated.txt"
NO_UTF8 = os.fsdecode(b"na\xffme")
HUGE = "9" * 26
USAGE = "Invalid value"
Files = dict[str, Path]


@pytest.fixture
def files(
    sample_kb: Path,
    concepts_file: Path,
    annotated_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Files:
    """Good inputs and bad ones by a name, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("fever", "utf8")
    Path("table.csv").write_text("a,b\nfever,x\n", "utf8")
    Path("empty.jsonl").touch()
    shutil.copytree(sample_kb, NO_UTF8)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.csv")
    return {
        "KB": sample_kb,
        "CONCEPTS": concepts_file,
        "GOLD": annotated_file,
        "ENCODER": tiny_encoder,
        "DOCUMENTS": DOCUMENTS,
        "EMPTY": Path("empty.jsonl"),
    }


@pytest.fixture
def check(files: Files) -> Callable[..., None]:
    """Runs a command, and checks that its only line on the error output is a code."""

    def run(app: Any, line: list[str], code: str) -> None:
        words = [files.get(word, word) for word in line]
        done = invoke(*words, app=app)
        shown = " ".join(done.output.split())
        assert code in shown
        assert done.exit_code in (1, 2), shown
        assert isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in shown

    return run


PACKAGE = [
    ("E009", ["assemble", "KB", "out", "--name", NO_UTF8]),
    ("E009", ["convert", "DOCUMENTS", "--format", "pubtator", "--output", "out.spacy"]),
    ("E009", ["explain", "KB", "fever", "--label", NO_UTF8]),
    ("E009", ["explain", NO_UTF8, "fever"]),
    ("E009", ["link", NO_UTF8, "text.txt", "--output", "out.jsonl"]),
    ("E009", ["regress", NO_UTF8, str(SAMPLE / "cases.yaml")]),
    ("E331", ["assemble", "KB", "out", "--lang", "klingon"]),
    ("E331", ["stop-names", "KB", "GOLD", "-o", "out", "--lang", "klingon"]),
    ("E001", ["map", "KB", "pipe.csv", "--column", "a", "--output", "o.csv"]),
    (USAGE, ["calibrate", "KB", "GOLD", "--dry-run", "--limit", HUGE]),
    (USAGE, ["evaluate", "KB", "GOLD", "--limit", HUGE]),
    (
        USAGE,
        ["kb", "build", "CONCEPTS", "out", "--encoder", "ENCODER"]
        + ["--max-length", HUGE],
    ),
]
PACKAGE[1][1].extend(["--prefix", NO_UTF8])


@pytest.mark.parametrize(("code", "line"), PACKAGE)
def test_bad_input_of_the_package(
    check: Callable[..., None], code: str, line: list[str]
) -> None:
    check(package_app, line, code)


def test_a_pipeline_that_links_already_is_no_detector(
    check: Callable[..., None], sample_kb: Path
) -> None:
    invoke("assemble", sample_kb, "pipeline", app=package_app, code=0)
    check(package_app, ["assemble", "KB", "out", "--pipeline", "pipeline"], "E573")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("E003", ["evaluate-hierarchy", "ENCODER", "CONCEPTS", "CONCEPTS", ""]),
        ("E106", ["evaluate-hierarchy", "ENCODER", "EMPTY", "CONCEPTS", "out"]),
    ],
)
def test_bad_input_of_training(
    check: Callable[..., None], code: str, line: list[str]
) -> None:
    check(training_app, line, code)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("E331", ["--device", "klingon"]),
        ("E003", ["--corpus", "."]),
        ("E003", ["--checkpoint", ""]),
        (USAGE, ["--threads", HUGE]),
        ("E331", ["--encoder.max_length", HUGE]),
        ("E331", ["--training.seed", HUGE]),
        ("E331", ["--training.optimizer.learning_rate", "NaN"]),
        ("E331", ["--training.optimizer.weight_decay", "-Infinity"]),
        ("E612", ["--training.schedule.@schedules", "[1]"]),
        ("E331", ["--training.schedule.warmup_steps", HUGE]),
        ("E331", ["--training.miner.margin", "NaN"]),
        ("E331", ["--training.loss.scale_pos", HUGE]),
        ("E009", ["--training.miner.@miners", NO_UTF8]),
    ],
)
def test_bad_settings_of_training(
    check: Callable[..., None], concepts_file: Path, code: str, words: list[str]
) -> None:
    invoke("pairs", concepts_file, "pairs.tsv", app=training_app, code=0)
    start = ["train", "pairs.tsv", "out", "--encoder.base", "ENCODER", "--quiet"]
    short = ["--training.batch_size", "4", "--training.steps", "1"]
    check(training_app, [*start, *short, *words], code)
