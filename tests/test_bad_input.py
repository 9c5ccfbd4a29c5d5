"""Bad input to commands is an error with a code or of the usage: no traceback, no hang.

`invoke` raises what a user would see as a traceback.
"""

import os
import shutil
from pathlib import Path

import pytest

from spacy_sapbert.cli.main import app as package_app
from tests.commands import invoke
from tests.formats.test_tools import TOOLS
from training.__main__ import COMMANDS
from training.__main__ import app as training_app

SAMPLE = Path(__file__).parents[1] / "assets" / "sample"
DOCUMENTS = SAMPLE / "annotated.txt"
NO_UTF8 = os.fsdecode(b"na\xffme")
HUGE = "9" * 26
USAGE = "Invalid value"
Files = dict[str, Path]


@pytest.fixture
def files(
    sample_kb, concepts_file, annotated_file, tiny_encoder, tmp_path, monkeypatch
) -> Files:
    """Good inputs and bad ones by a name, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("fever", "utf8")
    Path("export.json").write_text('[{"id": 1, "text": 7}, 8]', "utf8")
    Path("export.a1").write_text("T1\tX 0 9\tfever", "utf8")
    Path("export.txt").write_text("fever", "utf8")
    Path("table.csv").write_text("a,b\nfever,x\n", "utf8")
    shutil.copytree(sample_kb, NO_UTF8)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe.csv")
    return {
        "KB": sample_kb,
        "CONCEPTS": concepts_file,
        "GOLD": annotated_file,
        "ENCODER": tiny_encoder,
        "DOCUMENTS": DOCUMENTS,
    }


SHORT = "--quiet --training.batch_size 4 --training.steps 1"
TRAIN = f"train pairs.tsv out --encoder.base ENCODER {SHORT}"
# the code, and the line of a command; `_` is an empty word
LINES = [
    ("E009", f"assemble KB out --name {NO_UTF8}"),
    ("E009", f"explain {NO_UTF8} fever"),
    ("E009", f"link {NO_UTF8} text.txt --output out.jsonl"),
    ("E331", "assemble KB out --lang klingon"),
    ("E001", "map KB pipe.csv --column a --output o.csv"),
    (USAGE, f"calibrate KB GOLD --dry-run --limit {HUGE}"),
    (USAGE, f"kb build CONCEPTS out --encoder ENCODER --max-length {HUGE}"),
    (USAGE, "hold-out CONCEPTS a.jsonl b.jsonl --share 1.5"),
    ("E573", "assemble KB out --pipeline linking"),  # it links already
    ("E357", f"{TRAIN} --device klingon"),
    ("E331", f"{TRAIN} --training.seed {HUGE}"),
    ("E331", f"{TRAIN} --training.optimizer.learning_rate NaN"),
    *(
        ("E117", line.format(name=name))
        for name in TOOLS
        for line in (
            "link KB export.json --input-format {name} --output o.jsonl",
            "convert export.json --format {name} --output o.tsv",
            "teach KB export.json --format {name} --output taught",
        )
    ),
    ("E612", f"{TRAIN} --training.schedule.@schedules [1]"),
    ("E009", f"{TRAIN} --training.miner.@miners {NO_UTF8}"),
]


@pytest.mark.parametrize(("code", "line"), LINES)
def test_bad_input_is_an_error_with_a_code(files, code, line):
    words = [files.get(word, "" if word == "_" else word) for word in line.split(" ")]
    app = training_app if words[0] in COMMANDS else package_app
    if words[0] == "train":
        invoke("pairs", files["CONCEPTS"], "pairs.tsv", app=training_app, code=0)
    if "linking" in words:
        invoke("assemble", files["KB"], "linking", app=package_app, code=0)
    done = invoke(*words, app=app)
    shown = " ".join(done.output.split())
    assert code in shown
    assert done.exit_code in (1, 2), shown
    assert isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in shown
