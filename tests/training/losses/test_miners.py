import itertools

import pytest
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.miners import TripletMarginMiner
from torch import Tensor
from torch.nn.functional import normalize

from spacy_sapbert.errors import SapbertError
from training.losses.miners import (
    TRIPLETS,
    make_no_miner,
    make_triplet_miner,
    mine_hard_pairs,
)
from training.losses.registry import Miner

MARGINS = [0.05, 0.1, 0.2, 0.3]


def random_batch(seed: int, *, rows: int = 40, concepts: int = 12) -> tuple:
    """Draw a batch that has no triplet so near a bound that rounding decides."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        labels = torch.randint(concepts, (rows,), generator=generator)
        centres = torch.randn(concepts, 8, generator=generator)
        noise = torch.randn(rows, 8, generator=generator)
        vectors = normalize(centres[labels] + noise, dim=1)
        distances = torch.cdist(vectors, vectors)
        same = labels[:, None] == labels[None, :]
        gaps = distances[:, None, :] - distances[:, :, None]  # anchor, one, other
        gaps = gaps[same[:, :, None] & ~same[:, None, :]]
        from_bounds = (gaps[:, None] - torch.tensor([0.0, *MARGINS])).abs()
        if (from_bounds > 1e-5).all():
            return vectors, labels


def as_pairs(mask: Tensor) -> set:
    return {tuple(pair) for pair in mask.nonzero().tolist()}


def triplets_as_masks(triplets: tuple[Tensor, Tensor, Tensor]) -> tuple[set, set]:
    """Return the pairs of anchor and positive, and of anchor and negative."""
    anchors, ones, others = (each.tolist() for each in triplets)
    return set(zip(anchors, ones, strict=True)), set(zip(anchors, others, strict=True))


@pytest.mark.parametrize("triplets", TRIPLETS)
@pytest.mark.parametrize("margin", MARGINS)
def test_mining_equals_the_library(margin: float, triplets: str) -> None:
    miner = TripletMarginMiner(margin=margin, type_of_triplets=triplets)
    # From pairs of rows to concepts that mostly have one row, which is no positive.
    for seed, concepts in itertools.product(range(20), (4, 12, 60)):
        vectors, labels = random_batch(seed, concepts=concepts)
        names = torch.randint(
            15, (len(labels),), generator=torch.Generator().manual_seed(seed)
        )
        mined = mine_hard_pairs(vectors, labels, margin=margin, triplets=triplets)
        expected = miner(vectors, labels)
        assert tuple(map(as_pairs, mined)) == triplets_as_masks(expected)
        # and without the triplets of equal names
        ours = make_triplet_miner(margin=margin, triplets=triplets)
        kept = names[expected[0]] != names[expected[2]]
        fewer = triplets_as_masks(tuple(each[kept] for each in expected))
        assert tuple(map(as_pairs, ours(vectors, labels, names))) == fewer


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


def test_mining_of_hard_and_semihard_triplets_by_hand() -> None:
    # On a circle, at 0°, 60°, 50°, 70° and 180°: from the first a negative nearer than
    # its positive, one 0.147 farther, and one farther by 1.
    angles = torch.tensor([0.0, 60.0, 50.0, 70.0, 180.0]).deg2rad()
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    labels = torch.tensor([0, 0, 1, 2, 3])
    positives, negatives = mine_hard_pairs(vectors, labels, triplets="hard")
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(0, 2), (1, 2), (1, 3)}
    positives, negatives = mine_hard_pairs(vectors, labels, triplets="semihard")
    assert as_pairs(positives) == {(0, 1)}
    assert as_pairs(negatives) == {(0, 3)}


def test_mining_takes_a_negative_as_near_as_the_positive_for_hard() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    labels = torch.tensor([0, 0, 1])
    positives, negatives = mine_hard_pairs(vectors, labels, triplets="hard")
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(0, 2), (1, 2)}
    positives, negatives = mine_hard_pairs(vectors, labels, triplets="semihard")
    assert not positives.any()
    assert not negatives.any()


def test_mining_leaves_out_equal_names_of_two_concepts() -> None:
    vectors = normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.0]]), dim=1)
    labels = torch.tensor([0, 0, 1])
    names = torch.tensor([7, 8, 7])  # the first and the last are the same string
    _, with_it = mine_hard_pairs(vectors, labels)
    _, without = mine_hard_pairs(vectors, labels, names=names)
    assert as_pairs(with_it) == {(0, 2), (1, 2)}
    assert as_pairs(without) == {(1, 2)}


@pytest.mark.parametrize("triplets", TRIPLETS)
@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]])
def test_mining_without_positives_or_negatives_gives_nothing(
    labels: list, triplets: str
) -> None:
    vectors = normalize(torch.randn(3, 4), dim=1)
    positives, negatives = mine_hard_pairs(
        vectors, torch.tensor(labels), margin=2.0, triplets=triplets
    )
    assert not positives.any()
    assert not negatives.any()


@pytest.mark.parametrize("miner", [make_triplet_miner(), make_no_miner()])
def test_miner_checks_its_rows(miner: Miner) -> None:
    with pytest.raises(SapbertError, match="3 vectors and 2 labels"):
        miner(torch.eye(3), torch.tensor([0, 0]), None)


def test_mining_of_unknown_triplets_is_an_error() -> None:
    with pytest.raises(SapbertError, match="one of all, hard, semihard.*'easy'"):
        mine_hard_pairs(torch.eye(2), torch.tensor([0, 0]), triplets="easy")
    with pytest.raises(SapbertError, match="one of all, hard, semihard.*'easy'"):
        make_triplet_miner(triplets="easy")
    with pytest.raises(SapbertError, match="one of euclidean, cosine.*'dot'"):
        make_triplet_miner(distance="dot")


def test_mining_by_cosine_by_hand() -> None:
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


@pytest.mark.parametrize("triplets", TRIPLETS)
def test_mining_by_cosine_equals_the_library(triplets: str) -> None:
    miner = TripletMarginMiner(
        margin=0.25, type_of_triplets=triplets, distance=CosineSimilarity()
    )
    ours = make_triplet_miner(margin=0.25, triplets=triplets, distance="cosine")
    for seed in range(20):
        vectors, labels = random_batch(seed)
        mined = tuple(map(as_pairs, ours(vectors, labels, None)))
        assert mined == triplets_as_masks(miner(vectors, labels))


def test_no_miner_keeps_all_pairs_but_those_of_equal_names() -> None:
    labels = torch.tensor([0, 0, 1])
    names = torch.tensor([7, 8, 7])
    miner = make_no_miner()
    positives, negatives = miner(torch.eye(3), labels, None)
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(0, 2), (1, 2), (2, 0), (2, 1)}
    positives, negatives = miner(torch.eye(3), labels, names)
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(1, 2), (2, 1)}
