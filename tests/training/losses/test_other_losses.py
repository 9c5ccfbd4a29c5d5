import math
from collections.abc import Callable

import pytest
import torch
from pytorch_metric_learning import losses as library
from pytorch_metric_learning.miners import TripletMarginMiner
from torch import Tensor
from torch.nn.functional import cosine_embedding_loss, normalize

from training.losses.miners import make_no_miner, make_triplet_miner
from training.losses.multi_similarity import make_multi_similarity_loss
from training.losses.other_losses import (
    make_circle_loss,
    make_cosine_loss,
    make_info_nce_loss,
    make_lifted_structure_loss,
    make_nca_loss,
    make_triplet_loss,
)
from training.losses.registry import Loss, Miner

MINERS = {
    "all": make_triplet_miner(),
    "hard": make_triplet_miner(triplets="hard"),
    "semihard": make_triplet_miner(triplets="semihard"),
    "wide": make_triplet_miner(margin=0.6),
    "none": make_no_miner(),
}
FACTORIES = [
    make_multi_similarity_loss,
    make_cosine_loss,
    make_triplet_loss,
    make_nca_loss,
    make_lifted_structure_loss,
    make_info_nce_loss,
    make_circle_loss,
]
# Ours, and what the library calls the same.
ORACLES = [
    (make_triplet_loss(), library.TripletMarginLoss(margin=0.2)),
    (make_triplet_loss(margin=0.5), library.TripletMarginLoss(margin=0.5)),
    (make_lifted_structure_loss(), library.LiftedStructureLoss(neg_margin=0.5)),
    (make_lifted_structure_loss(margin=1.0), library.LiftedStructureLoss(neg_margin=1)),
    (make_info_nce_loss(), library.NTXentLoss(temperature=0.07)),
    (make_info_nce_loss(temperature=0.5), library.NTXentLoss(temperature=0.5)),
    (make_circle_loss(), library.CircleLoss(m=0.25, gamma=256)),
    (make_circle_loss(margin=0.4, scale=80.0), library.CircleLoss(m=0.4, gamma=80)),
]


