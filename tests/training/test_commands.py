"""Commands of training, and `check` before the first of them."""

import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import invoke
from training.__main__ import COMMANDS, app

ROOT = Path(__file__).parents[2]


def test_list_of_commands_imports_neither_torch_nor_spacy(new_process):
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from training.__main__ import app\n"
        "print(CliRunner().invoke(app, ['--help']).output)\n"
        "sys.exit(1 if {'torch', 'spacy', 'sklearn'} & sys.modules.keys() else 0)\n"
    )
    done = new_process.python(code, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_command_without_its_packages_names_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "training.corpora.convert", None)
    shown = invoke("convert-corpus", app=app, code=1).output
    assert "[E521] Expected the packages of `convert-corpus`" in shown
    assert 'pip install -e ".[full]"' in shown


SAMPLE = ROOT / "assets" / "sample"


@pytest.fixture
def settings(tiny_encoder) -> list[str]:
    return ["--encoder.base", str(tiny_encoder)]


def test_check_passes_if_every_step_can_run(
    invoke, settings, concepts_file, annotated_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    settings += ["--validation.mentions", str(annotated_file)]
    settings += ["--validation.concepts", str(concepts_file)]
    shown = invoke("check", SAMPLE, "--name", "sample", *settings)
    assert "Every step can run" in shown.output
    assert "Validation embeds about 24 names every" in " ".join(shown.output.split())
    assert not any(tmp_path.iterdir())


def test_check_lists_all_problems_at_once(invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("packages").write_text("a file in the place of a folder")
    names = ["--name", "My KB", "--version", "one", "--lang", "qq"]
    wrong = ["--encoder.base", "models/none", "--training.epoch", "2"]
    shown = invoke("check", "assets/umls", *names, *wrong, code=1)
    codes = ("E001", "E331", "E004", "E333")
    assert [code for code in codes if f"[{code}]" not in shown.output] == []
    base = ["--encoder.base", "./models/none"]
    assert "[E634]" in invoke("check", SAMPLE, "--name", "kb", *base, code=1).output


def test_check_reads_the_settings_of_the_base(
    invoke, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    words = ["check", SAMPLE, "--name", "sample", "--encoder.base", base]
    with pytest.warns(UserWarning, match=r"W601.*encoder\.pooling to be 'mean'"):
        invoke(*words, "--encoder.pooling", "cls")
    (base / "sapbert.json").write_text('{"pooling": "mean"}', "utf8")
    assert "[E203]" in invoke(*words, code=1).output


@pytest.fixture
def old_signals() -> Iterator[None]:
    """Training leaves its own handlers, since its process ends with it."""
    old = {number: signal.getsignal(number) for number in (2, 15)}
    yield
    for number, handler in old.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("old_signals")
def test_train_writes_lines_to_a_log_and_ends_with_one(
    pairs_file, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr("spacy_sapbert.io.progress.LINE_SECONDS", 1e-6)
    words = ["train", pairs_file, tmp_path / "encoder", *settings]
    words += ["--training.steps", 2, "--training.batch_size", 16]
    shown = invoke(*words, app=app, code=0)
    lines = [line for line in shown.stderr.splitlines() if " steps, " in line]
    assert [line.partition(" steps")[0] for line in lines] == ["1 of 2", "2 of 2"]
    assert all(re.search(r" left, loss \d.*, mined \d+%, ", line) for line in lines)
    end = " ".join(shown.stdout.split())  # it may be on two lines
    assert re.fullmatch(r"✔ Wrote .*encoder: 2 steps, loss \S+ to \S+, \S+ s", end)
    assert "2 of 2" not in invoke(*words, "--force", "--quiet", app=app).stderr
