from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from training.data.pairs import read_pairs
from training.data.training_mentions import write_finetune_pairs

CONCEPTS = [
    Concept("C1", ["Heart attack", "MI"], retired=["C8"], sources={"S": [0, 1]}),
    Concept("C2", ["Mitral insufficiency", "MI"]),
    Concept("C3", ["Fever"]),
]


def write_mentions(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), "utf8")
    return path


@pytest.fixture
def concepts_path(tmp_path: Path) -> Path:
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, CONCEPTS)
    return path


def test_write_finetune_pairs_has_every_other_name_of_the_concept(
    concepts_path: Path, tmp_path: Path
) -> None:
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
    counts = write_finetune_pairs([mentions], concepts_path, tmp_path / "pairs.tsv")
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


def test_write_finetune_pairs_resolves_aliases(
    concepts_path: Path, tmp_path: Path
) -> None:
    mentions = write_mentions(tmp_path / "train.txt", "high temperature||OLD")
    aliases = write_mentions(tmp_path / "aliases.tsv", "OLD\tC3")
    output = tmp_path / "pairs.tsv"
    write_finetune_pairs([mentions], concepts_path, output, aliases)
    assert output.read_text("utf8") == "C3\thigh temperature\tFever\n"


def test_write_finetune_pairs_without_pairs_is_an_error(
    concepts_path: Path, tmp_path: Path
) -> None:
    mentions = write_mentions(tmp_path / "train.txt", "fever||X1")
    with pytest.raises(SapbertError, match="none of 1 is"):
        write_finetune_pairs([mentions], concepts_path, tmp_path / "pairs.tsv")
    assert not (tmp_path / "pairs.tsv").exists()


def test_finetune_pairs_can_be_read_by_training(
    invoke: Callable[..., Any], concepts_path: Path, tmp_path: Path
) -> None:
    mentions = write_mentions(tmp_path / "train.txt", "heart infarct||C1")
    output = tmp_path / "pairs.tsv"
    invoke("finetune-pairs", mentions, "--concepts", concepts_path, "--output", output)
    assert len(list(read_pairs(output))) == 2


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


def test_add_mentions_appends_them_as_names(
    invoke: Callable[..., Any], concepts_path: Path, tmp_path: Path
) -> None:
    mentions = write_mentions(tmp_path / "train.txt", *LINES)
    aliases = write_mentions(tmp_path / "aliases.tsv", "OLD\tC3")
    options = ["--output", tmp_path / "extended.jsonl", "--aliases", aliases]
    invoke("add-mentions", concepts_path, mentions, *options)
    concepts = list(read_concepts(tmp_path / "extended.jsonl"))
    assert concepts[0].sources == {"S": [0, 1]}
    assert {concept.cui: concept.aliases for concept in concepts} == {
        "C1": ["Heart attack", "MI", "Coronary infarct"],
        "C2": ["Mitral insufficiency", "MI", "leak"],
        "C3": ["Fever", "pyrexia", "Leak"],
    }


def test_add_mentions_refuses_mentions_of_another_vocabulary(
    invoke: Callable[..., Any], concepts_path: Path, tmp_path: Path
) -> None:
    other = write_mentions(tmp_path / "other.txt", "fever||D005334")
    output = tmp_path / "extended.jsonl"
    words = ("add-mentions", concepts_path, other, "--output", output)
    assert "E106" in invoke(*words, code=1).output
    assert not output.exists()
