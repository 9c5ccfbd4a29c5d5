import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from training.data.prefetch import prefetch
from training.data.shuffling import mix_bits, permute, shuffled_batches
from training.data.tokenized_pairs import build_corpus
from training.trainer.batches import pad_names


def test_pad_names_equals_the_padding_of_the_tokenizer(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny_encoder)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(f"C1\theart attack\t{'x' * 60}\nC2\tacute pain\t\n", "utf8")
    corpus = build_corpus(
        pairs, tmp_path / "corpus", tokenizer, max_length=12, lowercase=True
    )
    names = np.array([1, 3, 0, 1])
    expected = tokenizer(
        ["x" * 60, "", "heart attack", "x" * 60],
        truncation=True,
        max_length=12,
        padding="longest",
        return_tensors="np",
    )
    ids, mask = pad_names(corpus, names)
    assert ids.dtype == mask.dtype == np.int64
    assert np.array_equal(ids, expected["input_ids"])
    assert np.array_equal(mask, expected["attention_mask"])
    wide, wide_mask = pad_names(corpus, names, multiple_of=8)
    assert wide.shape == (4, 16)
    assert np.array_equal(wide[:, :12], ids)
    assert (wide[:, 12:] == tokenizer.pad_token_id).all()
    assert np.array_equal(wide_mask.sum(axis=1), corpus.lengths(names))


@given(st.integers(1, 3000), st.integers(0, 1 << 40), st.integers(0, 1000))
def test_permute_has_every_number_once(total: int, seed: int, epoch: int) -> None:
    order = permute(np.arange(total), total, seed=seed, epoch=epoch)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(total))


@given(st.integers(1, 1 << 40), st.integers(0, 9))
def test_permute_of_a_place_does_not_depend_on_others(total: int, seed: int) -> None:
    places = np.unique(np.array([0, total // 3, total - 1]))
    together = permute(places, total, seed=seed, epoch=0)
    alone = [
        permute(places[i : i + 1], total, seed=seed, epoch=0)[0]
        for i in range(len(places))
    ]
    assert together.tolist() == alone
    assert ((together >= 0) & (together < total)).all()


def test_mix_bits_are_those_of_splitmix() -> None:
    # the first number of SplitMix64 that is seeded with 0 is the mix of its increment
    assert mix_bits(np.array([0x9E3779B97F4A7C15], dtype=np.uint64))[0] == np.uint64(
        0xE220A8397B1DCDAF
    )


def test_permute_shows_no_structure() -> None:
    total = 10_000
    orders = [
        permute(np.arange(total), total, seed=seed, epoch=epoch)
        for seed, epoch in ((0, 0), (0, 1), (1, 0))
    ]
    for order in orders:
        assert abs(np.corrcoef(order, np.arange(total))[0, 1]) < 0.04
        assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.04
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(orders[one], orders[other])[0, 1]) < 0.04
        # two shuffles share one place by chance
        assert (orders[one] == orders[other]).sum() < 10


def test_shuffled_batches_have_each_pair_once_and_depend_on_seed_and_epoch() -> None:
    def flat(seed: int, epoch: int) -> list[int]:
        batches = list(shuffled_batches(103, size=10, seed=seed, epoch=epoch))
        assert [len(batch) for batch in batches] == [10] * 10 + [3]
        return np.concatenate(batches).tolist()

    assert sorted(flat(0, 0)) == list(range(103))
    assert flat(0, 0) == flat(0, 0)
    assert flat(0, 0) != flat(0, 1)
    assert flat(0, 0) != flat(1, 0)


def test_shuffled_batches_start_after_the_skipped_ones() -> None:
    everything = list(shuffled_batches(103, size=10, seed=3, epoch=2))
    for start in (0, 1, 10, 11):
        rest = list(shuffled_batches(103, size=10, seed=3, epoch=2, start=start))
        assert [batch.tolist() for batch in rest] == [
            batch.tolist() for batch in everything[start:]
        ]


@pytest.mark.parametrize("ahead", [0, 1, 4, 100])
def test_prefetch_yields_the_items_in_order(ahead: int) -> None:
    assert list(prefetch(range(50), ahead)) == list(range(50))
    assert list(prefetch([], ahead)) == []


def wait_until(reached: Any) -> bool:
    deadline = time.monotonic() + 20
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.002)
    return bool(reached())


def test_prefetch_works_ahead_but_not_farther() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    ready = prefetch(items(), 3)
    assert next(ready) == 0
    assert wait_until(lambda: len(made) == 4)
    time.sleep(0.05)
    assert len(made) == 4
    ready.close()


def test_prefetch_raises_an_error_after_the_items() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("gone")

    ready = prefetch(items())
    assert [next(ready), next(ready)] == [1, 2]
    with pytest.raises(OSError, match="gone"):
        next(ready)


def test_prefetch_ends_its_thread_when_closed() -> None:
    def is_running() -> bool:
        return any("prefetch" in each.name for each in threading.enumerate())

    ready = prefetch(iter(range(1000)), 2)
    next(ready)
    assert is_running()
    ready.close()
    assert not is_running()
