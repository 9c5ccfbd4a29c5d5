import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.linking.surface_forms import (
    is_abbreviation,
    means_name,
    name_form,
    singular_forms,
    split_name,
)

TEXTS = st.text(st.characters(codec=None), max_size=60)  # lone surrogates too


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Heart  Attack", "heart attack"),
        ("heart\nattack", "heart attack"),
        ("beta-2 agonist", "beta - 2 agonist"),
        ("Crohn's disease", "crohn ' s disease"),
        ("Diabetes (type 2)", "diabetes ( type 2 )"),
        ("", ""),
        (" \t\u2028 ", ""),
        ("…!", "… !"),
        ("NUL\0here", "nul \0 here"),
        ("half \ud800 pair", "half ? pair"),
        ("ΑΣ", "ας"),
    ],
)
def test_name_form_by_hand(name, form):
    assert name_form(name) == form


def test_name_form_of_composed_and_decomposed_accents_is_equal():
    assert unicodedata.normalize("NFD", "Sjögren") != "Sjögren"
    assert name_form(unicodedata.normalize("NFD", "Sjögren")) == name_form("Sjögren")


@given(TEXTS)
def test_name_form_of_any_text_can_be_stored(text):
    name_form(text).encode("utf8")


@given(TEXTS)
def test_split_pieces_have_right_offsets(text):
    last = 0
    for piece, start, end in split_name(text):
        assert piece
        assert last <= start < end <= len(text)
        assert name_form(text[start:end]) == piece
        assert not text[last:start].strip()
        last = end
    assert not text[last:].strip()


def test_is_abbreviation_needs_capitals():
    accepted = ["MI", "AIDS", "RA", "mRNA", "pH", "HbA1c", "A B"]
    others = ["Pain", "mi", "COVID", "E. coli", "Ca", "A", "", "42"]
    assert [name for name in [*accepted, *others] if is_abbreviation(name)] == accepted


@pytest.mark.parametrize(
    ("mention", "spellings", "expected"),
    [
        ("MI", ["MI"], True),
        ("mi", ["MI"], False),
        ("Mi", ["MI"], False),
        ("aids", ["AIDS"], False),
        ("pain", ["PAIN", "Pain"], True),
        ("PAIN", ["pain"], True),
        ("ph", ["pH"], False),
        ("pH", ["pH"], True),
        ("ca", ["Ca"], False),
        ("flu", ["Flu"], True),
        ("T  1", ["T 1"], True),
        ("none", [], False),
    ],
)
def test_iter_windows_abbreviations_keep_their_case(mention, spellings, expected):
    assert means_name(mention, spellings, min_length=3) is expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("heart attacks", ["heart attack"]),
        ("strokes", ["stroke"]),
        ("epilepsies", ["epilepsie", "epilepsy"]),
        ("metastases", ["metastase", "metastasis"]),
        ("carcinomata", ["carcinoma"]),
        ("virus", []),
        ("arthritis", []),
        ("weakness", []),
        ("mris", []),
        ("heart attack", []),
        ("", []),
    ],
)
def test_singular_forms(form: str, expected: list[str]) -> None:
    assert list(singular_forms(form)) == expected
