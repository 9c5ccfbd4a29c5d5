import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.mapping.terms import list_readings, split_terms


@pytest.mark.parametrize(
    ("term", "reading"),
    [
        ("Asthma (J45.9)", "Asthma"),
        ("Asthma [ICD10: J45.909]", "Asthma"),
        ("J45.9 - Asthma", "Asthma"),
        ("J45 Asthma", "Asthma"),
        ("Asthma J45.9", "Asthma"),
        ("Diabetes 250.00", "Diabetes"),
        ("195967001 | Asthma", "Asthma"),
        ("1. Asthma", "Asthma"),
        ("- Asthma", "Asthma"),
        ("Asthma (2)", "Asthma"),
        ("Asthma 1)", "Asthma"),
        ("Asthma**", "Asthma"),
        ("Asthma, NOS", "Asthma"),
        ("Asthma (unspecified)", "Asthma"),
        ("Asthma n.e.c.", "Asthma"),
        ("H/O asthma", "asthma"),
        ("history of asthma", "asthma"),
        ("s/p stroke", "stroke"),
        ("?asthma", "asthma"),
        ("Z.n. Schlaganfall", "Schlaganfall"),
        ("H/O Asthma, NOS (J45.9)", "Asthma"),
        ("fracture of femur, right", "fracture of femur"),
        ("left knee pain", "knee pain"),
        ("Gonarthrose li.", "Gonarthrose"),
        ("bilateral cataract", "cataract"),
        ("MYOCARDIAL INFARCTION", "myocardial infarction"),
    ],
)
def test_list_readings_has_the_term_without_its_trappings(term, reading):
    readings = list_readings(term)
    assert readings[0] == term
    assert reading in readings


@pytest.mark.parametrize(
    "term",
    [
        "type 2 diabetes",
        "factor 8",
        "COPD",
        "vitamin B12",
        "trisomy 21",
        "HbA1c",
        "asthma",
        "unknown primary",
        "Na",
    ],
)
def test_list_readings_leaves_what_belongs_to_a_term(term):
    assert list_readings(term) == [term]


@pytest.mark.parametrize("term", ["", "  ", "?", "--", "()"])
def test_list_readings_without_letters_is_empty(term):
    assert list_readings(term) == []


@pytest.mark.parametrize("term", ["N/A", "NA", "None", "unknown (R69)", "h/o unknown"])
def test_list_readings_of_what_is_no_term_is_empty(term):
    assert list_readings(term) == []


@given(st.text(max_size=80))
def test_list_readings_are_few_and_distinct(term):
    readings = list_readings(term)
    assert len(readings) == len({*readings}) <= 11
    assert all(any(map(str.isalnum, reading)) for reading in readings)


def test_split_terms():
    assert list(split_terms(" asthma; ;fever ;", ";")) == ["asthma", "fever"]
    assert list(split_terms("asthma; fever", None)) == ["asthma; fever"]
    assert list(split_terms("  ", None)) == []


def test_list_readings_keeps_nos_before_it_drops_it() -> None:
    assert list_readings("H/O Asthma, NOS (J45.9)") == [
        "H/O Asthma, NOS (J45.9)",
        "H/O Asthma, NOS",
        "Asthma, NOS",
        "H/O Asthma",
        "Asthma",
    ]
