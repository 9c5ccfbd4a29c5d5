from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.__main__ import app
from training.data.finetune_pairs import write_finetune_pairs

CONCEPTS = [
    Concept("C1", ["Heart attack", "MI"], retired=["C8"]),
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
