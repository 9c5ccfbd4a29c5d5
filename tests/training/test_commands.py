"""Commands of training, and `check` before the first of them."""

import json
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
from training.trainer.settings import complete_encoder, flatten_config, read_config


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
    tiny_encoder, annotated_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ["--name", "sample", "--encoder.base", tiny_encoder]
    shown = check(SAMPLE, annotated_file, *words, "--languages", "ENG,SPA", code=0)
    assert "Every step can run" in shown.output
    assert not any(tmp_path.iterdir())


def test_check_lists_all_problems_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("packages").write_text("a file in the place of a folder")
    names = ["--name", "My KB", "--version", "one", "--lang", "qq"]
    wrong = ["--encoder.base", "models/none", "--training.epoch", "2"]
    shown = check("assets/umls", "none.tsv", *names, *wrong, code=1)
    told = ("[E001]", "[E004]", "[E333]", "'My KB'", "'one'", "'qq'", "none.tsv")
    assert [each for each in told if each not in shown.output] == []
    base = ["--encoder.base", "./models/none"]
    assert "[E634]" in check(SAMPLE, "--name", "kb", *base, code=1).output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("mine.csv --languages ENG", "[E113]"),  # a table has no languages
        ("mine.csv --columns id=Code", "[E331]"),
        ("mine.csv --ids alias", "'alias' is not one of"),
        ("mine.csv --unknown", "No such option: --unknown"),
        ("broken.obo", "[E117]"),
        ("mine.csv --device cuda:99", "[E357]"),
    ],
)
def test_check_finds_what_would_stop_a_step(
    words, problem, tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text("id,name\nX:1,fever\n", "utf8")
    Path("broken.obo").write_text("[Term]\nname: fever\nid\n", "utf8")
    own = ["--name", "mine", "--encoder.base", tiny_encoder]
    shown = check(*words.split(), *own, code=1)
    assert problem in shown.output
    if "languages" in words:
        check(*words.split(), "--where-known", "languages=ENG", *own, code=0)


def test_check_finds_an_encoder_or_a_checkpoint_of_other_settings(
    tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = [SAMPLE, "--name", "mine", "--encoder.base", tiny_encoder]
    checkpoint = Path("models", "mine", "encoder-checkpoint")
    checkpoint.mkdir(parents=True)
    saved = {"settings": {"encoder.base": str(tiny_encoder), "training.epochs": 7}}
    (checkpoint / "state.json").write_text(json.dumps(saved), "utf8")
    assert "[E560]" in check(*words, code=1).output
    config = read_config(overrides={"encoder.base": str(tiny_encoder)})
    settings = flatten_config(complete_encoder(config)) | {"of_pairs": "digest"}
    state = json.dumps({"settings": settings})
    (checkpoint / "state.json").write_text(state, "utf8")
    check(*words, code=0)
    Path("models", "mine", "encoder").mkdir()
    shown = " ".join(check(*words, code=1).output.split())
    assert "no `train` in project.lock" in shown
    assert "Remove models/mine/encoder to train again" in shown
    check(*words[:2], "other", *words[3:], code=0)
    # as weasel writes 0.3, and 1.0
    line = "python -m training hold-out-names corpus/mine/a.jsonl --share {} --seed 0"
    steps = {"hold-out": {"script": [line.format("0.30000000000000004")], "deps": []}}
    Path("project.lock").write_text(json.dumps(steps), "utf8")
    for share, other in (
        ("0.30000000000000004", None),
        ("0.3", None),
        ("0.25", "0.25"),
    ):
        shown = check(*words, "--held-out", share, code=1).output
        assert ("--share" in shown) == bool(other)
    steps["hold-out"]["script"] = [line.format(1)]
    Path("project.lock").write_text(json.dumps(steps), "utf8")
    assert "--share" not in check(*words, "--held-out", "1.0", code=1).output
    shown = check(*words, "--held-out", "0.30000000000000004", code=1).output
    assert "got --share 0.3, no" in " ".join(shown.split())


def test_check_says_that_the_licence_of_a_source_stops_the_wheel(
    tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = [
        ["C0000001", "ENG", "P", "L1", "PF", "S1", "Y", "A1", "", "", "", "SNOMEDCT_US"]
        + ["PT", "1", name, "0", "N", "256", ""]
        for name in ("fever", "pyrexia")
    ]
    lines = "".join("|".join(row) + "\n" for row in rows)
    Path("release").mkdir()
    Path("release", "MRCONSO.RRF").write_text(lines, "utf8")
    words = ["release", "--name", "mine", "--encoder.base", tiny_encoder]
    shown = " ".join(check(*words, code=0).output.split())
    assert "will stop: [E424]" in shown
    assert "--may-distribute SNOMEDCT_US" in shown
    assert "Every other step can run" in shown
    permitted = check(*words, "--may-distribute=SNOMEDCT_US", code=0).output
    assert "Every step can run" in permitted
    assert "E424" not in permitted


def test_check_knows_the_memory_that_a_batch_needs(tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = ["--name", "mine", "--encoder.base", tiny_encoder]
    large = ["--training.batch_size", "1000000"]  # 85 GB
    monkeypatch.setattr("training.check.free_memory", lambda: 10**10)
    check(SAMPLE, *base, code=0)
    assert "GB of memory" in check(SAMPLE, *base, *large, code=1).output
    check(SAMPLE, *base, *large, "--training.chunks", "100", code=0)
    monkeypatch.setattr("training.check.free_memory", lambda: None)  # not known
    check(SAMPLE, *base, *large, code=0)


def test_check_knows_the_space_that_checkpoints_need(
    tiny_encoder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    size = (tiny_encoder / "model.safetensors").stat().st_size
    base = ["--name", "mine", "--encoder.base", tiny_encoder]
    for free, code in ((8 * size, 0), (8 * size - 100, 1)):
        usage = shutil.disk_usage(tmp_path)._replace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, usage=usage: usage)
        assert ("[E004]" in check(SAMPLE, *base, code=code).output) == bool(code)


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


def compare(*differences: tuple[float, float, float, float]) -> str:
    """Return evaluation.json of files with these differences, intervals and p."""
    results = [
        {
            "file": f"{number}.tsv",
            "mentions": 100,
            "ties": {
                "expected": {
                    "first": 0.5,
                    "second": 0.5 + more,
                    "difference": more,
                    "interval": [low, high],
                    "p": p,
                }
            },
        }
        for number, (more, low, high, p) in enumerate(differences)
    ]
    kb = {"counts": {"concepts": 2000, "rows": 16069}}
    return json.dumps({"comparison": {"results": results}, "kb": kb})


BETTER, WORSE = (0.1, 0.05, 0.15, 0.04), (-0.1, -0.2, -0.01, 0.04)
SAME = (0.01, -0.02, 0.04, 0.5)
FEW = (0.5, 0.5, 0.5, 0.25)  # three mentions, which have no spread


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([BETTER], "is better than models/minilm"),
        ([BETTER, SAME], "is better than models/minilm"),
        ([SAME], "not shown to be better than models/minilm (it may be chance)"),
        ([FEW], "not shown to be better than models/minilm (it may be chance)"),
        ([BETTER, WORSE], "better than models/minilm (it is worse on 1.tsv)"),
    ],
)
def test_model_card_says_whether_the_encoder_is_better(
    differences, verdict, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    encoder = Path("encoder")
    encoder.mkdir()
    (encoder / "sapbert.json").write_text("{}", "utf8")
    (encoder / "training.cfg").write_text('[encoder]\nbase = "models/minilm"\n', "utf8")
    card = encoder / "README.md"
    card.write_text("# Encoder\n\n## Settings\n\nmany\n", "utf8")
    Path("evaluation.json").write_text(compare(*differences), "utf8")
    words = ["model-card", "evaluation.json", "encoder"]
    shown = invoke(*words, app=app, code=0).output
    first = card.read_text("utf8")
    for text in (" ".join(shown.split()), first):
        assert verdict in text
    more, low, high, p = differences[0]
    row = f"| 0.tsv | 100 | 50.0% (40.4% to 59.6%) | {0.5 + more:.1%} "
    assert row in first
    assert f"| {more:+.1%} ({low:+.1%} to {high:+.1%}) | {p} |" in first
    assert first.index("## Accuracy") < first.index("## Settings")
    assert "Candidates are ranked by cosine." in first  # none was learned
    invoke(*words, app=app, code=0)
    assert card.read_text("utf8") == first
    found = json.loads(compare(*differences))
    found["kb"]["order"] = {"examples": 2000}
    Path("evaluation.json").write_text(json.dumps(found), "utf8")
    invoke(*words, app=app, code=0)
    learned = "ranked by the order that `spacy sapbert kb build` learned."
    assert learned in card.read_text("utf8")
    for wrong in (
        '{"kb": {}}',
        '{"kb": {"counts": {}}, "comparison": {"results": []}}',
    ):
        Path("evaluation.json").write_text(wrong, "utf8")
        assert "[E746]" in invoke(*words, app=app, code=1).output
