"""Which mentions are names of a knowledge base, whatever way they are written."""

import pytest

from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.naming import Named, choose_row
from spacy_sapbert.kb.store import NameOfKey
from spacy_sapbert.linking.filters import UNTYPED, Filter
from spacy_sapbert.vocabularies.concepts import Concept


def test_a_mention_of_names_of_several_concepts_is_the_one_written_most_alike(
    make_kb, tmp_path
):
    """If two are written as much alike, it is neither, but for names on one row."""
    concepts = [
        Concept("C5", ["Yellow fever"]),
        Concept("C6", ["Fevers, Yellow"]),
        Concept("C9", ["Ulcer", "Sore"]),
        Concept("C10", ["ulcers", "Sore"]),
        Concept("C11", ["Asthma (disorder)"]),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    texts = ["yellow fever", "yellow fevers"]  # the other one may be of C5 or C6
    named = kb.searcher.nearest.name(texts, kb.embed(texts).vectors, Filter()).named
    assert [*named] == [True, False]
    assert kb.link(["Yellow fever"])[0].cui == "C5"
    assert kb.link(["ulcer", "ULCERS"], tie_evidence=[])[0].cui == "C9"
    assert kb.link(["ULCERS"])[0].cui == "C10"
    (sore,) = kb.link(["sores"], tie_evidence=[])
    found = [(c["cui"], c["tie"]) for c in sore.candidates[:2]]
    assert found == [("C10", "id"), ("C9", "id")]
    # A name with a tag is one without it too, but not the one written most alike.
    (tagged,) = kb.searcher.names.find_named(["asthma"], "")["asthma"]
    assert tagged.closeness == 1


def test_the_encoder_is_not_run_for_a_mention_that_is_a_name(
    make_kb, tmp_path, encoded
):
    """However it is written; if a filter leaves the name, whose vector it has."""
    concepts = [
        Concept("C1", ["Breast tumor"], types=["T191"]),
        Concept("C2", ["Sore"]),
    ]
    kb = load_kb(make_kb(tmp_path, concepts))
    mention = "breast tumours"
    assert kb.embed([mention]).vectors.any()
    encoded.clear()
    (linked,) = kb.link([mention])
    assert (linked.cui, linked.candidates[0]["score"], sum(encoded)) == ("C1", 1.0, 0)
    found = kb.link([mention, "sores"], filter={"types": [UNTYPED]})
    assert [one.cui for one in found] == [None, "C2"]
    assert sum(encoded) == 1


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
    named = [Named(NameOfKey("x", r, c, 0), closeness) for r, c, closeness in names]
    assert choose_row(named) == row
