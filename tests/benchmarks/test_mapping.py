import random

import pytest

from benchmarks.mapping import (
    FORM,
    NAME,
    UNKNOWN,
    WORDS,
    Answer,
    Term,
    choose_terms,
    match_names,
    spoil,
    status_rows,
    system_rows,
)
from spacy_sapbert.linking.surface_forms import name_form
from spacy_sapbert.vocabularies.concepts import Concept


def make_concepts() -> list[Concept]:
    return [
        Concept(f"X:{n}", [f"fever {n}", f"{n} fever", f"pyrexia {n}", "shared"])
        for n in range(30)
    ] + [Concept("X:30", ["one name only"])]


def test_choose_terms_holds_out_names_and_concepts_by_the_seed() -> None:
    terms, kept = choose_terms(make_concepts(), (10, 5, 1), random.Random(3))
    assert choose_terms(make_concepts(), (10, 5, 1), random.Random(3)) == (terms, kept)
    assert choose_terms(make_concepts(), (10, 5, 1), random.Random(4))[0] != terms
    kinds = [term.kind for term in terms]
    assert kinds.count(NAME) == 5
    assert kinds.count(UNKNOWN) == 1
    assert kinds.count(FORM) + kinds.count(WORDS) == 10
    names = {concept.cui: {*concept.aliases} for concept in kept}
    forms = {name_form(name) for found in names.values() for name in found}
    for term in terms:
        assert (name_form(term.text) in forms) == (term.kind == NAME)
        if term.kind == UNKNOWN:
            assert term == Term("one name only", "", UNKNOWN)
            assert "X:30" not in names
        elif term.kind == NAME:
            assert term.text in names[term.cui]
        else:
            assert (term.text.split()[-1] == "fever") == (term.kind == FORM)
    assert len({term.cui for term in terms}) == len(terms)


def test_spoil_keeps_the_term_inside_and_is_of_the_seed() -> None:
    terms = [Term(f"heart attack {n}", "X:1", NAME) for n in range(50)]
    spoilt = spoil(terms, random.Random(0))
    assert spoilt == spoil(terms, random.Random(0))
    for before, after in zip(terms, spoilt, strict=True):
        assert before.text.lower() in after.text.lower()
        assert after.text != before.text
        assert after[1:] == before[1:]


def test_rows_by_hand() -> None:
    terms = [
        Term("a", "1", NAME),
        Term("b", "2", WORDS),
        Term("c", "3", WORDS),
        Term("d", "", UNKNOWN),
    ]
    mapped = [
        Answer(["1"], "exact"),
        Answer(["9", "2"], "linked"),
        Answer(["3"], "linked"),
        Answer(["7"], "review"),
    ]
    exact, linked, review, none = status_rows(terms, mapped)
    assert exact[:3] == ["`exact`", "1", "25.0%"]
    assert linked[:3] == ["`linked`", "2", "50.0%"]
    assert linked[3].startswith("0.500 (")
    assert review == ["`review`", "1", "25.0%", "–", "1"]
    assert none[1:] == ["0", "0.0%", "–", "0"]
    named = match_names(terms, [Concept("1", ["A", "x"]), Concept("2", ["y"])])
    assert [answer.cuis for answer in named] == [["1"], [], [], []]
    first, second = system_rows(terms, {"map": mapped, "equal names": named})
    assert first[1:4] == ["1.000", "–", "0.500"]
    assert first[4].startswith("0.667 (")
    assert first[5:] == ["1.000", "–"]
    assert second[-1] == "+0 −1, p = 1.000"


@pytest.mark.parametrize("text", ["x", "Hodgkin's disease"])
def test_spoil_every_way(text: str) -> None:
    spoilt = {
        spoil([Term(text, "", NAME)], random.Random(n))[0].text for n in range(200)
    }
    assert len(spoilt) > 50
