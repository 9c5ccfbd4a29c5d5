"""Tests of boosted trees: how they are fitted, written, and what they score."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

from spacy_sapbert.kb.learned_order import boost
from spacy_sapbert.kb.learned_order.boost import (
    QUESTIONS,
    Candidates,
    compute_gains,
    compute_lambdas,
    find_edges,
    fit_trees,
    grow_tree,
    join_candidates,
)
from spacy_sapbert.kb.learned_order.names import load_general
from spacy_sapbert.linking.features import EXCLUDED, MISSPELLED, OF_NAMES, REAL
from spacy_sapbert.linking.ranker import BEHIND_FIRST, Ranker, Weights
from spacy_sapbert.linking.trees import Trees


def make_candidates(features: dict[str, np.ndarray], right: np.ndarray) -> Candidates:
    """Return mentions with two candidates each; `right` = 0 or 1."""
    mentions = np.arange(len(right))
    return Candidates(
        features, mentions.repeat(2), 2 * mentions + right, np.ones(len(right))
    )


def test_scores_by_hand():
    trees = Trees(trees=["cosine>0.5 slip>0: 1 2 3 4", "slip>0 slip>1: 0 0 10 20"])
    features = {
        "cosine": np.array([0.5, 0.6, 0.5, 0.6]),
        "slip": np.array([0.0, 0.0, 1.0, 2.0]),
    }
    assert trees.names == ["cosine", "slip"]
    assert trees.scores(features).tolist() == [1, 3, 2 + 10, 4 + 20]
    nothing = {name: values[:0] for name, values in features.items()}
    assert trees.scores(nothing).shape == (0,)


def test_edges_lie_between_values():
    assert find_edges(np.array([3.0, 1.0, 1.0, 2.0])).tolist() == [1.5, 2.5]
    assert find_edges(np.ones(5)).tolist() == []
    many = find_edges(np.arange(1_000.0))
    assert len(many) == 64
    assert np.diff(many).max() < 20


def test_lambdas_by_hand():
    candidates = make_candidates({}, np.array([0, 1]))._replace(
        counts=np.array([1.0, 3.0])
    )
    slopes, curves = compute_lambdas(candidates, np.array([2.0, 1.0, 2.0, 1.0]))
    # the right one is a place ahead of the wrong one; then a place behind it
    for first, ahead, count in ((0, 1.0, 1.0), (2, -1.0, 3.0)):
        lost = (1 - 1 / np.log2(3)) / 1.01
        wrong = 1 / (1 + np.exp(ahead))
        scale = count * np.log2(1 + 2 * lost * wrong) / (2 * lost * wrong)
        sign = [-1, 1] if first == 0 else [1, -1]
        expected = np.array(sign) * lost * wrong * scale
        assert slopes[first : first + 2] == pytest.approx(expected)
        expected = [lost * wrong * (1 - wrong) * scale] * 2
        assert curves[first : first + 2] == pytest.approx(expected)


def test_the_first_question_equals_that_of_scikit_learn():
    tree_of = pytest.importorskip("sklearn.tree").DecisionTreeRegressor
    random = np.random.default_rng(0)
    values = random.integers(0, 50, (3, 2_000)).astype(float)
    target = np.where(values[1] > 30, 1.0, -1.0) + random.normal(size=2_000)
    edges = [find_edges(each) for each in values]
    bins = np.array([np.searchsorted(e, v) for e, v in zip(edges, values, strict=True)])
    tree, leaves = grow_tree(
        bins,
        np.arange(2_000),
        -target,
        np.ones(2_000),
        edges,
        ["a", "b", "c"],
        np.arange(3),
    )
    oracle = tree_of(max_depth=1).fit(values.T, target).tree_
    assert tree.questions[0] == ("abc"[oracle.feature[0]], oracle.threshold[0])
    assert len(tree.questions) == QUESTIONS
    # the leaf of a candidate is the number that its answers make
    numbers = {name: number for number, name in enumerate("abc")}
    answers = [values[numbers[q.feature]] > q.threshold for q in tree.questions]
    assert leaves.tolist() == (np.array([8, 4, 2, 1]) @ np.array(answers)).tolist()


TWO_TREES = [
    "a>0.432083246 b>0.556404159 a>0.607859222 a>0.922458249: -0.0776367 0 0 0 "
    "-0.00881323 0 0 0 -0.049114 0 0.0384219 -0.0520954 0.0497713 0 0.0787916 "
    "0.0451918",
    "b>0.73000755 c>0.642596416 c>0.0283316556 c>0.977719952: 0.00914034 0 -0.0446852 "
    "0 0 0 0.0127227 -0.0227401 -0.0174239 0 0.0441977 0 0 0 0.0555145 0",
]


def test_trees_of_few_candidates_are_those_of_the_last_version(monkeypatch):
    """Their questions and values are not known otherwise; scores and gains are."""
    monkeypatch.setattr(boost, "TREES", 2)
    random = np.random.default_rng(1)
    sizes = [3, 2, 4] * 20
    features = [dict(zip("abc", random.random((3, n)), strict=True)) for n in sizes]
    right = [int((f["a"] + f["b"] ** 2).argmax()) for f in features]
    candidates = join_candidates(features, right, [1.0, 2.0, 0.5] * 20, "cab")
    assert candidates.mentions.tolist() == np.repeat(np.arange(60), sizes).tolist()
    assert candidates.right[:4].tolist() == [
        right[0],
        3 + right[1],
        5 + right[2],
        9 + right[3],
    ]
    assert candidates.counts[:4].tolist() == [1.0, 2.0, 0.5, 1.0]
    assert candidates.features["b"][3:5].tolist() == features[1]["b"].tolist()
    found, known = (
        [re.split(r"[>: ]+", text) for text in trees]
        for trees in (fit_trees(candidates, "cab").trees, TWO_TREES)
    )
    for cells, expected in zip(found, known, strict=True):
        assert cells[:8:2] == expected[:8:2]
        numbers = [*cells[1:8:2], *cells[8:]], [*expected[1:8:2], *expected[8:]]
        mine, its = ([*map(float, some)] for some in numbers)
        assert mine == pytest.approx(its, abs=1e-5)
    alike = candidates._replace(features={name: np.ones(180) for name in "cab"})
    assert fit_trees(alike, "cab").trees == ["c>0: 0 0"]


def test_gains_by_hand():
    slope, curve = (
        np.array([[1.0, 3.0, 2.0], [0.0, 0.0, 4.0]]),
        np.array([[1.0, 3.0, 5.0], [2.0, 2.0, 4.0]]),
    )
    left = [1 / 6 + 1 / 9 + 0 + 16 / 7, 9 / 8 + 1 / 7 + 0 + 16 / 7]
    assert compute_gains(slope, curve) == pytest.approx(left)


def test_a_ranker_with_trees_asks_for_the_order_of_names():
    cosine = Weights(mean={}, scale={}, weight={}, temperature=10.0)
    trees = Trees(trees=[f"{BEHIND_FIRST}>-1.5: 0 3", "ngrams>0.5: 0 1"])
    ranker = Ranker(known=cosine, taught=trees)
    features = {
        "cosine": np.array([0.9, 0.8, 0.7]),
        "ngrams": np.array([0.0, 0.6, 0.6]),
        MISSPELLED: np.zeros(3),
        REAL: np.ones(3),
        EXCLUDED: np.zeros(3),
    }
    # the scores of names are 9, 8 and 7
    assert ranker.scores(features).tolist() == [3.0, 4.0, 1.0]
    features[EXCLUDED] = np.array([0.0, 1.0, 0.0])
    assert ranker.scores(features).tolist() == [3.0, 1.0 - 100, 1.0]
    # those of other vocabularies are for mentions without a misspelled word
    general = Ranker(known=cosine, unknown=cosine, general=trees)
    features[EXCLUDED] = np.zeros(3)
    assert general.scores(features).tolist() == [3.0, 4.0, 1.0]
    features |= {MISSPELLED: np.ones(3), REAL: np.zeros(3)}
    assert general.scores(features) == pytest.approx([9.0, 8.0, 7.0])
    # what was taught corrects the order of names that a knowledge base has
    assert ranker.correction.corrects(general) == general.model_copy(
        update={"taught": trees}
    )
    with pytest.raises(ValidationError, match="trees"):
        Ranker(taught=Trees(trees=["unheard_of>0: 0 1"]))


def test_the_shipped_order_sees_how_names_are_alike_and_no_annotation():
    trees = load_general()
    assert len(trees.trees) == 200
    assert {*trees.names} <= {*OF_NAMES, BEHIND_FIRST}
    assert Ranker(general=trees).general == trees
