from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


def test_embed_text_with_the_tokens_of_a_row_has_its_vector(
    kb: KnowledgeBase, encoded: list[int]
) -> None:
    vectors = kb.embed(["FEVER", " fever\n", "Fever"]).vectors
    assert encoded == [0]  # nothing is left to encode
    (row,) = {e.row for e in kb.store.entries_of("C0000004") if e.alias == "Fever"}
    expected = kb.vectors(np.array([row]))[0]
    assert all(np.array_equal(vector, expected) for vector in vectors)


def test_embed_equal_tokens_are_encoded_once(
    kb: KnowledgeBase, encoded: list[int]
) -> None:
    vectors = kb.embed(["a chill", "A  CHILL", "chills", "fever"]).vectors
    assert encoded == [2]
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-5)


def test_embed_says_what_it_cannot_read_and_what_is_too_long(kb: KnowledgeBase) -> None:
    embedded = kb.embed(["fever", "頭痛", "", "fever " * 30, "x y " * 1500])
    assert embedded.readable.tolist() == [True, False, False, True, True]
    assert embedded.usable.tolist() == [True, False, False, True, True]
    assert embedded.truncated.tolist() == [False, False, False, True, True]
    assert not embedded.vectors[1:3].any()


def test_embed_nothing_is_empty(kb: KnowledgeBase) -> None:
    embedded = kb.embed([])
    assert embedded.vectors.shape == (0, 32)
    assert embedded.usable.tolist() == []


def test_embed_vector_that_is_not_finite_is_not_usable(kb: KnowledgeBase) -> None:
    embedded = kb.embed(["fever", "chills", "pain"])
    embedded.vectors[0], embedded.vectors[1] = np.nan, 0
    assert embedded.usable.tolist() == [False, False, True]
