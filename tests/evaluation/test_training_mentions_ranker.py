from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.gold_mentions import make_resolver
from spacy_sapbert.evaluation.training_mentions_ranker import (
    main,
    make_back_off,
    read_known,
)
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts

app = typer.Typer()
app.command()(main)

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
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_training_mentions_become_names_after_the_own_ones(
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


def test_mentions_of_another_dictionary_are_an_error(
    dictionary_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("fever||D005334\n", "utf8")
    output = tmp_path / "extended.jsonl"
    result = run(dictionary_file, other, "--output", output)
    assert result.exit_code == 1
    assert "E619" in result.output
    assert not output.exists()


def test_back_off_asks_the_training_mentions_first(mentions_file: Path) -> None:
    live = {"C1": "C1", "C2": "C2", "C3": "C3", "C8": "C1"}
    known = read_known([mentions_file], make_resolver(live.get, {"OLD": "C3"}))
    assert known == {
        "mi": ["C1"],
        "coronary infarct": ["C1"],
        "pyrexia": ["C3"],
        "leak": ["C2", "C3"],
    }

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        return [[Answer(5, "C2", 0.9)] for _ in mentions]

    answers = make_back_off(rank, known)(["MI", "other", "Leak"])
    assert [[(each.cui, each.score) for each in found] for found in answers] == [
        [("C1", 2.0), ("C2", 0.9)],
        [("C2", 0.9)],
        [("C2", 2.0), ("C3", 2.0), ("C2", 0.9)],
    ]
    rows = [each.row for found in answers for each in found if each.score > 1]
    assert max(rows) < 0  # no row of the index
