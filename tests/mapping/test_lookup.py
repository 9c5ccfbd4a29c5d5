"""Which reading of a term counts, and what a person has to do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.linking.options import LinkOptions
from spacy_sapbert.mapping.lookup import Found, Query, describe, map_queries, quality
from spacy_sapbert.mapping.terms import list_readings
from spacy_sapbert.vocabularies.concepts import Concept

CONCEPTS = [
    Concept("C1", ["Heart attack", "MI"]),
    Concept("C5", ["Dolor", "Tumor"], languages={"SPA": [0], "ENG": [1]}),
    Concept("C6", ["None", "Sodium", "Na"]),
    Concept("C7", ["Asthma (disorder)", "Bronchial (finding)"]),
    Concept("C8", ["Bronchial"]),
]


@pytest.fixture(scope="module")
def kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("names"), CONCEPTS, backend="exact"))


def look_up(kb: KnowledgeBase, term: str) -> Found:
    (found,) = map_queries(kb, [Query(term)], LinkOptions(k=2, threshold=-1))
    return found


@pytest.mark.parametrize(
    ("term", "cui"),
    [
        ('"Heart attack (disorder)"', "C1"),
        ("H/O heart attacks (I21.9)", "C1"),
        ("dolores", "C5"),
        ("Na", "C6"),
        ("Asthma (disorder)", "C7"),
        ("bronchial", "C8"),
    ],
)
def test_map_queries_finds_names_in_any_way_to_write_them(kb, term, cui):
    found = look_up(kb, term)
    assert (found.status, found.cui) == ("exact", cui)


def test_map_queries_in_languages_of_a_term_or_of_all(kb):
    filter = Filter(languages=["SPA"])
    for language, status in ((("ENG",), "review"), ((), "exact")):
        query = Query("Dolor", languages=language)
        (found,) = map_queries(kb, [query], LinkOptions(filter=filter))
        assert found.status == status


@pytest.mark.parametrize(
    "term", ["N/A", "None", "-", "not known", "unknown (R69)", "k. A."]
)
def test_map_queries_what_is_no_term_has_no_link(kb, term):
    assert look_up(kb, term) == Found("", "none", None, "empty", [])


def make_link(alias: str, score: float, cui: str | None = "X:1") -> Linked:
    first: Any = {"cui": "X:1", "alias": alias, "score": score}
    other: Any = {"cui": "X:2", "alias": "Cough", "score": 0.5}
    return Linked([first, other], None, cui)


def test_quality_of_readings():
    """A side is part of the meaning: a name that has it is better, and else none."""
    heart = quality(
        "left heart failure", make_link("Left-sided heart failure", 0.95), False, True
    )
    assert heart > quality("heart failure", make_link("Heart failure", 1.0), True, True)
    knee = quality("left knee pain", make_link("Left knee", 0.9), False, True)
    assert knee < quality("knee pain", make_link("Knee pain", 1.0), True, True)
    assert quality("x", Linked([], "empty", None), False, False) == (0, -2.0)


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
def test_describe_needs_a_threshold_for_what_is_no_name(link, sure, status, cui, note):
    certainty = "sure" if cui else "none"
    expected = Found("fever", status, cui, note, link.candidates, certainty)
    assert describe("fever", link, status == "exact", sure) == expected


@pytest.mark.parametrize(
    ("term", "reading"),
    [
        ("Asthma (J45.9)", "Asthma"),
        ("J45.9 - Asthma", "Asthma"),
        ("Diabetes 250.00", "Diabetes"),
        ("195967001 | Asthma", "Asthma"),
        ("Asthma, NOS", "Asthma"),
        ("H/O asthma", "asthma"),
        ("s/p stroke", "stroke"),
        ("Z.n. Schlaganfall", "Schlaganfall"),
        ("H/O Asthma, NOS (J45.9)", "Asthma"),
        ("fracture of femur, right", "fracture of femur"),
        ("left knee pain", "knee pain"),
        ("Gonarthrose li.", "Gonarthrose"),
        ("MYOCARDIAL INFARCTION", "myocardial infarction"),
    ],
)
def test_list_readings_has_the_term_without_its_trappings(term, reading):
    readings = list_readings(term)
    assert readings[0] == term
    assert reading in readings


@pytest.mark.parametrize(
    "term", ["type 2 diabetes", "vitamin B12", "HbA1c", "unknown primary", "Na"]
)
def test_list_readings_leaves_what_belongs_to_a_term(term):
    assert list_readings(term) == [term]


@given(st.text(max_size=80))
def test_list_readings_are_few_and_distinct(term):
    readings = list_readings(term)
    assert len(readings) == len({*readings}) <= 11
    assert all(any(map(str.isalnum, reading)) for reading in readings)
