"""Commands of training: the files and the counts that they make of example files.

`examples/commands.json` has the words of each, which are run beside `examples/input`.
What they write and print is in `examples/expected`. After a change,
`python -m tests.training.test_examples` writes it again, and git shows the difference.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.commands import invoke
from training.__main__ import app

FOLDER = Path(__file__).parent / "examples"
COMMANDS: dict[str, str] = json.loads((FOLDER / "commands.json").read_text("utf8"))


def run(name: str, folder: Path) -> dict[str, str]:
    """Run a command in a folder; return what it writes, by file, and prints."""
    shutil.copytree(FOLDER / "input", folder, dirs_exist_ok=True)
    before = {*folder.rglob("*")}
    shown = invoke(*COMMANDS[name].split(), app=app, code=0).output
    lines = [line.rstrip() for line in shown.replace(str(folder), "").split("\n")]
    files = sorted({*folder.rglob("*")} - before)
    written = {path.name: path.read_bytes().decode() for path in files}
    return {**written, "printed.txt": "\n".join(lines)}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_writes_and_prints_what_is_expected(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {*(FOLDER / "expected" / name).iterdir()}
    assert run(name, tmp_path) == {
        path.name: path.read_bytes().decode() for path in files
    }


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("finetune-pairs unknown.txt --concepts dictionary.jsonl --output o", "E106"),
        ("hold-out whole.jsonl a.jsonl b.jsonl --share 1", "E331"),
        ("hold-out-names related.jsonl a.jsonl b.tsv --share 1", "E106"),
        ("relations related.jsonl MRREL.RRF out.tsv --relations cures", "E106"),
        ("convert-corpus none.txt --format cometa --output o.tsv", "E001"),
        ("results-table results/base.json results/released.json", "E746"),
        ("results-table results/base.json --group seen", "E746"),
        ("results-table results/base.json --ties kind", "E331"),
        ("results-table names.jsonl", "E746"),
    ],
)
def test_command_ends_with_an_error_and_writes_nothing(
    words, code, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FOLDER / "input", tmp_path, dirs_exist_ok=True)
    before = {*tmp_path.rglob("*")}
    assert f"[{code}]" in invoke(*words.split(), app=app, code=1).output
    assert {*tmp_path.rglob("*")} == before


def write_expected() -> None:
    """Write what is expected again, as it is now."""
    shutil.rmtree(FOLDER / "expected", ignore_errors=True)
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found = run(name, Path(folder))
        for file, text in found.items():
            path = FOLDER / "expected" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())


if __name__ == "__main__":
    write_expected()