def random_rows(seed: int, *, rows: int = 40, concepts: int = 12) -> tuple:
    """Draw a batch that has no triplet so near a bound that rounding decides."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        labels = torch.randint(concepts, (rows,), generator=generator)
        centres = torch.randn(concepts, 8, generator=generator)
        raw = centres[labels] + torch.randn(rows, 8, generator=generator)
        distances = torch.cdist(normalize(raw, dim=1), normalize(raw, dim=1))
        same = labels[:, None] == labels[None, :]
        gaps = distances[:, None, :] - distances[:, :, None]  # anchor, one, other
        gaps = gaps[same[:, :, None] & ~same[:, None, :]]
        if ((gaps[:, None] - torch.tensor([0.0, 0.2, 0.5])).abs() > 1e-5).all():
            # Some rows are the same name, as their numbers say.
            return raw, labels, torch.randint(rows, (rows,), generator=generator)


def assert_same_loss_and_gradient(
    loss: Loss,
    raw: Tensor,
    masks: tuple[Tensor, Tensor],
    oracle: Callable[[Tensor], Tensor],
) -> None:
    ours = raw.clone().requires_grad_()
    theirs = raw.clone().requires_grad_()
    value = loss(normalize(ours, dim=1), *masks)
    expected = oracle(theirs)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5, abs=1e-5)
    value.backward()
    expected.backward()
    scale = theirs.grad.abs().max().item()
    assert torch.allclose(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5 * (1 + scale))


@pytest.mark.parametrize("mining", sorted(MINERS))
@pytest.mark.parametrize(("loss", "oracle"), ORACLES)
def test_loss_equals_the_library_on_the_mined_pairs(
    mining: str, loss: Loss, oracle: torch.nn.Module
) -> None:
    miner: Miner = MINERS[mining]
    for seed in range(10):
        raw, labels, names = random_rows(seed)
        masks = miner(normalize(raw, dim=1), labels, names)
        pairs = (*masks[0].nonzero(as_tuple=True), *masks[1].nonzero(as_tuple=True))
        assert_same_loss_and_gradient(
            loss, raw, masks, lambda rows, pairs=pairs: oracle(rows, None, pairs)
        )


def test_triplet_loss_equals_the_library_on_the_mined_triplets() -> None:
    # The triplets that the masks add are those that do not violate the margin.
    oracle = library.TripletMarginLoss(margin=0.2)
    miner = TripletMarginMiner(margin=0.2)
    for seed in range(10):
        raw, labels, _ = random_rows(seed)
        masks = make_triplet_miner()(normalize(raw, dim=1), labels, None)
        triplets = miner(raw, labels)
        assert_same_loss_and_gradient(
            make_triplet_loss(),
            raw,
            masks,
            lambda rows, triplets=triplets: oracle(rows, None, triplets),
        )


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_nca_loss_equals_the_library_without_mining(scale: float) -> None:
    oracle = library.NCALoss(softmax_scale=scale)
    for seed in range(10):
        raw, labels, _ = random_rows(seed)
        assert_same_loss_and_gradient(
            make_nca_loss(scale=scale),
            raw,
            make_no_miner()(raw, labels, None),
            lambda rows, labels=labels: oracle(rows, labels),
        )


@pytest.mark.parametrize("mining", sorted(MINERS))
def test_nca_loss_equals_its_definition_on_the_mined_pairs(mining: str) -> None:
    for seed in range(5):
        raw, labels, names = random_rows(seed)
        positives, negatives = MINERS[mining](normalize(raw, dim=1), labels, names)

        def by_definition(
            rows: Tensor, ones: Tensor = positives, others: Tensor = negatives
        ) -> Tensor:
            rows = normalize(rows, dim=1)
            terms = []
            for anchor in ones.any(dim=1).nonzero().flatten().tolist():
                apart = (rows - rows[anchor]).square().sum(dim=1)
                chances = (-20 * apart).exp()
                right = chances[ones[anchor]].sum()
                wrong = chances[others[anchor]].sum()
                terms.append(-(right / (right + wrong)).log())
            return torch.stack(terms).mean()

        assert_same_loss_and_gradient(
            make_nca_loss(), raw, (positives, negatives), by_definition
        )


@pytest.mark.parametrize("mining", sorted(MINERS))
def test_cosine_loss_equals_torch_on_the_mined_pairs(mining: str) -> None:
    for seed in range(10):
        raw, labels, names = random_rows(seed)
        masks = MINERS[mining](normalize(raw, dim=1), labels, names)

        def oracle(rows: Tensor, masks: tuple[Tensor, Tensor] = masks) -> Tensor:
            total = torch.zeros(())
            for mask, target in zip(masks, (1, -1), strict=True):
                anchors, others = mask.nonzero(as_tuple=True)
                targets = torch.full((len(anchors),), target)
                total = total + cosine_embedding_loss(
                    rows[anchors], rows[others], targets
                )
            return total

        assert_same_loss_and_gradient(make_cosine_loss(), raw, masks, oracle)


# Three rows; only the first has pairs: a positive of cosine 0.6, a negative of 0.8, so
# of the distances √0.8 and √0.4.
BY_HAND = [
    (make_cosine_loss, 0.4 + 0.8),
    (make_triplet_loss, math.sqrt(0.8) - math.sqrt(0.4) + 0.2),
    (make_nca_loss, math.log(1 + math.exp(20 * (0.8 - 0.4)))),
    (make_lifted_structure_loss, (0.5 - math.sqrt(0.4) + math.sqrt(0.8)) ** 2 / 2),
    (make_info_nce_loss, math.log(1 + math.exp((0.8 - 0.6) / 0.07))),
    (
        make_circle_loss,
        # pull: weight 1.25 − 0.6 over 0.75 − 0.6; push: weight 0.8 + 0.25 over 0.55
        256 * (0.65 * 0.15 + 1.05 * 0.55),
    ),
]


@pytest.mark.parametrize(("factory", "expected"), BY_HAND)
def test_loss_by_hand(factory: Callable[[], Loss], expected: float) -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]])
    positives = torch.zeros(3, 3, dtype=torch.bool)
    negatives = torch.zeros(3, 3, dtype=torch.bool)
    positives[0, 1] = negatives[0, 2] = True
    loss = factory()(vectors, positives, negatives)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_loss_without_pairs_is_zero_with_a_gradient(
    factory: Callable[[], Loss],
) -> None:
    vectors = torch.eye(3, requires_grad=True)
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    loss = factory()(vectors, nothing, nothing)
    loss.backward()
    assert loss.shape == ()
    assert loss.item() == 0
    assert torch.equal(vectors.grad, torch.zeros(3, 3))


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("missing", ["positives", "negatives"])
def test_loss_of_one_kind_of_pairs_has_a_finite_gradient(
    missing: str, factory: Callable[[], Loss]
) -> None:
    vectors = normalize(torch.arange(1.0, 13.0).view(4, 3).sin(), dim=1)
    vectors.requires_grad_()
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    one = nothing.clone()
    one[0, 1] = True
    masks = (nothing, one) if missing == "positives" else (one, nothing)
    loss = factory()(vectors, *masks)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(vectors.grad).all()


@pytest.mark.parametrize("factory", FACTORIES)
def test_loss_is_float32_and_finite_on_equal_rows_in_bfloat16(
    factory: Callable[[], Loss],
) -> None:
    # The same name twice: the distance is 0, where a square root has no gradient.
    rows = torch.tensor([[0.6, 0.8], [0.6, 0.8], [0.6, 0.8], [-0.8, 0.6]])
    vectors = rows.bfloat16().requires_grad_()
    masks = make_no_miner()(vectors, torch.tensor([0, 0, 1, 1]), None)
    loss = factory()(vectors, *masks)
    loss.backward()
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)
    assert torch.isfinite(vectors.grad).all()


def test_triplet_loss_averages_over_the_violating_triplets_only() -> None:
    # On a circle, at 0°, 60° and 90°, and at 180°: 1, √2 and 2 away from the first.
    angles = torch.tensor([0.0, 60.0, 90.0, 180.0]).deg2rad()
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    masks = make_no_miner()(vectors, torch.tensor([0, 0, 1, 2]), None)
    # From 0° both negatives are farther than 1 + 0.2, and from 60° the one at 180°.
    expected = 1 - 2 * math.sin(math.radians(15)) + 0.2
    loss = make_triplet_loss()(vectors, *masks)
    assert loss.item() == pytest.approx(expected, abs=1e-6)
