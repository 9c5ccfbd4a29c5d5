"""Commands of training, and `check` before the first of them."""

import re
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.commands import invoke
from training.__main__ import app
from training.results_table import format_mean


def test_command_without_its_packages_names_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "training.corpora.convert", None)
    shown = invoke("convert-corpus", app=app, code=1).output
    assert "[E521] Expected the packages of `convert-corpus`" in shown
    assert 'pip install -e ".[full]"' in shown


def test_a_mean_of_seeds_has_the_spread_of_a_sample():
    assert format_mean([0.5, None, 0.7]) == "0.600 ± 0.141"
    assert format_mean([0.5, None]) == "0.500"
    assert format_mean([None]) == "–"


SAMPLE = Path(__file__).parents[2] / "assets" / "sample"
check = partial(invoke, "check", app=app)


def test_check_passes_if_every_step_can_run(
    tiny_encoder, concepts_file, annotated_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    settings = ["--encoder.base", tiny_encoder]
    settings += ["--validation.mentions", annotated_file]
    settings += ["--validation.concepts", concepts_file]
    shown = check(SAMPLE, "--name", "sample", *settings, code=0)
    assert "Every step can run" in shown.output
    assert "Validation embeds about 24 names every" in " ".join(shown.output.split())
    assert not any(tmp_path.iterdir())


def test_check_lists_all_problems_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("packages").write_text("a file in the place of a folder")
    names = ["--name", "My KB", "--version", "one", "--lang", "qq"]
    wrong = ["--encoder.base", "models/none", "--training.epoch", "2"]
    shown = check("assets/umls", *names, *wrong, code=1)
    told = ("[E001]", "[E004]", "[E333]", "'My KB'", "'one'", "'qq'")
    assert [each for each in told if each not in shown.output] == []
    base = ["--encoder.base", "./models/none"]
    assert "[E634]" in check(SAMPLE, "--name", "kb", *base, code=1).output


def test_check_reads_the_settings_of_the_base(tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = Path(shutil.copytree(tiny_encoder, tmp_path / "base"))
    words = [SAMPLE, "--name", "sample", "--encoder.base", base]
    with pytest.warns(UserWarning, match=r"W601.*encoder\.pooling to be 'mean'"):
        check(*words, "--encoder.pooling", "cls", code=0)
    (base / "sapbert.json").write_text('{"pooling": "mean"}', "utf8")
    assert "[E203]" in check(*words, code=1).output


def test_train_writes_lines_to_a_log_and_ends_with_one(
    pairs_file, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the process goes on
    monkeypatch.setattr("spacy_sapbert.io.progress.LINE_SECONDS", 1e-6)
    words = ["train", pairs_file, tmp_path / "encoder", "--encoder.base", tiny_encoder]
    words += ["--training.steps", 2, "--training.batch_size", 16]
    shown = invoke(*words, app=app, code=0)
    lines = [line for line in shown.stderr.splitlines() if " left, loss " in line]
    assert [line.partition(" steps")[0] for line in lines] == ["1 of 2", "2 of 2"]
    end = " ".join(shown.stdout.split())  # it may be on two lines
    assert re.fullmatch(r"✔ Wrote .*encoder: 2 steps, loss \S+ to \S+, \S+ s", end)
    assert "2 of 2" not in invoke(*words, "--force", "--quiet", app=app).stderr
