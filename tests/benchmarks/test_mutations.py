"""Changes of the code that no test finds are told, and a run goes on."""

import json
import sys
from pathlib import Path

import pytest
import typer
from coverage import CoverageData
from typer.testing import CliRunner

from benchmarks import mutations

CODE = """def is_positive(value):
    return value > 0


SIZE = round(1 << 12, 2)
BAR = dict(quiet=not SIZE)
"""
TEST = """from spacy_sapbert.kb.sign import is_positive

def test_is_positive():
    assert is_positive(1)
    assert not is_positive(-1)
"""


@pytest.fixture
def repository(tmp_path, monkeypatch, new_process) -> Path:
    """A function whose test does not try 0."""
    root = tmp_path / "repository"
    for path, text in {
        "spacy_sapbert/__init__.py": "",
        "spacy_sapbert/kb/__init__.py": "",
        "spacy_sapbert/kb/sign.py": CODE,
        "tests/kb/test_sign.py": TEST,
        "tests/test_others.py": "assert False, 'not of the module'",
        "pytest.ini": "[pytest]\nmarkers = slow\naddopts = --import-mode=importlib",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    new_process.run(["git", "init", "-q"], cwd=root, check=True)
    new_process.run(["git", "add", "."], cwd=root, check=True)
    run = ["-m", "coverage", "run", "-m", "pytest", "tests/kb/test_sign.py"]
    settings = "[run]\nsource = spacy_sapbert\ndynamic_context = test_function\n"
    settings += "relative_files = true\n"
    (root / ".coveragerc").write_text(settings)
    new_process.run([sys.executable, *run], cwd=root, check=True)
    monkeypatch.setattr(mutations, "ROOT", root)
    monkeypatch.chdir(root)
    return root


def test_a_change_that_no_test_finds_is_told(repository, tmp_path):
    covered = CoverageData(".coverage")
    covered.read()
    changes = mutations.list_changes(repository / "spacy_sapbert/kb/sign.py")
    for change in changes:
        tests = mutations.find_line_tests(change, covered)
        assert tests == ["tests/kb/test_sign.py::test_is_positive"]
    results = tmp_path / "results.jsonl"
    app = typer.Typer()
    app.command()(mutations.main)
    missing = CliRunner().invoke(app, [str(results), "--coverage", "none"])
    assert "E001" in str(missing.exception)
    run = CliRunner().invoke(app, [str(results), "--count", "2"])
    assert run.exit_code == 1, run.output
    assert "sign.py:2: value > 0 → (value >= 0)" in run.output
    assert "1 of 2 changes were found." in run.output
    assert (repository / "spacy_sapbert/kb/sign.py").read_text() == CODE
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted(each["found"] for each in lines) == [False, True]
    # what was tried before is not tried again, and what changes nothing does not count
    judged = [{**each, "found": each["found"] or "not a sign"} for each in lines]
    results.write_text("".join(json.dumps(each) + "\n" for each in judged))
    again = CliRunner().invoke(app, [str(results), "--count", "2"])
    assert (again.exit_code, len(results.read_text().splitlines())) == (0, 2)
    assert "1 of 1 changes were found." in again.output


def test_a_comparison_with_a_fraction_is_turned_round(repository):
    path = repository / "half.py"
    path.write_text("is_low = share <= 0.5")
    assert [change.new for change in mutations.list_changes(path)] == [
        "(not share <= 0.5)"
    ]
