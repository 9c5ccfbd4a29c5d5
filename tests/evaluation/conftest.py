"""The sample knowledge base, opened once, and one whose index misses a concept."""

from typing import Any

import numpy as np
import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb


@pytest.fixture(scope="session")
def kb(sample_kb) -> KnowledgeBase:
    return load_kb(sample_kb)


class IncompleteIndex:
    """An index that never finds some rows."""

    def __init__(self, index: Any, rows: int, missing: list[int]) -> None:
        self.index, self.rows, self.missing = index, rows, missing

    def vectors(self, rows: np.ndarray) -> Any:
        return self.index.vectors(rows)

    def search(self, vectors: np.ndarray, k: int) -> Any:
        found = self.index.search(vectors, self.rows)
        kept = ~np.isin(found[0], self.missing)
        rows, scores = (each[kept].reshape(len(vectors), -1)[:, :k] for each in found)
        return rows, scores


@pytest.fixture
def incomplete_kb(sample_kb) -> KnowledgeBase:
    """A knowledge base whose index does not find fever."""
    kb = load_kb(sample_kb)
    rows = [entry.row for entry in kb.store.entries_of("C0000004")]
    index = IncompleteIndex(kb.index, kb.rows, rows)
    kb.parts.index = index  # type: ignore[assignment]
    return kb
