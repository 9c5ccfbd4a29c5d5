from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.gold_mentions import GoldMention, make_resolver
from spacy_sapbert.evaluation.kb_ranker import make_kb_lookup
from spacy_sapbert.evaluation.linking_errors import (
    find_missed_concepts,
    find_mistakes,
    find_nearest_rows,
    make_concept_finder,
    make_facts,
    name_gold,
)
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.store import Entry
from spacy_sapbert.vocabularies.concepts import Concept


class VectorsKb:
    """Like a knowledge base whose mentions are numbers of its rows, concepts too."""

    def __init__(self, rows: int, backend: str = "hnsw") -> None:
        vectors = np.random.default_rng(0).normal(size=(rows, 8)).astype(np.float32)
        self.matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.rows = rows
        self.meta: dict[str, Any] = {"index": {"backend": backend}}

    def encode(self, names: list[str]) -> np.ndarray:
        return self.matrix[[int(name) for name in names]]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix[rows]

    def entries(self, rows: list[int]) -> dict[int, list[Entry]]:
        return {row: [Entry(row, f"C{row}", "", "", True)] for row in rows}


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


def test_find_nearest_rows_equals_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_sapbert.evaluation.kb_ranker.BLOCK_ROWS", 7)
    monkeypatch.setattr("spacy_sapbert.evaluation.linking_errors.QUERIES_AT_ONCE", 4)
    kb: Any = VectorsKb(40)
    queries = np.random.default_rng(1).normal(size=(11, 8)).astype(np.float32)
    rows, cosines = find_nearest_rows(kb, queries)
    expected = queries @ kb.matrix.T
    assert rows.tolist() == expected.argmax(axis=1).tolist()
    assert np.allclose(cosines, expected.max(axis=1), atol=1e-6)


def test_find_missed_concepts_gives_what_is_nearer_than_the_first_answer() -> None:
    kb: Any = VectorsKb(40)
    missed = find_missed_concepts(kb, {"3": 0.8, "5": 1.0, "7": 0.5}, {"C7": "C1"})
    assert missed == {"3": {"C3"}, "7": {"C1"}}
    # five digits are the same; the sixth is rounded
    assert find_missed_concepts(kb, {"3": 0.999999}, {}) == {}
    assert find_missed_concepts(kb, {}, {}) == {}


def test_find_missed_concepts_does_not_search_twice_where_the_index_is_exact() -> None:
    kb: Any = VectorsKb(40, "exact")
    assert find_missed_concepts(kb, {"3": 0.8}, {}) == {}


def test_find_missed_concepts_of_a_real_index(kb: KnowledgeBase) -> None:
    missed = find_missed_concepts(kb, {"fever": 0.5, "...": 0.5, "MI": 1.0}, {})
    assert missed == {"fever": {"C0000004"}}


def test_concept_finder_knows_aliases_and_no_retired_ids(kb: KnowledgeBase) -> None:
    def cuis(concepts: list[Concept]) -> list[str]:
        return [concept.cui for concept in concepts]

    find = make_concept_finder(kb, {"C0000002": "X", "C0000001": "X", "Y": "X"})
    assert cuis(find("X")) == ["C0000001", "C0000002"]
    assert cuis(find("C0000003")) == ["C0000003"]
    assert find("C9999999") == find("C1234567") == []


def test_facts_go_through_aliases(kb: KnowledgeBase) -> None:
    aliases = {"C0000003": "X"}
    find = make_concept_finder(kb, aliases)
    facts = make_facts(find, make_kb_lookup(kb), aliases)
    assert facts("C0000001").parents == {"X"}
    assert "myocardial infarction" in facts("C0000001").forms
    assert facts("X").types == {"T047"}
    assert facts("nowhere") == (frozenset(), frozenset(), frozenset())


@pytest.mark.parametrize(
    ("ids", "concepts", "expected"),
    [
        ([["C2", "C1"]], [{"C1", "C2"}], (("C1", "C2"),)),
        ([["C9"]], [{"C1"}], (("C1",),)),
        ([["C3"], ["C1"]], [{"C3"}, {"C1"}], (("C1",), ("C3",))),
        ([["A7"], ["A5"]], [set(), set()], (("A5",), ("C7",))),
    ],
)
def test_name_gold_is_equal_for_equal_meanings(
    ids: list[list[str]], concepts: Any, expected: tuple[tuple[str, ...], ...]
) -> None:
    parts = [frozenset(found) for found in concepts]
    assert name_gold(GoldMention(2, "", "x", ids), parts, {"A7": "C7"}) == expected


def test_find_mistakes_asks_exact_search_only_where_it_matters(
    kb: KnowledgeBase,
) -> None:
    answers = {
        "fever": [Answer(0, "C0000004", 0.9), Answer(1, "C0000006", 0.8)],
        "tied": [Answer(0, "C0000005", 0.9), Answer(1, "C0000004", 0.9)],
        "missed": [Answer(0, "C0000006", 0.9)],
        "far": [Answer(0, "C0000006", 0.9)],
        "": [],
    }
    ids = [("fever", "C0000004"), ("tied", "C0000004"), ("missed", "C0000004")]
    ids += [("far", "C0000001"), ("far", "C7777777"), ("", "C0000001")]
    golds = [
        ("dev", GoldMention(line, "", mention, [[cui]]))
        for line, (mention, cui) in enumerate([*ids, *ids], 2)
    ]
    asked: list[dict[str, float]] = []

    def search(scores: dict[str, float]) -> dict[str, frozenset[str]]:
        asked.append(scores)
        return {"missed": frozenset({"C0000004"})}

    lookup, find = make_kb_lookup(kb), make_concept_finder(kb, {})
    facts, resolve = make_facts(find, lookup, {}), make_resolver(lookup, {})
    settings = EvaluationSettings()
    found, judged = find_mistakes(golds, answers, resolve, facts, search, {}, settings)
    causes = ["tie", "index miss", "wrong type", "not covered", "no answer"]
    assert [mistake.cause for mistake in found] == causes * 2
    assert [mistake.line for mistake in found[:5]] == [3, 4, 5, 6, 7]
    assert asked == [{"missed": 0.9, "far": 0.9}]
    assert judged[("C0000004",),] == 6
    assert judged[("C7777777",),] == 2
