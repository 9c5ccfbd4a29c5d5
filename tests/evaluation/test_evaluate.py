from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.evaluation.evaluate import measure_recall
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.parts import EmbeddedTexts


class IncompleteIndex:
    """A knowledge base whose mentions are row numbers and whose index misses rows."""

    def __init__(self, vectors: np.ndarray, missing: list[int]) -> None:
        self.matrix = vectors
        self.missing = missing
        self.rows = len(vectors)

    def embed(self, texts: list[str], **options: bool) -> EmbeddedTexts:
        readable = np.ones(len(texts), dtype=bool)
        vectors = self.matrix[[int(text) for text in texts]]
        return EmbeddedTexts(vectors, ~readable, readable)

    @property
    def searcher(self) -> Any:
        """It knows no names."""

        def name(texts: list[str], vectors: np.ndarray, filter: Any) -> Any:
            return SimpleNamespace(vectors=vectors)

        return SimpleNamespace(nearest=SimpleNamespace(name=name))

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix[rows]

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores = vectors @ self.matrix.T
        scores[:, self.missing] = -2
        found = np.argsort(-scores, axis=1)[:, : min(k, len(self.matrix) - 1)]
        return found, np.take_along_axis(scores, found, axis=1)


@pytest.fixture
def unit_vectors() -> np.ndarray:
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_measure_recall_is_1_for_a_small_real_index(kb: KnowledgeBase) -> None:
    recall = measure_recall(kb, ["fever", "heart failure", "..."])
    assert recall == {"queries": 2, "recall@1": 1.0, "recall@10": 1.0}


def test_measure_recall_counts_rows_that_the_index_misses(
    unit_vectors: np.ndarray,
) -> None:
    kb: Any = IncompleteIndex(unit_vectors, missing=[0])
    nearest = np.argsort(-(unit_vectors @ unit_vectors.T), axis=1)
    near = [i for i in range(40) if 0 in nearest[i, :10]]
    recall = measure_recall(kb, [str(i) for i in range(40)])
    assert recall["recall@1"] == pytest.approx(39 / 40)
    assert recall["recall@10"] == pytest.approx(1 - len(near) / 400)


def test_measure_recall_counts_equal_rows_alike(unit_vectors: np.ndarray) -> None:
    kb: Any = IncompleteIndex(np.concatenate([unit_vectors, unit_vectors]), missing=[0])
    assert measure_recall(kb, ["0"], ks=(1,))["recall@1"] == 1.0


def test_measure_recall_without_queries(kb: KnowledgeBase) -> None:
    recall = measure_recall(kb, [])
    assert recall == {"queries": 0, "recall@1": None, "recall@10": None}


def test_metrics_import_no_spacy(new_process: Any) -> None:
    """A training machine scores encoders without spaCy."""
    modules = ("accuracy", "gold_mentions", "rankers", "score_mentions")
    lines = ["import sys", "sys.modules['spacy'] = None"]
    lines += [f"import spacy_sapbert.evaluation.{module}" for module in modules]
    lines.append("assert 'torch' not in sys.modules")
    done = new_process.python("\n".join(lines))
    assert done.returncode == 0, done.stderr
