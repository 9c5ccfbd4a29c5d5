"""Ids and codes as people write them; `map` and `verify` test what becomes of them."""

import pytest

from spacy_sapbert.kb.ids import (
    FoundId,
    find_id,
    has_check_digit,
    read_term,
    repair_digits,
)
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.mark.parametrize("id", ["22298006", "404684003", "138875005", "64572001"])
def test_each_wrong_digit_of_a_snomed_id_is_noticed(id):
    assert has_check_digit(id)
    others = [
        id[:place] + digit + id[place + 1 :]
        for place, old in enumerate(id)
        for digit in "0123456789"
        if digit != old
    ]
    assert not any(map(has_check_digit, others))
    assert all(id in {*repair_digits(other)} for other in others)


def test_a_search_finds_what_a_column_must_not(make_kb, tmp_path):
    """A person sees what a search finds, and chooses."""
    codes = {"ICD10": ["P53"], "RXNORM": ["161"], "SHORT": ["AB"]}
    kb = load_kb(make_kb(tmp_path, [Concept("X:1", ["Bleeding"], codes=codes)]))
    names = {"p53": "ICD10 P53", "161": "RXNORM 161", "ab": "SHORT AB"}
    for term, name in names.items():
        assert read_term(kb.store, term) == FoundId()
        found = read_term(kb.store, term, is_search=True)
        assert (found.cuis, found.names) == (("X:1",), (name,))
    for term in ("P53", "ICD10:P53", "ICD-10:P53", "RXNORM:161", "x:1", "X:1"):
        assert read_term(kb.store, term).cuis == ("X:1",)
    for term in ("P53 bleeding", "", "\ud8001", "9" * 10_000):
        assert read_term(kb.store, term, is_search=True) == FoundId()


@pytest.mark.parametrize(
    ("id", "meant"),
    [("D5", ["D005"]), ("D0005", ["D005"]), ("5", []), ("D50", [])],
)
def test_an_id_without_its_zeros_is_written_almost_so(make_kb, tmp_path, id, meant):
    kb = load_kb(make_kb(tmp_path, [Concept("D005", ["Bleeding"])]))
    assert [*find_id(kb.store, id).meant] == meant


def test_an_id_is_known_with_and_without_its_prefix_among_ids_of_others(
    make_kb, tmp_path
):
    concepts = [
        Concept("104300", ["Old one"]),
        Concept("D000544", ["Bare"]),
        Concept("MESH:D000545", ["With"]),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    for term, cui in (
        *(("MESH:D000544", "D000544"), ("mesh:d000544", "D000544")),
        *(("D000545", "MESH:D000545"), ("MSH:D000545", "MESH:D000545")),
    ):
        assert read_term(kb.store, term).cuis == (cui,)
    assert read_term(kb.store, "ICD10:D000544") == FoundId()
