import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.calibration import (
    Logistic,
    calibrate_answers,
    compare_probabilities,
    compute_probabilities,
    cross_validate,
    fit_logistic,
    measure_calibration,
)
from spacy_sapbert.evaluation.thresholds import Criterion, Judged, make_judged
from spacy_sapbert.linking.probability import score_probability


def draw_judged(mentions: int, *, seed: int = 0, slope: float = 12) -> Judged:
    """Answers of which 1 / (1 + exp(−slope · (cosine − 0.7))) are right."""
    chance = np.random.default_rng(seed)
    scores = chance.uniform(0.4, 1, mentions).round(6)
    right = chance.random(mentions) < 1 / (1 + np.exp(-slope * (scores - 0.7)))
    return make_judged(
        scores.tolist(),
        right.tolist(),
        (right | (chance.random(mentions) < 0.9)).tolist(),
        (np.arange(mentions) // 5).tolist(),
    )


@given(
    st.floats(-1, 1),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.floats(-1e6, 1e6, allow_nan=False),
)
def test_probability_is_one_whatever_the_numbers(
    score: float, slope: float, intercept: float
) -> None:
    logistic = Logistic(slope, intercept)
    one = score_probability({"logistic": logistic._asdict()}, score)
    assert 0 <= one <= 1
    many = compute_probabilities(logistic, np.array([score]))
    assert one == pytest.approx(float(many[0]), abs=2e-6)


@pytest.mark.parametrize("mentions", [60, 2000])
def test_logistic_is_that_of_scikit_learn(mentions: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="no scikit-learn")
    judged = draw_judged(mentions)
    hits, misses = judged.right.sum(), (~judged.right).sum()
    # each mention as a right and a wrong one, weighted by Platt's targets
    targets = np.where(judged.right, (hits + 1) / (hits + 2), 1 / (misses + 2))
    model = linear_model.LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000)
    model.fit(
        np.concatenate([judged.scores, judged.scores])[:, None],
        np.repeat([1, 0], mentions),
        sample_weight=np.concatenate([targets, 1 - targets]),
    )
    slope, intercept = fit_logistic(judged.scores, judged.right)
    assert slope == pytest.approx(model.coef_[0, 0], rel=1e-4)
    assert intercept == pytest.approx(model.intercept_[0], rel=1e-4)


def test_logistic_is_finite_where_a_cosine_parts_right_from_wrong() -> None:
    scores = np.array([0.5] * 30 + [0.9] * 30)
    logistic = fit_logistic(scores, scores > 0.7)
    low, high = compute_probabilities(logistic, np.array([0.5, 0.9]))
    # two free numbers and two cosines: Platt's targets are met
    assert low == pytest.approx(1 / 32)
    assert high == pytest.approx(31 / 32)


def test_probabilities_come_from_other_documents() -> None:
    judged = draw_judged(100)
    probabilities = cross_validate(judged, folds=4)
    assert np.isfinite(probabilities).all()
    # turning the answers to a document around changes nothing for that document
    own = judged.groups == 3
    turned = judged._replace(right=judged.right ^ own)
    again = cross_validate(turned, folds=4)
    assert np.array_equal(again[own], probabilities[own])
    assert not np.array_equal(again, probabilities)


def test_one_document_says_nothing_of_another() -> None:
    judged = draw_judged(60)._replace(groups=np.zeros(60, dtype=np.int64))
    assert np.isnan(cross_validate(judged)).all()
    assert compare_probabilities(cross_validate(judged), judged.right) == ([], None)


def test_calibration_error_by_hand() -> None:
    probabilities = np.array([0.05, 0.05, 0.85, 0.85, 0.85, 1.0, np.nan])
    right = np.array([False, True, True, True, False, True, True])
    table, error = compare_probabilities(probabilities, right)
    assert table == [
        {"mentions": 2, "probability": 0.05, "right": 0.5},
        {"mentions": 3, "probability": 0.85, "right": round(2 / 3, 6)},
        {"mentions": 1, "probability": 1.0, "right": 1.0},
    ]
    assert error == pytest.approx((2 * 0.45 + 3 * (0.85 - 2 / 3)) / 6, abs=1e-6)


def test_bins_may_be_those_of_other_probabilities() -> None:
    probabilities, right = np.array([0.89, 0.91]), np.array([True, False])
    together = np.array([0.9, 0.9])
    assert len(compare_probabilities(probabilities, right)[0]) == 2
    assert len(compare_probabilities(probabilities, right, binned_by=together)[0]) == 1


