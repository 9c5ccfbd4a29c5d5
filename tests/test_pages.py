"""What is generated in the pages is fresh, and what they name exists."""

import json
import re
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest
import srsly
from weasel.cli.document import project_document
from weasel.util import load_project_config

import spacy_sapbert
from spacy_sapbert import extending
from training.__main__ import COMMANDS
from training.trainer.settings import flatten_config, read_config

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "PROJECT.md",
    ROOT / "SECURITY.md",
    ROOT / "CODE_OF_CONDUCT.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "experiments").rglob("README.md")),
]
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"
PROJECT = srsly.read_yaml(ROOT / "project.yml")


def test_ci_runs_the_tests_that_the_command_leaves_out():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    options = settings["tool"]["pytest"]["ini_options"]["addopts"]
    (left_out,) = re.findall(r"-m '(.+)'", options)
    run = (ROOT / ".ci" / "run").read_text("utf8")
    for marker in re.findall(r"not (\w+)", left_out):
        assert re.search(rf"-m pytest .*-m .*\b{marker}\b", run), marker


def test_generated_parts_of_pages_are_as_the_code_declares_them():
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for path, parts in generate["generate_pages"]().items():
        page = path.read_text("utf8")
        assert generate["write_parts"](page, parts) == page, (
            "run `python docs/generate.py`"
        )


def test_project_page_is_the_output_of_weasel(tmp_path):
    page = tmp_path / "PROJECT.md"
    shutil.copy(ROOT / "project.yml", tmp_path)
    project_document(tmp_path, page, no_emoji=True)
    assert page.read_text("utf8") == (ROOT / "PROJECT.md").read_text("utf8"), (
        "run `python -m spacy project document --no-emoji --output PROJECT.md`"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_lead_to_files_and_headings(page):
    for link, heading in re.findall(
        r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text("utf8")
    ):
        target = page if not link else page.parent / link
        assert target.is_file(), link
        if heading:
            found = re.findall(r"^#+ (.+)$", target.read_text("utf8"), re.MULTILINE)
            plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in found]
            assert heading in [title.replace(" ", "-") for title in plain], link


def test_project_all_checks_first_with_the_settings_of_training():
    assert PROJECT["workflows"]["all"][0] == "check"
    scripts = {each["name"]: each["script"][0].split() for each in PROJECT["commands"]}
    settings = {word for word in scripts["train"] if re.match(r"--\w+\.", word)}
    words = scripts["concepts"]
    options = {*words[words.index("--languages") :]} - {"--force"}
    # a step before it makes the files of the validation
    made = {"--validation.mentions", "--validation.concepts"}
    assert len(settings) > len(made)
    defaults = f"languages={PROJECT['vars']['languages']}"
    defaults += PROJECT["vars"]["concept_options"].replace("--", ",")
    assert words[words.index("--where-known") + 1] == defaults
    given = {"${vars.held_out}", "${vars.most_pairs}"}
    assert settings - made | options | given <= {*scripts["check"]}
    assert "--force" not in scripts["train"]  # hours may be lost


EXPERIMENTS = sorted((ROOT / "experiments").glob("*/project.yml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.parent.name)
def test_experiments_use_commands_and_files_that_exist(path, monkeypatch):
    monkeypatch.setenv("SPACY_SAPBERT_DATA", "data")
    project = load_project_config(path.parent)
    commands = {command["name"]: command for command in project["commands"]}
    for steps in project["workflows"].values():
        assert {*steps} <= commands.keys()
    outputs = {
        out for command in commands.values() for out in command.get("outputs", [])
    }
    for command in commands.values():
        for dep in command.get("deps", []):
            assert dep in outputs or (path.parent / dep).is_file()
        for line in command["script"]:
            assert line.startswith("python -m ")
            for training in re.findall(r"-m training (\S+)", line):
                assert training in COMMANDS
            for config in re.findall(r"--config (\S+)", line):
                assert (path.parent / config).is_file()


GRIDS = sorted((ROOT / "experiments" / "ablations").glob("*/*.cfg"))


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_runs_of_grids_have_valid_settings(path):
    assert read_config(path)["training"]["batch_size"] == 256


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_install_nothing_by_a_name_that_no_index_has(page):
    text = page.read_text("utf8")
    assert not re.search(r"pip install \S*spacy.sapbert\b(?!\S*/)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_add_extras_to_a_checkout_that_stays_editable(page):
    """Without `-e`, pip replaces the link to the checkout by a copy of it."""
    text = page.read_text("utf8")
    assert not re.search(r'pip install (?!([^`\n]* )?-e )[^`\n]*"\.\[', text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_import_public_names_only(page):
    text = page.read_text("utf8")
    inner = re.findall(r"(?:from|import) spacy_sapbert\.([\w.]+)", text)
    assert {*inner} <= {"extending"}
    for names in re.findall(r"from spacy_sapbert import (.+)", text):
        for name in names.split(","):
            assert name.strip() in spacy_sapbert.PUBLIC
    for names in re.findall(r"from spacy_sapbert.extending import (.+)", text):
        for name in names.split(","):
            assert name.strip() in extending.__all__


def test_pages_name_settings_of_training_that_exist():
    tracked = {"training.logger.@loggers": "spacy-sapbert.Tracker.v1"}
    known = flatten_config(read_config(None, tracked))
    settings = r"--((?:encoder|training|validation)\.[\w.@]*\w)"
    # The settings of these two experiments are those of spaCy.
    for page in [
        page for page in PAGES if not {"annotated", "context"} & {*page.parts}
    ]:
        assert {*re.findall(settings, page.read_text("utf8"))} <= {*known}, page


def test_contributing_names_files_that_exist():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf8")
    (table,) = re.findall(r"## Where is X\n(.*?)\n## ", page, re.DOTALL)
    named = re.findall(r"`((?:\w+/)[\w/.*]*)`", table)
    assert len(named) > 30
    for name in named:
        assert any([*folder.glob(name)] for folder in (ROOT, ROOT / "spacy_sapbert")), (
            name
        )


@pytest.mark.parametrize("script", [".ci/run", ".github/workflows/ci.yml"])
def test_ci_names_tests_that_exist(script):
    named = re.findall(r"\btests/[\w/.]+", (ROOT / script).read_text("utf8"))
    assert len(named) > 3
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_public_workflow_runs_what_ci_runs():
    workflow = srsly.read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    steps = [step.get("run") for step in workflow["jobs"]["run"]["steps"]]
    assert ".ci/run" in steps


def test_tutorial_was_run_from_top_to_bottom_without_an_error():
    notebook = json.loads(TUTORIAL.read_text("utf8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert TUTORIAL.stat().st_size < 300_000
