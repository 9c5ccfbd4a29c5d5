from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.evaluation.accuracy import TIES
from spacy_sapbert.evaluation.paired_tests import (
    Chance,
    bootstrap_interval,
    compare_outcomes,
    mcnemar_p,
    randomisation_p,
)

FEW = Chance(samples=500)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),  # 2 · 1/2
        (5, 0, 0.0625),  # 2 · 1/32
        (1, 5, 0.21875),  # 2 · (1 + 6) / 64
        (2, 8, 0.109375),  # 2 · (1 + 10 + 45) / 1024
        (4, 4, 1.0),
        (0, 2000, 0.0),
    ],
)
def test_mcnemar_p_is_the_binomial_one(
    first: int, second: int, expected: float
) -> None:
    assert mcnemar_p(first, second) == pytest.approx(expected, abs=1e-300)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_p_is_symmetric_and_sums_the_tail(first: int, second: int) -> None:
    total = first + second
    tail = sum(comb(total, i) for i in range(min(first, second) + 1)) / 2**total
    assert mcnemar_p(first, second) == pytest.approx(min(1, 2 * tail))
    assert mcnemar_p(first, second) == mcnemar_p(second, first)


def test_mcnemar_p_of_many_mentions_is_soon_there() -> None:
    assert mcnemar_p(9_000, 9_300) == pytest.approx(0.027, abs=0.001)


def test_randomisation_p_comes_near_to_all_signs() -> None:
    differences = np.array([1.0, 0.5, 0.5, -1 / 3, 0.0])
    signs = np.array(list(product((1, -1), repeat=5)))
    exact = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9).mean()
    assert randomisation_p(differences) == pytest.approx(exact, abs=0.02)
    assert randomisation_p(np.zeros(3)) == 1


def test_bootstrap_interval_is_that_of_drawn_mentions() -> None:
    rng = np.random.default_rng(0)
    differences = np.repeat([1.0, 0.0, -1.0, 0.5], [30, 120, 20, 30])
    drawn = rng.choice(differences, size=(20_000, 200)).mean(axis=1)
    expected = np.quantile(drawn, [0.05, 0.95])
    chance = Chance(samples=20_000, confidence=0.9)
    assert bootstrap_interval(differences, chance) == pytest.approx(expected, abs=0.006)


def test_compare_outcomes_of_the_same_is_no_difference() -> None:
    outcomes = np.array([[1, 1, 1], [1, 0.5, 0], [0, 0, 0]], dtype=float)
    for found in compare_outcomes(outcomes, outcomes, FEW).values():
        assert (found["difference"], found["p"]) == (0, 1)
        assert found["interval"] == [0, 0]


def test_compare_outcomes_counts_each_way_of_ties() -> None:
    first = np.array([[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 0.5, 0]])
    second = np.array([[1, 1, 1], [1, 1, 1], [1, 0.5, 0], [0, 0, 0]])
    found = compare_outcomes(first, second, FEW)
    lenient, expected, strict = (found[tie] for tie in TIES)
    assert (lenient["first"], lenient["second"]) == (0.5, 0.75)
    assert (lenient["only_first"], lenient["only_second"]) == (1, 2)
    assert (strict["only_first"], strict["only_second"]) == (0, 1)
    assert (lenient["p"], strict["p"]) == (1, 1)
    assert expected["difference"] == pytest.approx(0.25)
    assert expected["test"] == "randomisation"


@given(st.lists(st.tuples(*[st.sampled_from([0, 1 / 3, 0.5, 1])] * 2), min_size=1))
def test_compare_outcomes_is_symmetric(pairs: list) -> None:
    def outcomes(values: list) -> np.ndarray:
        array = np.array(values)
        return np.stack([np.ceil(array), array, np.floor(array)], axis=1)

    one, other = (outcomes(values) for values in zip(*pairs, strict=True))
    found = compare_outcomes(one, other, Chance(samples=50))
    swapped = compare_outcomes(other, one, Chance(samples=50))
    for tie in TIES:
        assert found[tie]["p"] == swapped[tie]["p"]
        assert found[tie]["difference"] == -swapped[tie]["difference"]
        assert found[tie]["only_first"] == swapped[tie]["only_second"]


def test_compare_outcomes_is_the_same_each_time() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.integers(0, 2, size=(2, 50, 3)).astype(float)
    assert compare_outcomes(one, other, FEW) == compare_outcomes(one, other, FEW)
