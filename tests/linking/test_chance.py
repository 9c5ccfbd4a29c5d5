"""The probability of the first candidate, by hand."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from spacy_sapbert.linking.chance import (
    MARGIN,
    OF_CHANCE,
    OF_FIRST,
    OF_MODEL,
    OF_TAUGHT,
    Chance,
    Taught,
    compute_margin,
    describe_first,
    find_first,
    load_chance,
)
from spacy_sapbert.linking.features import EXCLUDED, MISSPELLED, REAL, Features
from spacy_sapbert.linking.groups import Groups
from spacy_sapbert.linking.trees import Trees


def make_features(count: int, **columns: Any) -> Features:
    names = {*OF_FIRST, *OF_TAUGHT, EXCLUDED, MISSPELLED} - {MARGIN, "prior"}
    zeros = {name: np.zeros(count) for name in names}
    given = {name: np.array(values, dtype=float) for name, values in columns.items()}
    return {**zeros, REAL: np.ones(count), **given}


@pytest.mark.parametrize(
    ("scores", "margin"),
    [
        ([3.0], 10),
        ([3.0, 1.0], 2),
        ([1.0, 3.0, 1.0], 2 - np.log(2)),
        ([3.0, 3.0, 1.0], 2),  # one of the first two is meant
        ([3.0, 3.0], 10),
        ([99.0, 1.0], 10),
    ],
)
def test_margin_by_hand(scores, margin):
    groups = Groups([len(scores)])
    assert compute_margin(np.array(scores), groups) == pytest.approx([margin], abs=1e-6)


def test_first_candidate_by_hand():
    features = make_features(2, standard=[0.5, 0.9], covered=[1, 0.25], letters=[7, 7])
    scores, groups = np.array([0.0, 1.0]), Groups([2])
    (place,) = find_first(scores, groups)
    assert place == 1
    first = describe_first(features, scores, groups, np.array([place]))
    assert first.keys() == {*OF_CHANCE}
    assert (first["standard"], first["covered"], first["letters"]) == (0.9, 0.25, 7)
    assert first["standard_ahead"] == pytest.approx(0.4)
    assert first["covered_ahead"] == pytest.approx(-0.75)
    assert first[MARGIN] == 1
    for real, misspelled, doubt in ((1, 1, 0), (0, 0, 0), (0, 1, 1)):
        features |= {REAL: np.full(2, real), MISSPELLED: np.full(2, misspelled)}
        first = describe_first(features, np.ones(2), groups, np.zeros(1, int))
        assert first["doubt"] == doubt


def test_probability_by_hand():
    trees = Trees(trees=["standard>0.5: -1 2", "margin>1: 0 0.5"])
    chance = Chance(trees=trees, intercept=-0.25, names=[3.0, 1.0])
    features = make_features(2, standard=[0.9, 0.3], mention_share=[0.5, 0])
    features["short"] = np.zeros(2)

    def squash(logit: float) -> Any:
        return pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)

    scores = np.array([3.0, 1.0])
    assert chance.probability(features, scores) == squash(2.25)
    assert chance.probability(features, scores[::-1]) == squash(-0.75)
    assert chance.probability(features, scores, named=True) == squash(3.0)
    assert chance.probability(features | {"short": np.ones(2)}, scores, named=True) == (
        squash(1.0)
    )
    assert (chance.of_name(short=False), chance.of_name(short=True)) == (
        squash(3.0),
        squash(1.0),
    )
    excluded = features | {EXCLUDED: np.array([1.0, 0.0])}
    assert chance.probability(excluded, scores) == 0
    taught = Taught(weights={"prior": 0.5, "mention_share": 4.0}, intercept=-1.0)
    corrected = chance.model_copy(update={"taught": taught})
    assert corrected.probability(features, scores) == squash(0.5 * 2.25 + 4 * 0.5 - 1)


def test_models_ask_for_what_there_is():
    trees = Trees(trees=["standard>0.5: -1 2"])
    with pytest.raises(ValidationError, match="its trees depend"):
        Chance(trees=Trees(trees=["unheard_of>0: 0 1"]), intercept=0, names=[0, 0])
    with pytest.raises(ValidationError, match="its trees depend"):
        Chance(trees=trees, intercept=0, names=[0])
    with pytest.raises(ValidationError, match="its probability depends"):
        Taught(weights={"unheard_of": 1.0}, intercept=0)
    every = Trees(trees=[f"{name}>0: 0 1" for name in OF_CHANCE])
    assert Chance(trees=every, intercept=0, names=[0, 0]).trees == every


@pytest.mark.parametrize("model", OF_MODEL)
def test_shipped_models_ask_for_what_they_may_have(model):
    chance = load_chance(model)
    assert {*chance.trees.names} <= {*OF_MODEL[model]}
    assert len(chance.trees.trees) > 50
    # A name is more likely right than not, an abbreviation less likely than others.
    assert 0.8 < chance.of_name(short=False) < 1
    assert chance.of_name(short=True) < chance.of_name(short=False)
