from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.ngrams.build import build_ngrams, iter_names
from spacy_sapbert.kb.ngrams.index import NgramIndex, list_paths, load_ngrams
from spacy_sapbert.linking.fusion import FUSIONS, compute_ranks, fuse_scores

PAIRS = st.lists(st.tuples(st.floats(-1, 1, width=32), st.floats(0, 1, width=32)))
MENTIONS = ["fevr", "hart attack", "MI", "頭痛", "zzz"]


@pytest.fixture
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


@pytest.fixture
def ngrams(kb: KnowledgeBase, tmp_path: Path) -> NgramIndex:
    rows = kb.manifest.counts.rows
    build_ngrams(iter_names(kb.store, range(rows)), tmp_path)
    return load_ngrams(list_paths(tmp_path), rows=rows)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def fuse(cosines: np.ndarray, similarities: np.ndarray, **options: Any) -> np.ndarray:
    """Places by fused score, those of equal ones by cosine, then as they came."""
    fused = fuse_scores(cosines, similarities, **options)
    return np.lexsort((-cosines, -np.round(fused, 12)))


def test_fuse_scores_weighted_by_hand() -> None:
    fused = fuse_scores(floats(0.9, 0.5), floats(0.1, 0.9), weight=0.25)
    assert fused == pytest.approx([0.7, 0.6], abs=1e-6)
    assert fuse(floats(0.9, 0.5), floats(0.1, 0.9), weight=0.25).tolist() == [0, 1]
    assert fuse(floats(0.9, 0.5), floats(0.1, 0.9), weight=0.5).tolist() == [1, 0]


def test_fuse_scores_rrf_by_hand() -> None:
    cosines, similarities = floats(0.9, 0.8, 0.7), floats(0, 0.2, 0.6)
    fused = fuse_scores(cosines, similarities, fusion="rrf")
    assert fused == pytest.approx([1 / 61, 1 / 62 + 1 / 62, 1 / 63 + 1 / 61])
    assert fuse(cosines, similarities, fusion="rrf").tolist() == [2, 1, 0]
    assert fuse_scores(cosines, similarities, fusion="rrf", rank_offset=0)[0] == 1


def test_fuse_is_deterministic_for_ties() -> None:
    cosines, similarities = floats(0.5, 0.6, 0.5), floats(0.6, 0.5, 0.6)
    assert fuse(cosines, similarities, weight=0.5).tolist() == [1, 0, 2]
    assert fuse(cosines[:0], similarities[:0], fusion="rrf").tolist() == []


def test_compute_ranks_ranks_equal_scores_alike() -> None:
    assert compute_ranks(floats(0.5, 0.9, 0.5, 0.1)).tolist() == [2, 1, 2, 4]
    assert compute_ranks(floats(0.5, 0.5 + 1e-7)).tolist() == [1, 1]


@given(pairs=PAIRS, weight=st.floats(0, 1), seed=st.integers(0, 9))
@pytest.mark.parametrize("fusion", FUSIONS)
def test_fuse_does_not_depend_on_the_order_of_rows(
    fusion: str, pairs: list[tuple], weight: float, seed: int
) -> None:
    scores = np.array(pairs, dtype=np.float32).reshape(-1, 2)
    mixed = np.random.default_rng(seed).permutation(len(scores))
    options = {"fusion": fusion, "weight": weight}
    fused = fuse_scores(*scores.T, **options)
    assert fuse_scores(*scores[mixed].T, **options).tolist() == fused[mixed].tolist()
    order = fuse(*scores.T, **options)
    assert sorted(order) == list(range(len(scores)))
    assert (np.diff(fused[order]) <= 1e-11).all()


@given(pairs=PAIRS, weight=st.floats(0, 1))
@pytest.mark.parametrize("fusion", FUSIONS)
def test_fuse_ranks_a_row_that_is_better_in_both_first(
    fusion: str, pairs: list[tuple], weight: float
) -> None:
    better = floats(0.75), floats(0.5)
    worse = floats(0.5), floats(0.25)
    scores = np.array(pairs, dtype=np.float32).reshape(-1, 2).T
    both = [np.concatenate(each) for each in zip(worse, scores, better, strict=True)]
    fused = fuse_scores(*both, fusion=fusion, weight=weight)
    assert fused[-1] > fused[0]


@pytest.mark.parametrize(
    ("fusion", "weight", "code"),
    [("sum", 0.3, "E593"), ("weighted", 1.5, "E313"), ("rrf", -0.1, "E313")]
    + [("weighted", float("nan"), "E313")],
)
def test_fuse_scores_invalid_setting_is_an_error(
    fusion: str, weight: float, code: str
) -> None:
    with pytest.raises(SapbertError, match=code):
        fuse_scores(floats(1), floats(1), fusion=fusion, weight=weight)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_add_ngram_rows_has_both_scores_of_every_row(
    kb: KnowledgeBase, ngrams: NgramIndex, k: int
) -> None:
    total = kb.manifest.counts.rows
    vectors = kb.embed(MENTIONS).vectors
    near = kb.search(vectors, k)
    like, _ = ngrams.search(MENTIONS, k)
    kb.parts.ngrams = ngrams
    found = kb.searcher.add_ngram_rows(MENTIONS, vectors, near, None)
    every = kb.vectors(np.arange(total))
    for number, (rows, cosines, similarities) in enumerate(found):
        either = {*near[0][number].tolist(), *like[number].tolist()} - {-1}
        assert rows.tolist() == sorted(either)
        assert cosines == pytest.approx(every[rows] @ vectors[number], abs=1e-5)
        of_text = ngrams.similarity([MENTIONS[number]], [rows])[0]
        assert similarities.tolist() == of_text.tolist()
