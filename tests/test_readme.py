"""The README's code runs, and what is generated in it is fresh."""

import re
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest
import srsly
from weasel.cli.document import project_document
from weasel.util import load_project_config

from training.__main__ import COMMANDS
from training.trainer.settings import read_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf8")
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "PROJECT.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "experiments").rglob("README.md")),
]
PROJECT = srsly.read_yaml(ROOT / "project.yml")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_readme_python_prints_its_output(demo_folder, new_process):
    codes, outputs = blocks("python"), blocks("text")
    assert len(codes) == len(outputs) == 1
    for code, output in zip(codes, outputs, strict=True):
        done = new_process.python(code, cwd=demo_folder)
        assert done.stdout == output, done.stderr


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
    settings = [
        word for word in scripts["train"] if word.startswith("--") and "." in word
    ]
    assert settings
    assert set(settings) <= {*scripts["check"]}
    assert "--force" not in scripts["train"]  # hours may be lost


def test_accuracies_count_ties_by_their_chance_and_beside_it_as_right():
    """A user gets one answer; lenient ties make the figures higher."""
    page = (ROOT / "docs" / "papers.md").read_text("utf8")
    cells = re.findall(
        r"^\| .+? " + r"\| ([\d.]+) \(([\d.]+)\) " * 3, page, re.MULTILINE
    )
    results = ROOT / "experiments" / "sapbert" / "results" / "accuracy.json"
    tables = srsly.read_json(results)["tables"][:3]
    for place, ties in enumerate(("expected", "lenient")):
        columns = [
            [row["Acc@1 concepts"] for row in table["rows"] if row["Ties"] == ties]
            for table in tables
        ]
        means = [
            [value["mean"] if isinstance(value, dict) else value for value in column]
            for column in columns
        ]
        found = [tuple(map(float, row[place::2])) for row in cells]
        assert found == [pytest.approx(row) for row in zip(*means, strict=True)]


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
