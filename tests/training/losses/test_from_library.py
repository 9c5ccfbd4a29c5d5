import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from pytorch_metric_learning import losses as library
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
from training.losses.registry import Loss, Miner
from training.losses.sapbert import (
    mine_all_pairs,
    mine_hard_pairs,
    multi_similarity_loss,
)

RandomBatch = Callable[..., tuple[Tensor, Tensor, Tensor]]
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


ORACLES = [(make_cosine_loss(), cosine_by_torch), (nca_loss, nca_by_definition)]


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


@pytest.mark.parametrize("mining", sorted(MINERS))
@pytest.mark.parametrize(("loss", "oracle"), ORACLES)
def test_loss_equals_its_oracle_on_the_mined_pairs(
    mining: str,
    loss: Loss,
    oracle: Callable[[Tensor, Masks], Tensor],
    random_batch: RandomBatch,
) -> None:
    for seed in range(10):
        raw, labels, names = random_batch(seed)
        masks = MINERS[mining](normalize(raw, dim=1), labels, names)
        assert_same_loss_and_gradient(loss, raw, masks, partial(oracle, masks=masks))


@pytest.mark.parametrize("scale", [20.0, 1.0])
def test_nca_loss_of_all_pairs_equals_the_library(
    scale: float, random_batch: RandomBatch
) -> None:
    loss, oracle = partial(nca_loss, scale=scale), library.NCALoss(softmax_scale=scale)
    for seed in range(10):
        raw, labels, _ = random_batch(seed)
        masks = mine_all_pairs(raw, labels)
        assert_same_loss_and_gradient(loss, raw, masks, partial(oracle, labels=labels))


# Three rows, twice; only the first has pairs: a positive of cosine 0.6, a negative of
# 0.8, so of the distances √0.8 and √0.4. (The library ignores a pair that is alone.)
BY_HAND = [
    (make_cosine_loss(), 0.4 + 0.8),
    (make_triplet_loss(), math.sqrt(0.8) - math.sqrt(0.4) + 0.2),
    (nca_loss, math.log(1 + math.exp(20 * (0.8 - 0.4)))),
    (make_lifted_structure_loss(), (0.5 - math.sqrt(0.4) + math.sqrt(0.8)) ** 2 / 2),
    (make_info_nce_loss(), math.log(1 + math.exp((0.8 - 0.6) / 0.07))),
    (
        make_circle_loss(),
        # pull: weight 1.25 − 0.6 over 0.75 − 0.6; push: weight 0.8 + 0.25 over 0.55
        256 * (0.65 * 0.15 + 1.05 * 0.55),
    ),
]


@pytest.mark.parametrize(("loss", "expected"), BY_HAND)
def test_loss_by_hand(loss: Loss, expected: float) -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]]).repeat(2, 1)
    positives = torch.zeros(6, 6, dtype=torch.bool)
    negatives = torch.zeros(6, 6, dtype=torch.bool)
    positives[0, 1] = negatives[0, 2] = positives[3, 4] = negatives[3, 5] = True
    value = loss(vectors, positives, negatives)
    assert value.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_without_pairs_is_zero_with_a_gradient(
    loss: Loss,
) -> None:
    vectors = torch.eye(3, requires_grad=True)
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    value = loss(vectors, nothing, nothing)
    value.backward()
    assert value.shape == ()
    assert value.item() == 0
    assert torch.equal(vectors.grad, torch.zeros(3, 3))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", ["positives", "negatives"])
def test_loss_of_one_kind_of_pairs_has_a_finite_gradient(
    missing: str, loss: Loss
) -> None:
    vectors = normalize(torch.arange(1.0, 13.0).view(4, 3).sin(), dim=1)
    vectors.requires_grad_()
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    one = nothing.clone()
    one[0, 1] = True
    masks = (nothing, one) if missing == "positives" else (one, nothing)
    value = loss(vectors, *masks)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(vectors.grad).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_is_float32_and_finite_on_equal_rows_in_bfloat16(
    loss: Loss,
) -> None:
    # The same name twice: the distance is 0, where a square root has no gradient.
    rows = torch.tensor([[0.6, 0.8], [0.6, 0.8], [0.6, 0.8], [-0.8, 0.6]])
    vectors = rows.bfloat16().requires_grad_()
    masks = mine_all_pairs(vectors, torch.tensor([0, 0, 1, 1]), None)
    value = loss(vectors, *masks)
    value.backward()
    assert value.dtype == torch.float32
    assert torch.isfinite(value)
    assert torch.isfinite(vectors.grad).all()


def test_triplet_loss_averages_over_the_violating_triplets_only() -> None:
    # On a circle, at 0°, 60° and 90°, and at 180°: 1, √2 and 2 away from the first.
    angles = torch.tensor([0.0, 60.0, 90.0, 180.0]).deg2rad()
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    masks = mine_all_pairs(vectors, torch.tensor([0, 0, 1, 2]), None)
    # From 0° both negatives are farther than 1 + 0.2, and from 60° the one at 180°.
    expected = 1 - 2 * math.sin(math.radians(15)) + 0.2
    value = make_triplet_loss()(vectors, *masks)
    assert value.item() == pytest.approx(expected, abs=1e-6)
