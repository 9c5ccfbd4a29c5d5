from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.__main__ import app

CONCEPTS = [
    Concept("C1", ["Heart attack", "MI"], retired=["C8"], sources={"S": [0, 1]}),
    Concept("C2", ["Mitral insufficiency", "MI"]),
    Concept("C3", ["Fever"]),
]
LINES = [
    "mi||C1",
    "coronary  infarct||C8",
    "Coronary infarct||C1",
    "pyrexia||OLD",
    "leak||C2",
    "Leak||C3",
    "both||C1+C2",
    "nothing||C9",
]


@pytest.fixture
def mentions_file(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), "utf8")
    return path


@pytest.fixture
def dictionary_file(tmp_path: Path) -> Path:
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, CONCEPTS)
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["add-mentions", *map(str, arguments)])


def test_add_mentions_appends_them_as_names(
    dictionary_file: Path, mentions_file: Path, tmp_path: Path
) -> None:
    aliases = tmp_path / "aliases.tsv"
    aliases.write_text("OLD\tC3\n", "utf8")
    output = tmp_path / "extended.jsonl"
    result = run(
        dictionary_file, mentions_file, "--output", output, "--aliases", aliases
    )
    assert result.exit_code == 0, result.output
    concepts = list(read_concepts(output))
    assert concepts[0].sources == {"S": [0, 1]}
    names = {concept.cui: concept.aliases for concept in concepts}
    assert names == {
        "C1": ["Heart attack", "MI", "Coronary infarct"],
        "C2": ["Mitral insufficiency", "MI", "leak"],
        "C3": ["Fever", "pyrexia", "Leak"],
    }


def test_add_mentions_refuses_mentions_of_another_vocabulary(
    dictionary_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("fever||D005334\n", "utf8")
    output = tmp_path / "extended.jsonl"
    result = run(dictionary_file, other, "--output", output)
    assert result.exit_code == 1
    assert "E619" in result.output
    assert not output.exists()
