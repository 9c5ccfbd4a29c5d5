import itertools

import pytest
import torch
from pytorch_metric_learning.miners import TripletMarginMiner
from torch import Tensor
from torch.nn.functional import normalize

from spacy_sapbert.errors import SapbertError
from training.mining import mine_hard_pairs


def random_batch(seed: int, *, rows: int = 40, concepts: int = 12) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(concepts, (rows,), generator=generator)
    centres = torch.randn(concepts, 8, generator=generator)
    noise = torch.randn(rows, 8, generator=generator)
    return normalize(centres[labels] + noise, dim=1), labels


def as_pairs(mask: Tensor) -> set:
    return {tuple(pair) for pair in mask.nonzero().tolist()}


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.2, 0.3])
def test_mining_equals_the_library(margin: float) -> None:
    miner = TripletMarginMiner(margin=margin, type_of_triplets="all")
    for seed in range(50):
        vectors, labels = random_batch(seed)
        positives, negatives = mine_hard_pairs(vectors, labels, margin=margin)
        anchors, ones, others = miner(vectors, labels)
        assert as_pairs(positives) == set(
            zip(anchors.tolist(), ones.tolist(), strict=True)
        )
        assert as_pairs(negatives) == set(
            zip(anchors.tolist(), others.tolist(), strict=True)
        )


def test_mining_equals_the_definition_by_triplets() -> None:
    vectors, labels = random_batch(3, rows=12, concepts=4)
    expected_positives, expected_negatives = set(), set()
    for a, p, n in itertools.permutations(range(12), 3):
        if labels[a] == labels[p] and labels[a] != labels[n]:
            to_negative = (vectors[a] - vectors[n]).norm()
            to_positive = (vectors[a] - vectors[p]).norm()
            if to_negative - to_positive <= 0.2:
                expected_positives.add((a, p))
                expected_negatives.add((a, n))
    positives, negatives = mine_hard_pairs(vectors, labels)
    assert as_pairs(positives) == expected_positives
    assert as_pairs(negatives) == expected_negatives


def test_mining_by_hand() -> None:
    # On a circle, at 0°, 60°, 90° and 180°: 1, √2 and 2 away from the first.
    angles = torch.tensor([0.0, 60.0, 90.0, 180.0]).deg2rad()
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    labels = torch.tensor([0, 0, 1, 2])
    positives, negatives = mine_hard_pairs(vectors, labels, margin=0.2)
    # From 0°: positive at 1, nearest negative at 1.414, farther by more than 0.2.
    # From 60°: positive at 1, negatives at 0.518 (90°) and 1.732 (180°).
    assert as_pairs(positives) == {(1, 0)}
    assert as_pairs(negatives) == {(1, 2)}


def test_mining_leaves_out_equal_names_of_two_concepts() -> None:
    vectors = normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.0]]), dim=1)
    labels = torch.tensor([0, 0, 1])
    names = torch.tensor([7, 8, 7])  # the first and the last are the same string
    _, with_it = mine_hard_pairs(vectors, labels)
    _, without = mine_hard_pairs(vectors, labels, names=names)
    assert as_pairs(with_it) == {(0, 2), (1, 2)}
    assert as_pairs(without) == {(1, 2)}


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_mining_without_positives_or_negatives_gives_nothing(labels: list) -> None:
    vectors = normalize(torch.randn(3, 4), dim=1)
    positives, negatives = mine_hard_pairs(vectors, torch.tensor(labels))
    assert not positives.any()
    assert not negatives.any()


def test_mining_counts_its_rows() -> None:
    with pytest.raises(SapbertError, match="3 vectors and 2 labels"):
        mine_hard_pairs(torch.eye(3), torch.tensor([0, 0]))
