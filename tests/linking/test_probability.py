from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.linking.probability import score_probability


class Logistic(NamedTuple):
    slope: float
    intercept: float


def test_score_probability_is_the_logistic_of_the_score() -> None:
    logistic = Logistic(10.0, -7.0)
    assert score_probability(logistic, 0.7) == 0.5
    assert score_probability(logistic, 1.0) == round(1 / (1 + np.exp(-3)), 6)
    assert score_probability(logistic, -1.0) == 0.0


@given(st.floats(-1, 1), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_score_probability_is_between_0_and_1(
    score: float, slope: float, intercept: float
) -> None:
    assert 0 <= score_probability(Logistic(slope, intercept), score) <= 1
