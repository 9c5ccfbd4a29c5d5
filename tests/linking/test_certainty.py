"""How far a link can be trusted: one answer for all who show or write links."""

from typing import Any

import numpy as np
import pytest

from spacy_sapbert.linking.certainty import judge_link
from spacy_sapbert.linking.probability import Correction, log_odds


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
        # of a file that has no probability, nobody knows, whatever the score
        ("x", candidates(1.0, 0.1), "unsure"),
        ("Fever", candidates(1.0, 0.1), "sure"),
    ],
)
def test_judge_link_looks_at_ties_then_names_then_probabilities(text, found, expected):
    assert judge_link(text, "C0", found) == expected
    assert judge_link(text, None, found) == "none"
    # not linked, but one of them is meant
    assert judge_link(text, None, found, note="ambiguous") == "tied"


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        *(((0.9, 0.8), "sure"), ((0.9, 0.9), "sure"), ((0.8, 0.9), "unsure")),
        *(((None, 0.9), "unsure"), ((None, None), "sure"), ((-0.5, 0.0), "unsure")),
    ],
)
def test_judge_link_of_what_a_file_says_looks_for_a_nearer_concept(scores, expected):
    found = candidates(*scores, probability=0.1)
    assert judge_link("x", "C0", found, proposed=True) == expected


def test_correction_by_hand():
    correction = Correction(slope=2.0, intercept=-1.0)
    assert correction.correct(0.5) == round(1 / (1 + np.e), 6)
    odds = np.log(0.8 / 0.2)
    assert correction.correct(0.8) == round(1 / (1 + np.exp(1 - 2 * odds)), 6)
    # What is excluded is never likely.
    assert Correction(slope=1.0, intercept=30.0).correct(0.0) == 0
    assert Correction(slope=1.0, intercept=0.0).correct(1.0) == 0.999999


def test_correction_after_another_does_what_both_do():
    first = Correction(slope=0.5, intercept=1.0)
    second = Correction(slope=2.0, intercept=-0.25)
    both = second.after(first)
    assert both == Correction(slope=1.0, intercept=1.75)
    for probability in (0.0, 0.1, 0.5, 0.9):
        expected = second.correct(first.correct(probability))
        assert both.correct(probability) == pytest.approx(expected, abs=1e-5)
    assert first.after(None) == first


def test_log_odds_of_certainty_are_finite():
    most = np.log(0.999999 / 0.000001)
    assert [log_odds(p) for p in (0, 0.5, 1)] == pytest.approx([-most, 0, most])