@pytest.mark.parametrize(
    "criterion",
    [Criterion("f1"), Criterion("accuracy"), Criterion("precision", 0.9)],
    ids=lambda criterion: criterion.name,
)
def test_a_calibration_holds_what_it_says(criterion: Criterion) -> None:
    judged = draw_judged(1000)
    found = calibrate_answers(judged, criterion, samples=100)
    linked = judged.scores >= found["threshold"]
    assert found["linked"] == linked.sum()
    assert found["precision"] == pytest.approx(judged.right[linked].mean(), abs=1e-6)
    hits = (linked & judged.right).sum()
    assert found["recall"] == pytest.approx(hits / judged.known.sum(), abs=1e-6)
    for name in ("threshold", "precision", "recall", "f1", "accuracy"):
        low, high = found["interval"][name]
        assert low <= found[name] <= high
        assert low < high
    assert len(found["curve"]) == 50
    assert found["calibration_error"] < 0.06
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    if criterion.level:
        assert found["precision"] >= criterion.level


def test_a_calibration_finds_the_probability_that_answers_were_drawn_by() -> None:
    found = calibrate_answers(draw_judged(20_000), Criterion("f1"), samples=2)
    assert found["logistic"]["slope"] == pytest.approx(12, rel=0.05)
    assert score_probability(found, 0.7) == pytest.approx(0.5, abs=0.02)
    assert found["calibration_error"] < 0.01


def test_a_calibration_is_checked_on_other_mentions() -> None:
    found = calibrate_answers(draw_judged(2000), Criterion("f1"), samples=2)
    other = draw_judged(1000, seed=1)
    checked = measure_calibration(other, found)
    linked = other.scores >= found["threshold"]
    assert checked["threshold"] == found["threshold"]
    assert checked["logistic"] == found["logistic"]
    assert checked["linked"] == linked.sum()
    assert checked["precision"] == pytest.approx(other.right[linked].mean(), abs=1e-6)
    assert 0 < checked["calibration_error"] < 0.06
    # where a cosine says more than it did, the probability knows too little
    easier = draw_judged(1000, seed=1, slope=60)
    assert measure_calibration(easier, found)["calibration_error"] > 0.08


def test_a_threshold_above_every_cosine_has_no_precision() -> None:
    calibration = {"threshold": 0.99, "logistic": {"slope": 12, "intercept": -8.4}}
    judged = draw_judged(200)
    judged = judged._replace(scores=judged.scores - 0.1)
    checked = measure_calibration(judged, calibration)
    assert checked["precision"] is None
    assert checked["recall"] == checked["linked"] == 0


def make_alike(mentions: int, *, right: list[bool]) -> Judged:
    scores = [0.5 + n / 1000 for n in range(mentions)]
    return make_judged(scores, right, [True] * mentions, list(range(mentions)))


@pytest.mark.parametrize(
    ("judged", "options", "code"),
    [
        (draw_judged(49), {}, "E582.*at least 50.*49"),
        (draw_judged(60), {"fewest": 61}, "E582"),
        (make_alike(60, right=[True] * 60), {}, "E583.*60 mentions.*all are right"),
        (make_alike(60, right=[False] * 60), {}, "E583.*all are wrong"),
        (make_alike(60, right=[True] * 30 + [False] * 30), {}, "E584"),
    ],
)
def test_answers_that_say_nothing_are_refused(
    judged: Judged, options: dict[str, Any], code: str
) -> None:
    with pytest.raises(SapbertError, match=code):
        calibrate_answers(judged, Criterion("f1"), **options)


def test_mentions_without_an_answer_are_not_enough() -> None:
    judged = make_judged([None] * 60, [False] * 60, [True] * 60, list(range(60)))
    with pytest.raises(SapbertError, match=r"E582.*got 0"):
        calibrate_answers(judged, Criterion("f1"))


def test_equal_cosines_are_refused() -> None:
    right = [n % 3 > 0 for n in range(60)]
    judged = make_judged([0.7] * 60, right, [True] * 60, list(range(60)))
    with pytest.raises(SapbertError, match="E584"):
        calibrate_answers(judged, Criterion("f1"))


def test_a_precision_that_is_not_reached_is_an_error_with_the_highest() -> None:
    right = [n % 4 > 0 for n in range(60)]
    scores = [0.5 + 0.1 * hit for hit in right]
    scores[0] = 0.6  # one of the wrong ones is among the highest
    judged = make_judged(scores, right, [True] * 60, list(range(60)))
    with pytest.raises(SapbertError, match=r"E585.*of 0\.99.*is 0\.9783"):
        calibrate_answers(judged, Criterion("precision", 0.99))
