"""How far a link can be trusted: one answer for all who show or write links."""

from typing import Any

import numpy as np
import pytest

from spacy_sapbert.linking.certainty import judge_link
from spacy_sapbert.linking.probability import list_beside, log_odds, score_probability
from tests.building import make_calibration


def candidates(*scores: float | None, **first: Any) -> list[dict[str, Any]]:
    found = [
        {
            "cui": f"C{place}",
            "name": "Fever",
            "alias": "Pyrexia",
            "score": score,
            "probability": None,
            "tie": None,
        }
        for place, score in enumerate(scores)
    ]
    found[0].update(first)
    return found


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        # a unique preferred name, however low its probability
        ("Fevers", candidates(1.0, 0.9, probability=0.6), "sure"),
        # an equal score is a tie before any probability, and before the name
        ("fever", candidates(1.0, 1.0, probability=0.99), "tied"),
        ("x", candidates(0.9, tie="id", probability=0.99), "tied"),
        # unless the label or annotations say which is meant
        ("x", candidates(0.9, 0.9, tie="annotated", probability=0.9), "sure"),
        ("x", candidates(0.9, 0.9, tie="label", probability=0.5), "unsure"),
        ("x", candidates(0.9, 0.8, probability=0.8), "sure"),
        ("x", candidates(0.9, 0.8, probability=0.79), "unsure"),
        # without probabilities, by the distance of the next concept
        ("x", candidates(0.9, 0.8), "sure"),
        ("x", candidates(0.9, 0.81), "unsure"),
        ("x", candidates(0.9), "unsure"),  # with `k = 1` no other is known
        ("x", candidates(1.0), "sure"),
    ],
)
def test_judge_link_looks_at_ties_then_names_then_probabilities(text, found, expected):
    assert judge_link(text, "C0", found) == expected
    assert judge_link(text, None, found) == "none"


def test_judge_link_of_a_mention_that_was_cut_needs_a_probability():
    assert judge_link("x", "C0", candidates(0.9), note="truncated") == "unsure"
    found = candidates(0.9, probability=0.9)
    assert judge_link("x", "C0", found, note="truncated") == "sure"


@pytest.mark.parametrize(
    ("scores", "expected"),
    [((0.9, 0.8), "sure"), ((0.8, 0.9), "unsure"), ((None, 0.9), "unsure")],
)
def test_judge_link_of_what_a_file_says_looks_for_a_nearer_concept(scores, expected):
    found = candidates(*scores, probability=0.1)
    assert judge_link("x", "C0", found, proposed=True) == expected


def test_score_probability_is_the_logistic_of_the_score():
    logistic = make_calibration().logistic
    assert (logistic.slope, logistic.intercept) == (10.0, -7.0)
    assert score_probability(logistic, 0.7) == 0.5
    assert score_probability(logistic, 1.0) == round(1 / (1 + np.exp(-3)), 6)
    assert score_probability(logistic, -1.0) == 0.0


def test_log_odds_of_certainty_are_finite_and_lists_go_by_them():
    most = np.log(0.999999 / 0.000001)
    assert [log_odds(p) for p in (0, 0.5, 1)] == pytest.approx([-most, 0, most])
    assert list_beside(0.5) == [0.2689, 0.5, 0.7311, 0.8808]
