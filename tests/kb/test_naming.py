"""Which mentions are names of a knowledge base, whatever way they are written."""

from typing import Any

import numpy as np
import pytest

from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.naming import Named, choose_row
from spacy_sapbert.kb.store import NameOfKey
from spacy_sapbert.linking.filters import Filter
from spacy_sapbert.vocabularies.concepts import Concept

CONCEPTS = [
    Concept("C1", ["Lung Neoplasms", "Cancer, Lung"], languages={"ENG": [0, 1]}),
    Concept("C2", ["Hematuria"]),
    Concept("C3", ["Tumor"], languages={"SPA": [0]}),
    Concept("C4", ["AIDS", "Colours", "A-T"]),
    Concept("C5", ["Yellow fever"]),
    Concept("C6", ["Fevers, Yellow"]),
    Concept("C7", ["Lung cancer"], languages={"GER": [0]}),
    Concept("C8", ["Left to right shunt"]),
    Concept("C9", ["Ulcer", "Sore"]),
    Concept("C10", ["ulcers", "Sore"]),
    Concept("C11", ["Asthma (disorder)"]),
]


@pytest.fixture(scope="module")
def kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    return load_kb(make_kb(tmp_path_factory.mktemp("naming"), CONCEPTS))


def find_named(kb: KnowledgeBase, mention: str, lang: str = "") -> list[Any]:
    """The concepts of which a mention is a name, with how far it is written so."""
    found = kb.searcher.names.find_named([mention], lang)[mention]
    cuis = [*kb]
    return sorted((cuis[n.name.concept], n.name.alias, n.likeness) for n in found)


def is_named(kb: KnowledgeBase, mention: str, **filter: Any) -> bool:
    embedded = kb.embed([mention])
    mentions = kb.searcher.nearest.name([mention], embedded.vectors, Filter(**filter))
    return bool(mentions.named[0])


def test_find_named_says_how_far_a_mention_is_written_so(kb):
    assert find_named(kb, "lung  NEOPLASMS") == [("C1", "Lung Neoplasms", 3)]
    assert find_named(kb, "neoplasm, lung") == [("C1", "Lung Neoplasms", 2)]
    assert find_named(kb, "neoplasm lung") == [("C1", "Lung Neoplasms", 1)]
    assert find_named(kb, "nothing") == []
    # A name with a tag is one without it too.
    assert find_named(kb, "asthma") == [("C11", "Asthma (disorder)", 2)]
    # An abbreviation may have other signs, but no other letters.
    assert find_named(kb, "A T") == [("C4", "A-T", 2)]
    assert find_named(kb, "a-ts") == []


@pytest.mark.parametrize(
    ("mention", "lang", "expected"),
    [
        ("tumores", "es", [("C3", "Tumor", 2)]),
        ("tumour", "es", []),  # an English spelling of a Spanish name
        ("tumor", "en", []),
        ("tumor", "", [("C3", "Tumor", 3)]),
        ("lung cancer", "de", [("C1", "Cancer, Lung", 2), ("C7", "Lung cancer", 3)]),
    ],
)
def test_names_are_found_by_the_rules_of_their_language(kb, mention, lang, expected):
    assert find_named(kb, mention, lang) == expected


def test_a_mention_of_names_of_several_concepts_is_the_one_written_most_alike(kb):
    """If two are written as much alike, it is neither, but for names on one row."""
    assert is_named(kb, "yellow fever")
    assert kb.link(["Yellow fever"])[0].cui == "C5"
    assert not is_named(kb, "yellow fevers")  # of C5, or "fevers, yellow" of C6
    assert kb.link(["ulcer", "ULCERS"], tie_evidence=[])[0].cui == "C9"
    assert kb.link(["ULCERS"])[0].cui == "C10"
    (sore,) = kb.link(["sores"], tie_evidence=[])
    assert [(c["cui"], c["tie"]) for c in sore.candidates[:2]] == [
        ("C10", "id"),
        ("C9", "id"),
    ]


@pytest.mark.parametrize(
    ("names", "row"),
    [
        ([], None),
        ([(None, 1, 3)], None),  # which the encoder cannot read
        ([(4, 1, 2), (5, 2, 3)], 5),
        ([(4, 1, 3), (4, 2, 3)], 4),  # one row of two concepts
        ([(4, 1, 3), (5, 2, 3), (5, 1, 3)], 4),  # two rows of one concept
        ([(4, 1, 3), (5, 2, 3)], None),
    ],
)
def test_choose_row_by_hand(names, row):
    """Of names with their rows, concepts, and how far a mention is written so."""
    named = [Named(NameOfKey("x", r, c, 0), likeness) for r, c, likeness in names]
    assert choose_row(named) == row


def test_an_added_name_is_the_one_that_is_written_so(make_kb, tmp_path):
    kb = add_concepts(
        load_kb(make_kb(tmp_path, CONCEPTS)), [Concept("X1", ["haematuria"])]
    )
    british, american = kb.link(["haematuria", "hematuria"])
    assert (british.cui, american.cui) == ("X1", "C2")
    kb = add_concepts(kb, [Concept("X2", ["Oesophageal ulcer"])])
    (linked,) = kb.link(["esophageal ulcers"])
    assert (linked.cui, linked.candidates[0]["score"]) == ("X2", 1)
    assert not np.allclose(*kb.embed(["haematuria", "hematuria"]).vectors)
