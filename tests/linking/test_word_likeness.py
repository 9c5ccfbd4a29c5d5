"""How like two words are, by hand."""

import pytest

from spacy_sapbert.linking.text import fold_english
from spacy_sapbert.linking.word_likeness import is_disease_of, is_slip, stand_for


@pytest.mark.parametrize(
    ("word", "other", "real", "expected"),
    [
        # derived from the other; a new word needs a longer stem
        ("hypertensive", "hypertension", True, 0.9),
        ("painful", "pain", True, 0.9),
        ("painful", "pain", False, 0),
        ("cancerous", "cancer", False, 0.9),
        ("hyperzincemia", "hyperkalemia", True, 0),
        # misspelled, which a real word is not: one of three letters, three at most
        ("diabetus", "diabetes", True, 0),
        ("diabetus", "diabetes", False, 7 / 8),
        ("abc", "abd", False, 0),
        ("hart", "heart", False, 3 / 4),
        ("axthmb", "asthma", False, 4 / 6),
        ("hxperzincxmib", "hyperzincemia", False, 10 / 13),
        ("hxperzxncxmib", "hyperzincemia", False, 0),
        # wrong letters side by side are another word
        ("migxyine", "migraine", False, 0),
    ],
)
def test_stand_for_by_hand(word, other, real, expected):
    assert stand_for(word, other, real) == pytest.approx(expected)
    if not real:
        assert is_slip(word, other) is (expected not in (0, 0.9))


@pytest.mark.parametrize(
    ("disease", "thing", "expected"),
    [
        ("Cryptococcosis", "Cryptococcus", True),
        ("Leishmaniasis", "Leishmania", True),
        ("asbestosis", "asbestos", True),
        ("alcoholism", "alcohol", True),
        ("bacteremia", "bacteria", True),
        ("neutrophilia", "neutrophils", True),
        ("mesothelioma", "mesothelium", True),
        ("ketosis", "ketone", True),
        ("asbestos", "asbestosis", False),
        ("leukemia", "leukemic", False),
        ("hypothyroidism", "hypothyroid", False),
        ("hirsutism", "hirsute", False),
        ("pulmonary embolism", "pulmonary emboli", False),
        ("thrombosis", "thrombus", False),
        ("carcinomatosis", "carcinoma", False),
        ("fever", "fever", False),
    ],
)
def test_diseases_are_called_after_things_not_after_adjectives(
    disease, thing, expected
):
    assert is_disease_of(*map(fold_english, (disease, thing))) is expected
