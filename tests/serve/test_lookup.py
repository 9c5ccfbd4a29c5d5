"""Names that begin with what a person types, or have its words."""

from typing import Any

import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.serve.lookup import find_names
from spacy_sapbert.vocabularies.concepts import Concept

NAMES = (
    *("Vitamin D deficiency", "VI nerve palsy", "Viral hepatitis", "60 minute test"),
    *("Type 2 diabetes", "Type II collagen", "Type 20 collagen", "Diabetes type 2"),
    *("Crohn's disease", "Ménière disease", "TNF alpha", "Type IIb collagen"),
)


@pytest.fixture(scope="module")
def kb(make_kb: Any, tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    concepts = [Concept(f"C{n}", [name]) for n, name in enumerate(NAMES)]
    return load_kb(make_kb(tmp_path_factory.mktemp("typed"), concepts, backend="exact"))


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("vi", ["Viral hepatitis", "Vitamin D deficiency", "VI nerve palsy"]),
        ("VI n", ["VI nerve palsy"]),
        (
            "type ii",
            ["Type 2 diabetes", "Type II collagen", "Type IIb collagen"]
            + ["Diabetes type 2"],
        ),
        ("type 2 di", ["Type 2 diabetes", "Diabetes type 2"]),
        ("crohns", []),
        ("crohn's", ["Crohn's disease"]),
        ("crohn’s dis", ["Crohn's disease"]),
        ("menie", ["Ménière disease"]),
        ("MÉNI", ["Ménière disease"]),
        ("TNFα", ["TNF alpha"]),
        ("tnf-al", ["TNF alpha"]),
        ("6", ["60 minute test", "VI nerve palsy"]),
        ("diabetes ii", ["Diabetes type 2", "Type 2 diabetes"]),
        ("nerve vi", ["VI nerve palsy"]),
        ("def vit", ["Vitamin D deficiency"]),
        ('" OR *', []),
        *(("", []), ("…", []), ("\ud800", [])),
    ],
)
def test_find_names(kb: KnowledgeBase, typed: str, names: list[str]) -> None:
    assert [found["alias"] for found in find_names(kb, typed, 10)] == names
