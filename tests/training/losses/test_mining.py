import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.miners import TripletMarginMiner
from torch import Tensor
from torch.nn.functional import normalize

from training.losses.sapbert import mine_all_pairs, mine_hard_pairs

MARGINS = [0.05, 0.1, 0.2, 0.3]


def as_pairs(mask: Tensor) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in mask.nonzero().tolist()}


def triplets_as_masks(
    triplets: tuple[Tensor, Tensor, Tensor],
) -> tuple[set[Any], set[Any]]:
    """Return the pairs of anchor and positive, and of anchor and negative."""
    anchors, ones, others = (each.tolist() for each in triplets)
    return set(zip(anchors, ones, strict=True)), set(zip(anchors, others, strict=True))


@pytest.mark.parametrize(
    ("margin", "distance"),
    [*((each, "euclidean") for each in MARGINS), (0.25, "cosine")],
)
def test_mine_hard_pairs_equals_the_library(
    margin: float, distance: Any, random_batch: Callable[..., Any]
) -> None:
    options = {"distance": CosineSimilarity()} if distance == "cosine" else {}
    miner = TripletMarginMiner(margin=margin, **options)
    # From pairs of rows to concepts that mostly have one row, which is no positive.
    for seed, concepts in itertools.product(range(20), (4, 12, 60)):
        raw, labels, names = random_batch(seed, concepts=concepts)
        vectors, names = normalize(raw, dim=1), names % 15
        settings = {"margin": margin, "distance": distance}
        mined = mine_hard_pairs(vectors, labels, **settings)
        expected = miner(vectors, labels)
        assert tuple(map(as_pairs, mined)) == triplets_as_masks(expected)
        # and without the triplets of equal names
        mined = mine_hard_pairs(vectors, labels, names, **settings)
        kept = names[expected[0]] != names[expected[2]]
        fewer = triplets_as_masks(tuple(each[kept] for each in expected))
        assert tuple(map(as_pairs, mined)) == fewer


def test_mine_hard_pairs_by_hand() -> None:
    # On a circle, at 0°, 60°, 90° and 180°: 1, √2 and 2 away from the first.
    angles = torch.tensor([0.0, 60.0, 90.0, 180.0]).deg2rad()
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    labels = torch.tensor([0, 0, 1, 2])
    positives, negatives = mine_hard_pairs(vectors, labels, margin=0.2)
    # From 0°: positive at 1, nearest negative at 1.414, farther by more than 0.2.
    # From 60°: positive at 1, negatives at 0.518 (90°) and 1.732 (180°).
    assert as_pairs(positives) == {(1, 0)}
    assert as_pairs(negatives) == {(1, 2)}


def test_mine_hard_pairs_leaves_out_equal_names_of_two_concepts() -> None:
    vectors = normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.0]]), dim=1)
    labels = torch.tensor([0, 0, 1])
    names = torch.tensor([7, 8, 7])  # the first and the last are the same string
    _, with_it = mine_hard_pairs(vectors, labels)
    _, without = mine_hard_pairs(vectors, labels, name_ids=names)
    assert as_pairs(with_it) == {(0, 2), (1, 2)}
    assert as_pairs(without) == {(1, 2)}


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_mine_hard_pairs_without_positives_or_negatives_gives_nothing(
    labels: list[int],
) -> None:
    vectors = normalize(torch.randn(3, 4), dim=1)
    positives, negatives = mine_hard_pairs(vectors, torch.tensor(labels), margin=2.0)
    assert not positives.any()
    assert not negatives.any()


def test_mine_hard_pairs_by_cosine_by_hand() -> None:
    # Cosines to row 0: a positive 0.8, another 0.5; negatives 0.6 and 0.54.
    cosines = torch.tensor([1.0, 0.8, 0.5, 0.6, 0.54])
    vectors = torch.stack([cosines, (1 - cosines**2).sqrt()], dim=1)
    labels = torch.tensor([0, 0, 0, 1, 2])
    positives, negatives = mine_hard_pairs(
        vectors, labels, margin=0.25, distance="cosine"
    )
    # 0.8 - 0.6 is 0.2 and hard enough, 0.8 - 0.54 is not, but 0.5 - 0.54 is
    assert positives[0].tolist() == [False, True, True, False, False]
    assert negatives[0].tolist() == [False, False, False, True, True]
    positives, negatives = mine_hard_pairs(
        vectors[[0, 1, 3, 4]], labels[[0, 1, 3, 4]], margin=0.25, distance="cosine"
    )
    assert positives[0].tolist() == [False, True, False, False]
    assert negatives[0].tolist() == [False, False, True, False]


def test_mine_all_pairs_leaves_out_negatives_of_equal_names() -> None:
    labels = torch.tensor([0, 0, 1])
    names = torch.tensor([7, 8, 7])
    positives, negatives = mine_all_pairs(torch.eye(3), labels)
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(0, 2), (1, 2), (2, 0), (2, 1)}
    positives, negatives = mine_all_pairs(torch.eye(3), labels, names)
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(1, 2), (2, 1)}
