from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.hf import load_encoder
from training.batches import (
    pad_names,
    read_pairs,
    shuffled_batches,
    split_by_length,
    tokenize_names,
)


def test_read_pairs_numbers_concepts_and_names(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("C1\tFever\tPyrexia\nC2\tMI\tfever\n", "utf8")
    pairs = read_pairs(path)
    assert pairs.names == ["fever", "pyrexia", "mi"]
    assert pairs.labels.tolist() == [0, 1]
    assert pairs.ends.tolist() == [[0, 1], [2, 0]]
    assert read_pairs(path, lowercase=False).names == [
        "Fever",
        "Pyrexia",
        "MI",
        "fever",
    ]


def test_read_pairs_names_the_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("C1\ta\tb\nC1\ta\n", "utf8")
    with pytest.raises(SapbertError, match=r"pairs.tsv:2: .* 2 fields"):
        read_pairs(path)


def test_read_pairs_refuses_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").touch()
    with pytest.raises(SapbertError, match="empty"):
        read_pairs(tmp_path / "pairs.tsv")


def test_tokens_equal_those_of_the_tokenizer(tiny_encoder: Path) -> None:
    tokenizer, _ = load_encoder(str(tiny_encoder))
    names = ["heart attack", "fever", "x" * 80, "", "a b c d e f g"]
    tokens = tokenize_names(tokenizer, names, max_length=10)
    rows = np.array([3, 0, 2, 4, 1])
    ids, mask = pad_names(tokens, rows)
    expected = tokenizer(
        [names[row] for row in rows],
        truncation=True,
        max_length=10,
        padding="longest",
        return_tensors="np",
    )
    assert np.array_equal(ids, expected["input_ids"])
    assert np.array_equal(mask, expected["attention_mask"])


@given(st.lists(st.integers(3, 25), min_size=1, max_size=60), st.integers(1, 9))
def test_split_by_length_gives_every_row_once_in_order(
    lengths: list, chunks: int
) -> None:
    parts = split_by_length(np.array(lengths), chunks)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    assert all(len(part) for part in parts)
    longest = [max(lengths[row] for row in part) for part in parts]
    assert longest == sorted(longest)


def test_shuffled_batches_give_each_pair_once_and_depend_on_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list:
        batches = shuffled_batches(100, size=32, seed=seed, epoch=epoch)
        return [batch.tolist() for batch in batches]

    first = order(1, 0)
    assert [len(batch) for batch in first] == [32, 32, 32, 4]
    assert sorted(sum(first, [])) == list(range(100))
    assert first == order(1, 0)
    assert first != order(2, 0)
    assert first != order(1, 1)
