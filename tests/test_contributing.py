"""What people who change the project read is true."""

import re
from pathlib import Path

import srsly

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf8")


def test_contributing_names_files_that_exist():
    (table,) = re.findall(r"## Where is X\n(.*?)\n## ", PAGE, re.DOTALL)
    named = re.findall(r"`((?:\w+/)[\w/.*]*)`", table)
    assert len(named) > 30
    for name in named:
        assert any([*folder.glob(name)] for folder in (ROOT, ROOT / "spacy_sapbert")), (
            name
        )


def test_ci_names_tests_that_exist():
    named = re.findall(r"\btests/[\w/.]+", (ROOT / ".ci" / "run").read_text("utf8"))
    assert len(named) > 3
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_public_workflow_runs_what_ci_runs():
    workflow = srsly.read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    steps = [step.get("run") for step in workflow["jobs"]["run"]["steps"]]
    assert ".ci/run" in steps
