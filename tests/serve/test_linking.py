"""/link, and what a person types into a field; see `test_answers.py` too."""

import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.serve import lookup
from spacy_sapbert.serve.lookup import find_names
from spacy_sapbert.vocabularies.concepts import Concept


def test_link_refuses_a_text_that_takes_hours_and_links_the_others(local):
    answer = local.post("/link", {"texts": ["fever", "(" * 100_001]})
    first, second = answer.json()["documents"]
    assert [e["cui"] for e in first["entities"]] == ["C0000004"]
    assert second["entities"] == []
    assert second["error"]["code"] == "E536"


NAMES = (
    *("Vitamin D deficiency", "VI nerve palsy", "Viral hepatitis", "60 minute test"),
    *("Type 2 diabetes", "Type II collagen", "Type 20 collagen", "Diabetes type 2"),
    *("Crohn's disease", "Ménière disease", "TNF alpha", "Type IIb collagen"),
)


@pytest.fixture(scope="module")
def typed_kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    concepts = [Concept(f"C{n}", [name]) for n, name in enumerate(NAMES)]
    for number in range(4):  # a circle
        concepts[number].parents.append(f"C{(number + 1) % 4}")
    return load_kb(make_kb(tmp_path_factory.mktemp("typed"), concepts, backend="exact"))


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("vi", ["Viral hepatitis", "Vitamin D deficiency", "VI nerve palsy"]),
        (
            "type ii",
            ["Type 2 diabetes", "Type II collagen", "Type IIb collagen"]
            + ["Diabetes type 2"],
        ),
        ("crohn’s dis", ["Crohn's disease"]),
        ("MÉNI", ["Ménière disease"]),
        ("tnf-al", ["TNF alpha"]),
        ("6", ["60 minute test", "VI nerve palsy"]),
        ("diabetes ii", ["Diabetes type 2", "Type 2 diabetes"]),
        ('" OR *', []),
        *(("", []), ("\ud800", [])),
    ],
)
def test_find_names(typed_kb, typed, names):
    assert [found["alias"] for found in find_names(typed_kb, typed, 10)] == names


def test_find_path_ends_in_a_circle_and_where_it_is_long(typed_kb, monkeypatch):
    def find() -> list[str]:
        return [one["cui"] for one in lookup.find_path(typed_kb, typed_kb["C0"])]

    assert find() == ["C3", "C2", "C1", "C0"]
    monkeypatch.setattr(lookup, "LONGEST_PATH", 3)
    assert find() == ["C2", "C1", "C0"]
