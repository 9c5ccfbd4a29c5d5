"""Features of candidates, words, and what a ranker makes of them, by hand."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.linking.candidates import Entry
from spacy_sapbert.linking.coverage import Near, Shared
from spacy_sapbert.linking.difference import compare, split_words
from spacy_sapbert.linking.features import (
    EXCLUDED,
    FEATURES,
    GROUPED,
    MISSING,
    MISSPELLED,
    OF_MENTION,
    OF_NAMES,
    REAL,
    Features,
    FoundName,
    Pool,
    Provenance,
    compare_words,
    compute_features,
    list_near,
    pool_concepts,
)
from spacy_sapbert.linking.ranker import OF_TREES, Ranker, Weights
from spacy_sapbert.linking.text import list_words
from spacy_sapbert.linking.trees import Trees

VOCABULARY, ANNOTATED = Provenance(True, False), Provenance(False, True)


def found(row: int, cui: str, alias: str, *likeness: float, preferred: int = 1):
    return FoundName(*likeness, Entry(row, cui, alias, alias, preferred))


def compute(
    mention: str,
    pool: Pool,
    *,
    covered: Any = None,
    real: Any = (),
) -> Features:
    """The features of a pool; none of the words of the mention are real but `real`."""
    words = list_words(mention, "english")
    nothing = [[False] * len(words)] * len(pool.near)
    known = {"heart": 1.0, "attack": 3.0}
    shared = Shared(
        words=[words],
        weights=[[2.0] * len(words)],
        real=[[word in real for word in words]],
        covered=[nothing if covered is None else covered],
        supports=lambda keys: np.zeros(keys.shape, bool),
        replaces=lambda word, other: 0.0,
        adds=lambda words: dict.fromkeys(words, 1.0),
        weigh=lambda words: {word: known.get(word, 4.0) for word in words},
        most=4.0,
    )
    pairs = list_near(mention, pool, lambda _: "english")
    return compute_features([pool], [pairs], shared)


def test_features_of_three_concepts_by_hand():
    names = [
        found(0, "A", "heart attack", 0.8, 0.5),
        found(1, "A", "cardiac infarct", 0.6, 0.2),
        found(2, "B", "hart attack", 0.7, 0.9),
        found(3, "C", "stroke", 0.5, 0.0),
    ]
    pool = pool_concepts(names, lambda _: VOCABULARY)
    assert pool.cuis == ["A", "B", "C"]
    features = compute("hart atack", pool, covered=[[0, 0], [1, 0], [0, 0]])
    assert features.keys() == {
        *(*OF_NAMES, *OF_MENTION),
        *("vocabulary_share", "mention_share", MISSPELLED, REAL, EXCLUDED),
    }
    assert features["cosine"].tolist() == [0.8, 0.7, 0.5]
    assert features["cosine_gap"] == pytest.approx([0, 0.1, 0.3])
    assert features["ngrams"].tolist() == [0.5, 0.9, 0.0]
    assert features["ngrams_rank"].tolist() == [1, 0, 30]
    # one letter of eleven; two of twelve; nearly all of ten
    assert features["characters"][:2] == pytest.approx([10 / 12, 10 / 11])
    assert features["edits"].tolist() == [2, 1, 5]
    assert features["edits_gap"].tolist() == [1, 0, 4]
    assert features["slip"].tolist() == [1, 1, 0]
    assert features[MISSPELLED].tolist() == [1, 1, 0]
    assert features[REAL].tolist() == features[EXCLUDED].tolist() == [0, 0, 0]
    assert features["same_first_word"].tolist() == [0, 1, 0]
    weights = np.exp(20 * (np.array([0.8, 0.6, 0.7, 0.5]) - 1))
    shares = [weights[0] + weights[1], weights[2], weights[3]]
    assert features["vocabulary_share"] == pytest.approx(shares / weights.sum())
    # One of four letters is wrong in "hart", and one of five in "atack".
    hart, atack = 3 / 4, 4 / 5
    assert features["covered"] == pytest.approx(
        [(hart + atack) / 2, (1 + atack) / 2, 0]
    )
    assert features["head_covered"] == pytest.approx([atack, atack, 0])
    # Of "heart attack" (rarity 1 and 3), and of "hart attack" (4, as in no name, and 3)
    assert features["name_covered"][:2] == pytest.approx(
        [(hart + 3 * atack) / 4, (4 + 3 * atack) / 7]
    )
    assert features["unnamed"].tolist() == [0, 0, 0]


def test_an_excluded_candidate_comes_last():
    ranker = Ranker(known=Weights(mean={}, scale={}, weight={}, temperature=10.0))
    features = {
        "cosine": np.array([0.9, 0.8, 0.7]),
        MISSPELLED: np.zeros(3),
        REAL: np.ones(3),
        EXCLUDED: np.array([1.0, 0.0, 0.0]),
    }
    assert ranker.scores(features).tolist() == [-91.0, 8.0, 7.0]
    assert Ranker().scores(features).tolist() == [-99.1, 0.8, 0.7]  # by cosine


def test_features_of_annotated_mentions_by_hand():
    names = [
        found(0, "A", "heart attack", 0.9, 0.4),
        found(1, "B", "mi", 1.0, 0.9),
        found(2, "A", "mi attack", 0.7, 0.0),
        found(3, "C", "stroke", 0.6, 0.0, preferred=0),
        found(4, "D", "of no concept", 0.99, 0.9),
    ]
    provenance = [VOCABULARY, ANNOTATED, Provenance(True, True), VOCABULARY]
    provenance.append(Provenance(False, False))
    pool = pool_concepts(names, lambda entry: provenance[entry.row])
    assert (pool.cuis, pool.first) == (["B", "A", "C"], "A")
    shared = Shared(
        words=[["mi"]],
        weights=[[1.0]],
        real=[[True]],
        covered=[[[True], [False], [False]]],
        supports=lambda keys: np.zeros(keys.shape, bool),
        replaces=lambda word, other: 0.0,
        adds=lambda words: dict.fromkeys(words, 1.0),
        weigh=lambda words: dict.fromkeys(words, 2.0),
        most=2.0,
    )
    features = compute_features(
        [pool],
        [list_near("mi", pool, lambda _: "english")],
        shared,
        counts=[{"A": 1, "B": 3, "": 1}],
        concept_counts={"B": 5, "C": 2},
    )
    assert features.keys() >= {*FEATURES}
    of_vocabulary = exp(-2) + exp(-6) + exp(-8)
    expected = {
        "vocabulary_cosine": [0, 0.9, 0.6],
        "vocabulary_gap": [0.9, 0, 0.3],
        "vocabulary_rank": [MISSING, 0, 1],
        "vocabulary_share": [0, 1 - exp(-8) / of_vocabulary, exp(-8) / of_vocabulary],
        "annotated_cosine": [1, 0.7, 0],
        "annotated_gap": [0, 0.3, 1],
        "annotated_rank": [0, 1, MISSING],
        "annotated_share": [1 / (1 + exp(-6)), exp(-6) / (1 + exp(-6)), 0],
        "ngrams_share": [1 / (1 + exp(-10)), exp(-10) / (1 + exp(-10)), 0],
        "ngrams_gap": [0, 0.5, 0.9],
        "exact_vocabulary": [0, 0, 0],
        "exact_annotated": [1, 0, 0],
        "preferred": [1, 1, 0],
        "mention_share": [0.6, 0.2, 0],
        "mention_concept_count": [log(4), log(2), 0],
        "mention_count": [log(6)] * 3,
        "other_concept": [0, 0, 1],
        "concept_count": [log(6), 0, log(3)],
        "concept_count_gap": [0, log(6), log(2)],
        "unnamed": [0, 0.5, 0.5],
    }
    assert {name: features[name].tolist() for name in expected} == {
        name: pytest.approx(values) for name, values in expected.items()
    }


@pytest.mark.parametrize(
    ("mention", "name", "expected"),
    [
        (
            "pain in heart type 2",
            "heart pain 2 3",
            (1, 3 / 4, 3 / 4, -1, False, False, False, True),
        ),
        ("chest pain", "pain", (1 / 2, 1, 1 / 2, -1, True, False, True, False)),
        ("pain", "pain of 2", (1, 1 / 2, 1 / 2, 2, False, True, False, False)),
        ("?", "pain", (0, 0, 0, 1, False, False, True, False)),
    ],
)
def test_compare_words_by_hand(mention, name, expected):
    words, its = split_words(mention), split_words(name)
    values = compare_words(Near(words, its, compare(words, its)))
    assert values == expected
    assert len(values) == len(GROUPED["words"])


@pytest.mark.parametrize(
    ("mention", "names", "covered", "real", "expected"),
    [
        # All of its names near the mention are excluded, or one by a word of its own.
        ("type 2 pain", ["type 1 pain"], [], [], True),
        ("type 2 pain", ["type 1 pain", "ache"], [], [], True),
        ("type 2 pain", ["type 1 pain", "ache"], ["2"], [], False),
        ("left pain", ["right pain", "ache"], [], ["left"], True),
        ("left pain", ["right pain", "ache"], ["left"], ["left"], False),
        ("rod-cone ache", ["cone-rod ache", "ache"], ["rod", "cone"], [], False),
    ],
)
def test_excluded_concepts_by_hand(mention, names, covered, real, expected):
    near = [found(n, "A", name, 0.9 - n / 9, n / 9) for n, name in enumerate(names)]
    pool = pool_concepts(near, lambda _: VOCABULARY)
    words = list_words(mention, "english")
    features = compute(
        mention, pool, covered=[[word in covered for word in words]], real=real
    )
    assert features[EXCLUDED].tolist() == [expected]


def test_pool_has_the_nearest_concepts_and_those_of_the_most_3_grams():
    names = [
        found(n, f"C{n:02}", f"name {n}", 1 - n / 100, max(n - 40, 0) / 100)
        for n in range(60)
    ]
    pool = pool_concepts(names, lambda _: VOCABULARY)
    near = [f"C{n:02}" for n in range(10)]
    assert pool.cuis == [*near, *(f"C{n}" for n in range(54, 60))]
    rows = [*range(32), *range(41, 60)]
    assert pool.vocabulary_weight == pytest.approx(sum(exp(-n / 5) for n in rows))
    with_grams = [exp(20 * ((n - 40) / 100 - 1)) for n in rows if n > 40]
    assert pool.ngrams_weight == pytest.approx(sum(with_grams))
    pool = pool_concepts(names[:40], lambda _: VOCABULARY)  # without 3-grams
    assert pool.cuis == near
    assert pool.vocabulary_weight == pytest.approx(sum(exp(-n / 5) for n in range(32)))


def test_ranker_may_use_everything_that_there_is():
    all_ones = dict.fromkeys(FEATURES, 1.0)
    trees = Trees(trees=[f"{name}>0: 0 1" for name in OF_TREES])
    ranker = Ranker(
        known=Weights(mean=all_ones, scale=all_ones, weight=all_ones),
        general=trees,
    )
    assert ranker.general == trees
