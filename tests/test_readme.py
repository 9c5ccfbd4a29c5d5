"""The README's code runs, and what is generated in it is fresh."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
from weasel.cli.document import project_document

from spacy_sapbert.pipeline.default_config import DEFAULT_CONFIG

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf8")
PROJECT = srsly.read_yaml(ROOT / "project.yml")
CONFIG_BLOCK = re.compile(
    r"<!-- default config: start -->\n```ini\n(.*?)```\n<!-- default config: end -->",
    re.DOTALL,
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_readme_python_prints_what_it_says(demo_folder: Path) -> None:
    codes, outputs = blocks("python"), blocks("text")
    assert len(codes) == len(outputs) == 1
    for code, output in zip(codes, outputs, strict=True):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=demo_folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == output, done.stderr


def test_readme_shows_the_default_config() -> None:
    match = CONFIG_BLOCK.search(README)
    assert match
    assert match.group(1) == DEFAULT_CONFIG.lstrip("\n")


def test_readme_table_of_commands_is_fresh(tmp_path: Path) -> None:
    for name in ("README.md", "project.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    project_document(tmp_path, tmp_path / "README.md", no_emoji=True)
    assert (tmp_path / "README.md").read_text("utf8") == README, (
        "run `python -m spacy project document --no-emoji --output README.md`"
    )


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_readme_links_lead_to_files(link: str) -> None:
    assert (ROOT / link).is_file()


@pytest.mark.parametrize("command", PROJECT["commands"], ids=lambda c: c["name"])
def test_every_command_of_the_project_says_what_it_reads_and_writes(
    command: dict,
) -> None:
    assert re.fullmatch(r".+ -> .+", command["help"])
    assert command["outputs"]
    for line in command["script"]:
        module = re.match(r"python -m (training\.\w+)", line)
        if module:
            script = module.group(1).replace(".", "/") + ".py"
            assert script in command["deps"], script
            assert (ROOT / script).is_file()


def test_every_dep_of_the_project_is_there_or_an_output_or_the_user_s() -> None:
    outputs = {out for command in PROJECT["commands"] for out in command["outputs"]}
    outputs |= {asset["dest"] for asset in PROJECT["assets"]}
    for command in PROJECT["commands"]:
        for dep in command["deps"]:
            assert dep in outputs or dep.startswith("${vars.") or (ROOT / dep).exists()
