from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import training.data.dataset
from spacy_sapbert.errors import SapbertError
from training.data.dataset import (
    PairDataset,
    build_dataset,
    open_dataset,
    tokenizer_digest,
)

LINES = [
    ("C1", "Heart attack", "acute pain of the heart"),
    ("C1", "Heart attack", "MI"),
    ("C2", "mi", "Mitral Insufficiency"),
    ("C3", "fever", "x" * 60),
    ("C3", "FEVER", ""),
    ("C1", "MI", "heart attack"),
    ("C2", "MI", "mitral\u2028insufficiency"),
]


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder) -> Any:
    return AutoTokenizer.from_pretrained(tiny_encoder)


@pytest.fixture
def pairs_path(tmp_path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join("\t".join(line) + "\n" for line in LINES), "utf8")
    return path


@pytest.fixture
def dataset(pairs_path, tmp_path, tokenizer) -> PairDataset:
    return build(pairs_path, tmp_path / "dataset", tokenizer)


def build(path: Path, folder: Path, tokenizer: Any, **settings: Any) -> PairDataset:
    settings = {"max_length": 12, "lowercase": True, **settings}
    return build_dataset(path, folder, tokenizer, **settings)


def assert_round_trip(dataset: PairDataset, tokenizer: Any, *, lowercase: bool) -> None:
    """Every line of LINES, in order, is what the dataset holds."""
    assert len(dataset.pairs) == len(LINES)
    hashes: dict[str, int] = {}
    for pair, (concept, *names) in zip(dataset.pairs, LINES, strict=True):
        assert pair["label"] == hashes.setdefault(concept, pair["label"])
        for row, text in zip(pair["names"], names, strict=True):
            text = text.lower() if lowercase else text
            name = dataset.names[row]
            expected = tokenizer(text, truncation=True, max_length=12)["input_ids"]
            assert name["tokens"][: name["length"]].tolist() == expected
            assert not name["tokens"][name["length"] :].any()  # the pad of BERT is 0
            assert name["hash"] == hashes.setdefault(f"name {text}", name["hash"])
    assert len(set(hashes.values())) == len(hashes)


@pytest.mark.parametrize(
    ("at_once", "names_kept", "lowercase"),
    [(2, 9, False), (3, 0, True), (5_000, 9, True)],
)
def test_build_dataset_holds_every_line_in_blocks_of_any_size(
    pairs_path, tmp_path, tokenizer, monkeypatch, at_once, names_kept, lowercase
):
    monkeypatch.setattr(training.data.dataset, "PAIRS_PER_BLOCK", at_once)
    monkeypatch.setattr(training.data.dataset, "NAMES_KEPT", names_kept)
    folder = tmp_path / "dataset"
    dataset = build(pairs_path, folder, tokenizer, lowercase=lowercase)
    assert_round_trip(dataset, tokenizer, lowercase=lowercase)
    assert dataset.meta.concepts == 5


@pytest.mark.parametrize("line", ["C1\ta", "", "C1\ta\tb\tc"])
def test_build_dataset_names_the_bad_line(pairs_path, tmp_path, tokenizer, line):
    with open(pairs_path, "a", encoding="utf8") as file:
        file.write(f"{line}\nC1\ta\tb\n")
    fields = len(line.split("\t"))
    with pytest.raises(SapbertError, match=rf"pairs.tsv:8: .* {fields} fields"):
        build(pairs_path, tmp_path / "dataset", tokenizer)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_build_dataset_is_made_again_only_if_something_changed(
    dataset, pairs_path, tmp_path, tiny_encoder
):
    folder = tmp_path / "dataset"
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)

    def inode(**settings: Any) -> int:
        build(pairs_path, folder, tokenizer, **settings)
        return folder.stat().st_ino

    first = inode()
    assert inode() == first
    assert inode(max_length=11) != first
    second = inode()
    assert inode(lowercase=False) != second
    third = inode()
    tokenizer.add_tokens(["attack"])
    tokenizer.add_tokens(["pain of"])
    fourth = inode()
    assert fourth != third
    with open(pairs_path, "a", encoding="utf8") as file:
        file.write("C9\ta\tb\n")
    assert inode() != fourth
    assert len(open_dataset(folder).pairs) == len(LINES) + 1


def test_tokenizer_digest_depends_on_the_tokenizer_not_on_its_last_call(tiny_encoder):
    one, other = (AutoTokenizer.from_pretrained(tiny_encoder) for _ in range(2))
    one("fever", truncation=True, max_length=5, padding="max_length")
    assert tokenizer_digest(one) == tokenizer_digest(other)
    slow = AutoTokenizer.from_pretrained(tiny_encoder, use_fast=False)
    cased = AutoTokenizer.from_pretrained(
        tiny_encoder, use_fast=False, do_lower_case=False
    )
    assert len({tokenizer_digest(each) for each in (one, slow, cased)}) == 3


@pytest.mark.usefixtures("dataset")
def test_dataset_that_was_cut_or_is_something_else_is_an_error(
    pairs_path, tmp_path, tokenizer
):
    for name in ("pairs", "names"):
        path = tmp_path / "dataset" / f"{name}.npy"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(SapbertError, match=r"E560.*Remove the folder"):
            open_dataset(tmp_path / "dataset")
        path.unlink()
        with pytest.raises(SapbertError, match=r"E560.*missing"):
            open_dataset(tmp_path / "dataset")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "meta.json").write_text('{"format": 1}', "utf8")
    with pytest.raises(SapbertError, match="E560.*something else"):
        build(pairs_path, tmp_path / "mine", tokenizer)
    pairs_path.write_text("")
    with pytest.raises(SapbertError, match="E106"):
        build(pairs_path, tmp_path / "empty", tokenizer)
    assert not (tmp_path / "empty").exists()
