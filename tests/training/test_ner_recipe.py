"""The recipe of a NER model runs as it is printed, here on a corpus of one sentence."""

import re
import shlex
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

from spacy_sapbert.cli.main import app as package_app
from training.__main__ import app as training_app

APPS = {
    "training": training_app,
    "spacy sapbert": package_app,
    "spacy": spacy_app,
}
PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf8")
RECIPE = PAGE.partition("## A NER model")[2].partition("\n## ")[0]
COMMANDS = [
    line.removeprefix("python -m ")
    for line in RECIPE.splitlines()
    if line.startswith("python -m ")
]
CORPUS = (
    "1|t|Aspirin against fever.\n1|a|Fever after aspirin.\n"
    "1\t0\t7\tAspirin\tChemical\tD001241\n1\t16\t21\tfever\tDisease\tD005334\n\n"
)
# of hours, from the network, or of no use after a training of four steps
LEFT_OUT = ("project assets", "fetch-encoder", "concepts", "kb build", "benchmark")
SHORT = {"train": ["--training.max_steps", "4", "--training.eval_frequency", "2"]}


def run(command: str) -> str:
    """Run a command of the recipe in this process, and return what it prints."""
    name = next(name for name in APPS if command.startswith(f"{name} "))
    words = shlex.split(command.removeprefix(name))
    words += SHORT.get(words[0], [])
    shown = CliRunner().invoke(APPS[name], words)
    assert shown.exit_code == 0, (command, shown.output, shown.exception)
    return shown.output


def test_recipe_trains_a_ner_model_and_links_with_it(
    sample_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = set(re.findall(r"corpus/\S+\.txt", RECIPE))
    assert len(files) == 2
    for file in files:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(CORPUS, "utf8")
    notes = Path("assets/sample/notes")
    notes.mkdir(parents=True)
    (notes / "note.txt").write_text("Aspirin against fever.", "utf8")
    Path("models/mesh").mkdir(parents=True)
    Path("models/mesh/kb").symlink_to(sample_kb)
    ran = [each for each in COMMANDS if not any(part in each for part in LEFT_OUT)]
    assert len(ran) == 5
    for command in ran:
        run(command)
    nlp = spacy.load("models/ner/model-best")
    assert nlp.get_pipe("ner").labels == ("Chemical", "Disease")
    assert "fever" in Path("notes.html").read_text("utf8")
