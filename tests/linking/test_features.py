"""Features of candidates with annotated mentions, and words, by hand."""

from math import exp, log

import numpy as np
import pytest

from spacy_sapbert.linking.candidates import Entry
from spacy_sapbert.linking.features import (
    FEATURES,
    MISSING,
    POOL,
    POOL_BY_NGRAMS,
    POOL_ROWS,
    FoundName,
    Provenance,
    Shared,
    compare_words,
    compute_features,
    find_head,
    list_near,
    pool_concepts,
    split_words,
)

VOCABULARY, ANNOTATED = Provenance(True, False), Provenance(False, True)


def found(row: int, cui: str, alias: str, *likeness: float, preferred: int = 1):
    return FoundName(*likeness, Entry(row, cui, alias, alias, preferred))


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
        words=["mi"],
        weights=np.ones(1),
        real=np.ones(1, bool),
        covered=np.array([[True], [False], [False]]),
        excluded=np.zeros(3, bool),
        narrowed=np.array([False, True, False]),
        name_weights={},
        most=2.0,
    )
    features = compute_features(
        pool,
        list_near("mi", pool, lambda _: "english"),
        shared,
        counts={"A": 1, "B": 3, "": 1},
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
        "narrowed": [0, 1, 0],
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
    assert compare_words(split_words(mention), split_words(name)) == expected


def test_find_head_by_hand():
    heads = {
        "cancer of lung": "cancer",
        "lung cancer type 2": "cancer",
        "b cell 2": "cell",
        "of lung": "lung",
        "7 b": "",
        "no of pain": "no",
    }
    assert {text: find_head(text.split()) for text in heads} == heads


def test_pool_has_the_nearest_concepts_and_those_of_the_most_3_grams():
    names = [
        found(n, f"C{n:02}", f"name {n}", 1 - n / 100, max(n - 40, 0) / 100)
        for n in range(60)
    ]
    pool = pool_concepts(names, lambda _: VOCABULARY)
    near = [f"C{n:02}" for n in range(POOL)]
    assert pool.cuis == [*near, *(f"C{n}" for n in range(60 - POOL_BY_NGRAMS, 60))]
    rows = [*range(POOL_ROWS), *range(41, 60)]
    assert pool.vocabulary_weight == pytest.approx(sum(exp(-n / 5) for n in rows))
    with_grams = [exp(20 * ((n - 40) / 100 - 1)) for n in rows if n > 40]
    assert pool.ngrams_weight == pytest.approx(sum(with_grams))
