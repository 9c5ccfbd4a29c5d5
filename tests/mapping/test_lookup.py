"""Which reading of a term counts, and what a person has to do."""

from typing import Any

import pytest

from spacy_sapbert.linking.link import Linked
from spacy_sapbert.mapping.lookup import Found, describe, quality


def make_link(alias: str, score: float, cui: str | None = "X:1") -> Linked:
    candidate: Any = {"cui": "X:1", "alias": alias, "score": score}
    return Linked([candidate], None, cui)


@pytest.mark.parametrize(
    ("term", "found", "best"),
    [
        (
            "left heart failure",
            {
                "left heart failure": ("Left-sided heart failure", 0.95),
                "heart failure": ("Heart failure", 1.0),
            },
            "left heart failure",
        ),
        (
            "left knee pain",
            {"left knee pain": ("Left knee", 0.9), "knee pain": ("Knee pain", 1.0)},
            "knee pain",
        ),
        (
            "left knee pain",
            {"left knee pain": ("Pain in left knee", 0.9), "knee pain": ("Knee", 0.8)},
            "left knee pain",
        ),
        (
            "Asthma NOS",
            {"Asthma NOS": ("Asthma, nos", 0.9), "Asthma": ("Asthma", 1.0)},
            "Asthma",
        ),
    ],
)
def test_quality_of_readings(
    term: str, found: dict[str, tuple[str, float]], best: str
) -> None:
    sided = "left" in term
    links = {text: make_link(*each) for text, each in found.items()}
    assert max(links, key=lambda text: quality(text, links[text], sided)) == best


def test_quality_of_a_reading_without_candidates_is_the_lowest() -> None:
    assert quality("x", Linked([], "empty", None), False) == (0, -2.0)


@pytest.mark.parametrize(
    ("link", "sure", "status", "cui", "note"),
    [
        (make_link("Fever", 1.0), False, "exact", "X:1", None),
        (make_link("Pyrexia", 0.9), True, "linked", "X:1", None),
        (make_link("Pyrexia", 0.9), False, "review", None, "no_threshold"),
        (make_link("Pyrexia", 0.9, None), True, "review", None, None),
        (Linked([], "empty", None), True, "none", None, "empty"),
    ],
)
def test_describe_needs_a_threshold_for_what_is_no_name(
    link: Linked, sure: bool, status: str, cui: str | None, note: str | None
) -> None:
    expected = Found("fever", status, cui, note, link.candidates)
    assert describe("fever", link, sure) == expected
