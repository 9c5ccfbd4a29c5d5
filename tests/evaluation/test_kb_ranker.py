from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import list_concepts
from spacy_sapbert.evaluation.kb_ranker import (
    best_cosines,
    make_kb_lookup,
    make_kb_search,
    measure_recall,
    parse_kbs,
)
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb


class ForgetfulKb:
    """Like a knowledge base, but its index never finds some rows."""

    def __init__(self, vectors: np.ndarray, forgotten: list[int]) -> None:
        self.matrix = vectors
        self.forgotten = forgotten
        self.rows = len(vectors)

    def encode(self, names: list[str]) -> np.ndarray:
        return self.matrix[[int(name) for name in names]]

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix[rows]

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores = vectors @ self.matrix.T
        scores[:, self.forgotten] = -2
        rows = np.argsort(-scores, axis=1)[:, : min(k, len(self.matrix) - 1)]
        return rows, np.take_along_axis(scores, rows, axis=1)


@pytest.fixture
def unit_vectors() -> np.ndarray:
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


def test_kb_search_ranks_concepts_as_the_linker_does(kb: KnowledgeBase) -> None:
    mentions = ["heart attack", "fevers", "MI", "head pain acute"]
    ranked = make_kb_search(kb, {}, k=3)(mentions)
    for linked, answers in zip(kb.link(mentions, k=3), ranked, strict=True):
        found = list_concepts(answers)[:3]
        assert [cui for _, cui in found] == [c["cui"] for c in linked.candidates]
        scores = [c["score"] for c in linked.candidates]
        assert [score for score, _ in found] == pytest.approx(scores, abs=2e-6)


def test_kb_search_has_no_answer_where_the_linker_does_not_search(
    kb: KnowledgeBase,
) -> None:
    assert make_kb_search(kb, {}, k=3)(["...", "   ", "𐎀"]) == [[], [], []]


def test_kb_search_keeps_all_that_tie(kb: KnowledgeBase) -> None:
    (answers,) = make_kb_search(kb, {}, k=1)(["MI"])
    assert [cui for _, cui in list_concepts(answers)] == ["C0000001", "C0000002"]
    (answers,) = make_kb_search(kb, {"C0000002": "C0000001"}, k=1)(["MI"])
    assert [cui for _, cui in list_concepts(answers)] == ["C0000001"]


def test_kb_lookup_knows_retired_ids(kb: KnowledgeBase) -> None:
    lookup = make_kb_lookup(kb)
    assert lookup("C9999999") == lookup("C0000001") == "C0000001"
    assert lookup("C1234567") is None


def test_best_cosines_equal_those_of_one_block(unit_vectors: np.ndarray) -> None:
    queries, blocks = unit_vectors[:5], np.array_split(unit_vectors, 7)
    expected = -np.sort(-(queries @ unit_vectors.T), axis=1)[:, :6]
    assert np.allclose(best_cosines(iter(blocks), queries, 6), expected, atol=1e-6)


def test_measure_recall_is_1_for_a_small_real_index(kb: KnowledgeBase) -> None:
    recall = measure_recall(kb, ["fever", "heart failure", "..."])
    assert recall == {"queries": 2, "recall@1": 1.0, "recall@10": 1.0}


def test_measure_recall_counts_what_the_index_does_not_find(
    unit_vectors: np.ndarray,
) -> None:
    kb: Any = ForgetfulKb(unit_vectors, forgotten=[0])
    nearest = np.argsort(-(unit_vectors @ unit_vectors.T), axis=1)
    near = [i for i in range(40) if 0 in nearest[i, :10]]
    recall = measure_recall(kb, [str(i) for i in range(40)])
    assert recall["recall@1"] == pytest.approx(39 / 40)
    assert recall["recall@10"] == pytest.approx(1 - len(near) / 400)


def test_measure_recall_lets_equal_rows_stand_for_each_other(
    unit_vectors: np.ndarray,
) -> None:
    kb: Any = ForgetfulKb(np.concatenate([unit_vectors, unit_vectors]), forgotten=[0])
    assert measure_recall(kb, ["0"], ks=(1,))["recall@1"] == 1.0


def test_measure_recall_without_queries(kb: KnowledgeBase) -> None:
    recall = measure_recall(kb, [])
    assert recall == {"queries": 0, "recall@1": None, "recall@10": None}


def test_parse_kbs_reads_names_and_folders() -> None:
    assert parse_kbs(["a=models/x", "b=y=z"]) == {"a": "models/x", "b": "y=z"}


@pytest.mark.parametrize("values", [["models/kb"], ["=x"], ["a="], ["a=x", "a=y"]])
def test_parse_kbs_refuses_what_has_no_name(values: list) -> None:
    with pytest.raises(SapbertError, match="E709"):
        parse_kbs(values)
