"""Losses, miners and schedules against their oracles and numbers by hand."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as library
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.miners import TripletMarginMiner
from torch import Tensor
from torch.nn.functional import cosine_embedding_loss, normalize

from training.losses.from_library import (
    make_circle_loss,
    make_cosine_loss,
    make_info_nce_loss,
    make_lifted_structure_loss,
    make_triplet_loss,
    nca_loss,
)
from training.losses.functions import Loss, Miner
from training.losses.sapbert import (
    hierarchical_loss,
    mine_all_pairs,
    mine_hard_pairs,
    multi_similarity_loss,
)
from training.losses.schedules import make_constant, make_linear

BOUNDS = torch.tensor([0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6])  # margins of the tests


@pytest.fixture(scope="session")
def random_batch() -> Callable[..., Any]:
    """Draw rows, labels and names; no triplet is so near a bound that rounding decides.

    Some rows have the same name, as their numbers show.
    """

    def draw(seed: int, *, rows: int = 40, concepts: int = 12) -> Any:
        generator = torch.Generator().manual_seed(seed)
        while True:
            labels = torch.randint(concepts, (rows,), generator=generator)
            centres = torch.randn(concepts, 8, generator=generator)
            raw = centres[labels] + torch.randn(rows, 8, generator=generator)
            unit = torch.nn.functional.normalize(raw, dim=1)
            distances = torch.cdist(unit, unit)
            same = labels[:, None] == labels[None, :]
            gaps = distances[:, None, :] - distances[:, :, None]  # anchor, one, other
            gaps = gaps[same[:, :, None] & ~same[:, None, :]]
            if ((gaps[:, None] - BOUNDS).abs() > 1e-5).all():
                return raw, labels, torch.randint(rows, (rows,), generator=generator)

    return draw


MINERS: dict[str, Miner] = {
    "all": mine_hard_pairs,
    "wide": partial(mine_hard_pairs, margin=0.6),
    "none": mine_all_pairs,
}
LOSSES: list[Loss] = [
    multi_similarity_loss,
    make_cosine_loss(),
    make_triplet_loss(),
    nca_loss,
    make_lifted_structure_loss(),
    make_info_nce_loss(),
    make_circle_loss(),
]
Masks = tuple[Tensor, Tensor]


def cosine_by_torch(rows: Tensor, masks: Masks) -> Tensor:
    total = torch.zeros(())
    for mask, target in zip(masks, (1, -1), strict=True):
        anchors, others = mask.nonzero(as_tuple=True)
        targets = torch.full((len(anchors),), target)
        total = total + cosine_embedding_loss(rows[anchors], rows[others], targets)
    return total


def nca_by_definition(rows: Tensor, masks: Masks) -> Tensor:
    rows, (ones, others) = normalize(rows, dim=1), masks
    terms = []
    for anchor in ones.any(dim=1).nonzero().flatten().tolist():
        chances = (-20 * (rows - rows[anchor]).square().sum(dim=1)).exp()
        right, wrong = chances[ones[anchor]].sum(), chances[others[anchor]].sum()
        terms.append(-(right / (right + wrong)).log())
    return torch.stack(terms).mean()


def assert_same_loss_and_gradient(
    loss: Loss, raw: Tensor, masks: Masks, oracle: Callable[[Tensor], Tensor]
) -> None:
    ours = raw.clone().requires_grad_()
    theirs = raw.clone().requires_grad_()
    value = loss(normalize(ours, dim=1), *masks)
    expected = oracle(theirs)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)
    value.backward()
    expected.backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    scale = theirs.grad.abs().max().item()
    assert torch.allclose(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5 * (1 + scale))


def multi_similarity_by_library(rows: Tensor, masks: Masks) -> Tensor:
    # two labels for each pair of rows do: the library takes the pairs that it is given
    pairs = [mask.nonzero(as_tuple=True) for mask in masks]
    oracle = library.MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
    return oracle(rows, torch.arange(len(rows)), (*pairs[0], *pairs[1]))


ORACLES = [
    (make_cosine_loss(), cosine_by_torch),
    (nca_loss, nca_by_definition),
    (multi_similarity_loss, multi_similarity_by_library),
]


@pytest.mark.parametrize("mining", sorted(MINERS))
@pytest.mark.parametrize(("loss", "oracle"), ORACLES)
def test_loss_equals_its_oracle_on_the_mined_pairs(mining, loss, oracle, random_batch):
    for seed in range(10):
        raw, labels, names = random_batch(seed)
        masks = MINERS[mining](normalize(raw, dim=1), labels, names)
        assert_same_loss_and_gradient(loss, raw, masks, partial(oracle, masks=masks))


# Three rows, twice; only the first has pairs: a positive of cosine 0.6, a negative of
# 0.8, so of the distances √0.8 and √0.4. (The library ignores a pair that is alone.)
BY_HAND = [
    (make_triplet_loss(), math.sqrt(0.8) - math.sqrt(0.4) + 0.2),
    (make_lifted_structure_loss(), (0.5 - math.sqrt(0.4) + math.sqrt(0.8)) ** 2 / 2),
    (make_info_nce_loss(), math.log(1 + math.exp((0.8 - 0.6) / 0.07))),
    (
        make_circle_loss(),
        # pull: weight 1.25 − 0.6 over 0.75 − 0.6; push: weight 0.8 + 0.25 over 0.55
        256 * (0.65 * 0.15 + 1.05 * 0.55),
    ),
]


@pytest.mark.parametrize(("loss", "expected"), BY_HAND)
def test_loss_by_hand(loss, expected):
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]]).repeat(2, 1)
    positives = torch.zeros(6, 6, dtype=torch.bool)
    negatives = torch.zeros(6, 6, dtype=torch.bool)
    positives[0, 1] = negatives[0, 2] = positives[3, 4] = negatives[3, 5] = True
    value = loss(vectors, positives, negatives)
    assert value.item() == pytest.approx(expected, rel=1e-5)


def test_triplet_loss_averages_over_the_violating_triplets_only():
    # On a circle, at 0°, 60° and 90°, and at 180°: 1, √2 and 2 away from the first.
    angles = torch.tensor([0.0, 60.0, 90.0, 180.0]).deg2rad()
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    masks = mine_all_pairs(vectors, torch.tensor([0, 0, 1, 2]), None)
    # From 0° both negatives are farther than 1 + 0.2, and from 60° the one at 180°.
    expected = 1 - 2 * math.sin(math.radians(15)) + 0.2
    value = make_triplet_loss()(vectors, *masks)
    assert value.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("pairs", ["none", "positive", "negative", "equal rows"])
def test_loss_of_few_pairs_is_finite_and_float32(pairs, loss):
    rows = normalize(torch.arange(1.0, 13.0).view(4, 3).sin(), dim=1)
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    one = nothing.clone()
    one[0, 1] = True
    masks = {"positive": (one, nothing), "negative": (nothing, one)}.get(
        pairs, (nothing, nothing)
    )
    if pairs == "equal rows":
        # The same name twice: the distance is 0, where a square root has no gradient.
        rows = torch.tensor([[0.6, 0.8], [0.6, 0.8], [0.6, 0.8], [-0.8, 0.6]])
        rows = rows.bfloat16()
        masks = mine_all_pairs(rows, torch.tensor([0, 0, 1, 1]), None)
    vectors = rows.detach().requires_grad_()
    value = loss(vectors, *masks)
    value.backward()
    assert (value.shape, value.dtype) == ((), torch.float32)
    assert torch.isfinite(value)
    assert torch.isfinite(vectors.grad).all()
    if pairs == "none":
        assert value.item() == 0
        assert not vectors.grad.any()


LOSS = partial(multi_similarity_loss, scale_pos=2.0, scale_neg=2.0, offset=0.5)


def test_hierarchical_loss_equals_a_plain_loop():
    for seed in range(5):
        torch.manual_seed(seed)
        vectors = normalize(torch.randn(12, 4), dim=1)
        distances = torch.randint(4, (12, 12))
        distances = torch.minimum(distances, distances.T).fill_diagonal_(0)
        names = torch.randint(8, (12,))
        expected = 0.0
        for threshold in (0, 1, 2):
            for i in range(12):
                pull = push = 0.0
                for j in range(12):
                    if names[i] == names[j]:
                        continue
                    cosine = float(vectors[i] @ vectors[j])
                    if distances[i, j] <= threshold:
                        pull += math.exp(-2 * (cosine - 0.5))
                    else:
                        push += math.exp(2 * (cosine - 0.5))
                expected += (math.log(1 + pull) / 2 + math.log(1 + push) / 2) / 12
        loss = hierarchical_loss(vectors, distances, names, [0, 1, 2], LOSS)
        assert loss.item() == pytest.approx(expected, abs=1e-5)


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
    [(0.05, "euclidean"), (0.2, "euclidean"), (0.25, "cosine")],
)
def test_mine_hard_pairs_equals_the_library(margin, distance, random_batch):
    options = {"distance": CosineSimilarity()} if distance == "cosine" else {}
    miner = TripletMarginMiner(margin=margin, **options)
    # From pairs of rows to concepts that mostly have one row, which is no positive.
    for seed, concepts in itertools.product(range(10), (4, 12, 60)):
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


def test_mine_all_pairs_leaves_out_negatives_of_equal_names():
    labels = torch.tensor([0, 0, 1])
    names = torch.tensor([7, 8, 7])
    positives, negatives = mine_all_pairs(torch.eye(3), labels)
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(0, 2), (1, 2), (2, 0), (2, 1)}
    positives, negatives = mine_all_pairs(torch.eye(3), labels, names)
    assert as_pairs(positives) == {(0, 1), (1, 0)}
    assert as_pairs(negatives) == {(1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (make_constant(), [1, 1, 1]),
        (make_constant(3), [0.25, 0.5, 0.75, 1, 1, 1]),
        (make_linear(), [1, 0.75, 0.5, 0.25]),
        (make_linear(1), [0.5, 1, 0.75, 0.5, 0.25]),
        (make_linear(7), [1 / 8, 2 / 8, 3 / 8]),
    ],
)
def test_schedule_by_hand(schedule, expected):
    total = len(expected)
    found = [schedule(step, total) for step in range(total)]
    assert found == pytest.approx(expected)
