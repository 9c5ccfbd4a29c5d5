from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.__main__ import app
from training.data.training_mentions import write_finetune_pairs

CONCEPTS = [
    Concept("C1", ["Heart attack", "MI"], retired=["C8"], sources={"S": [0, 1]}),
    Concept("C2", ["Mitral insufficiency", "MI"]),
    Concept("C3", ["Fever"]),
]


def write_mentions(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), "utf8")
    return path


def test_pair_mentions_has_every_other_name_of_the_concept(tmp_path: Path) -> None:
    mentions = write_mentions(
        tmp_path / "train.txt",
        "mi||C1",
        "Mi||C1",
        "coronary  infarct||C8",
        "mi||C2",
        "fever||C3",
        "both||C1+C2",
        "either||C2|C3",
        "nothing||C9",
    )
    counts = write_finetune_pairs([mentions], CONCEPTS, tmp_path / "pairs.tsv", {})
    pairs = (tmp_path / "pairs.tsv").read_text("utf8").splitlines()
    assert [tuple(line.split("\t")) for line in pairs] == [
        ("C1", "coronary infarct", "Heart attack"),
        ("C1", "coronary infarct", "MI"),
        ("C1", "mi", "Heart attack"),
        ("C2", "either", "MI"),
        ("C2", "either", "Mitral insufficiency"),
        ("C2", "mi", "Mitral insufficiency"),
        ("C3", "either", "Fever"),
    ]
    assert counts["mentions"] == 8
    assert counts["composite or without an id"] == 1
    assert counts["ids"] == 5
    assert counts["ids that the dictionary has"] == 4
    assert counts["pairs"] == 7


def test_pair_mentions_resolves_aliases(tmp_path: Path) -> None:
    mentions = write_mentions(tmp_path / "train.txt", "high temperature||OLD")
    aliases = {"OLD": "C3"}
    write_finetune_pairs([mentions], CONCEPTS, tmp_path / "pairs.tsv", aliases)
    line = (tmp_path / "pairs.tsv").read_text("utf8")
    assert line == "C3\thigh temperature\tFever\n"


def test_write_finetune_pairs_without_pairs_is_an_error(tmp_path: Path) -> None:
    mentions = write_mentions(tmp_path / "train.txt", "fever||X1")
    with pytest.raises(SapbertError, match="none of 1 is"):
        write_finetune_pairs([mentions], CONCEPTS, tmp_path / "pairs.tsv", {})
    assert not (tmp_path / "pairs.tsv").exists()


def test_finetune_pairs_can_be_read_by_training(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    from transformers import AutoTokenizer

    from training.data.tokenized_pairs import build_corpus

    mentions = write_mentions(tmp_path / "train.txt", "heart infarct||C1")
    write_concepts(tmp_path / "concepts.jsonl", CONCEPTS)
    places = ["--concepts", str(tmp_path / "concepts.jsonl")]
    places += ["--output", str(tmp_path / "pairs.tsv")]
    result = CliRunner().invoke(app, ["finetune-pairs", str(mentions), *places])
    assert result.exit_code == 0, result.output
    corpus = build_corpus(
        tmp_path / "pairs.tsv",
        tmp_path / "corpus",
        AutoTokenizer.from_pretrained(tiny_encoder),
        max_length=25,
        lowercase=True,
    )
    assert len(corpus) == 2


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
def dictionary_file(tmp_path: Path) -> Path:
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, CONCEPTS)
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["add-mentions", *map(str, arguments)])


def test_add_mentions_appends_them_as_names(
    dictionary_file: Path, tmp_path: Path
) -> None:
    mentions = write_mentions(tmp_path / "train.txt", *LINES)
    aliases = tmp_path / "aliases.tsv"
    aliases.write_text("OLD\tC3\n", "utf8")
    output = tmp_path / "extended.jsonl"
    result = run(dictionary_file, mentions, "--output", output, "--aliases", aliases)
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
    other = write_mentions(tmp_path / "other.txt", "fever||D005334")
    output = tmp_path / "extended.jsonl"
    result = run(dictionary_file, other, "--output", output)
    assert result.exit_code == 1
    assert "E619" in result.output
    assert not output.exists()
