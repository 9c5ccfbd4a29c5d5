import math
from functools import partial

import pytest
import torch
from pytorch_metric_learning.losses import MultiSimilarityLoss
from pytorch_metric_learning.miners import TripletMarginMiner
from torch.nn.functional import normalize

from training.losses.sapbert import (
    hierarchical_loss,
    mine_hard_pairs,
    multi_similarity_loss,
)
from training.trainer.settings import DEFAULT_CONFIG, read_config


@pytest.mark.parametrize("preset", ["default", "released"])
def test_multi_similarity_loss_equals_the_library(preset: str) -> None:
    path = DEFAULT_CONFIG.with_name(f"{preset}.cfg")
    constants = dict(read_config(path)["training"]["loss"])
    constants.pop("@losses")
    oracle = MultiSimilarityLoss(
        alpha=constants["scale_pos"],
        beta=constants["scale_neg"],
        base=constants["offset"],
    )
    miner = TripletMarginMiner(margin=0.2, type_of_triplets="all")
    for seed in range(30):
        torch.manual_seed(seed)
        labels = torch.randint(10, (40,))
        raw = torch.randn(10, 8)[labels] + torch.randn(40, 8)
        ours = raw.clone().requires_grad_()
        theirs = raw.clone().requires_grad_()
        vectors = normalize(ours, dim=1)
        loss = multi_similarity_loss(
            vectors, *mine_hard_pairs(vectors, labels), **constants
        )
        expected = oracle(theirs, labels, miner(theirs, labels))
        assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
        loss.backward()
        expected.backward()
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-6)


def test_multi_similarity_loss_by_hand() -> None:
    # Three rows; only the first has pairs: a positive of cosine 0.6, a negative of 0.8.
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]])
    positives = torch.zeros(3, 3, dtype=torch.bool)
    negatives = torch.zeros(3, 3, dtype=torch.bool)
    positives[0, 1] = negatives[0, 2] = True
    expected = math.log(1 + math.exp(-2 * (0.6 - 0.5))) / 2
    expected += math.log(1 + math.exp(50 * (0.8 - 0.5))) / 50
    loss = multi_similarity_loss(vectors, positives, negatives)
    assert loss.item() == pytest.approx(expected / 3, abs=1e-6)


LOSS = partial(multi_similarity_loss, scale_pos=2.0, scale_neg=2.0, offset=0.5)


def test_hierarchical_loss_by_hand() -> None:
    # Three concepts: 1 is a sibling of 0 (cosine 0.6), 2 has nothing to do with them
    # (cosines 0.8 and 0).
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6]])
    distances = torch.tensor([[0, 1, 3], [1, 0, 3], [3, 3, 0]])

    def term(pos: list[float], neg: list[float]) -> float:
        pull = sum(math.exp(-2 * (cosine - 0.5)) for cosine in pos)
        push = sum(math.exp(2 * (cosine - 0.5)) for cosine in neg)
        return math.log(1 + pull) / 2 + math.log(1 + push) / 2

    at_0 = term([], [0.6, 0.8]) + term([], [0.6, 0.0]) + term([], [0.8, 0.0])
    at_1 = term([0.6], [0.8]) + term([0.6], [0.0]) + term([], [0.8, 0.0])
    expected = (at_0 + 2 * at_1) / 3  # no distance is 2: that term is that of 1
    loss = hierarchical_loss(vectors, distances, torch.arange(3), [0, 1, 2], LOSS)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_hierarchical_loss_equals_a_plain_loop() -> None:
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
