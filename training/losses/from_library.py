"""The losses that the paper compares with Multi-Similarity, with its constants.

pytorch-metric-learning computes them for the mined pairs, each pair once; the extra
`losses` installs it. If it is given triplets, as in the code that the authors released,
a pair counts as often as it is part of a triplet.

Source:
    Liu et al. (2021), the comparison of losses, with the constants chosen there.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from spacy_sapbert.io.plugins import require
from training.losses.functions import Loss, register_partial, registry


def from_library(make: Callable[[Any], Any]) -> Loss:
    """Build a loss with `make`, which gets the losses of the library."""
    loss = make(require("pytorch_metric_learning.losses", "pytorch-metric-learning"))

    def compute(vectors: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
        # anchors and positives, anchors and negatives
        pairs = (*positives.nonzero(as_tuple=True), *negatives.nonzero(as_tuple=True))
        value: Tensor = loss(vectors.float(), None, pairs)
        return value

    return compute


@registry.losses("spacy-sapbert.CosineLoss.v1")
def make_cosine_loss() -> Loss:
    """Mean of 1 − cosine over the positives, plus mean cosine above 0 of the others."""

    def make(losses: Any) -> Any:
        from pytorch_metric_learning.distances import CosineSimilarity
        from pytorch_metric_learning.reducers import MeanReducer

        return losses.ContrastiveLoss(
            1, 0, distance=CosineSimilarity(), reducer=MeanReducer()
        )

    return from_library(make)


@registry.losses("spacy-sapbert.TripletLoss.v1")
def make_triplet_loss(margin: float = 0.2) -> Loss:
    """Mean over the triplets of the mined pairs that violate the margin."""
    return from_library(lambda losses: losses.TripletMarginLoss(margin=margin))


@registry.losses("spacy-sapbert.LiftedStructureLoss.v1")
def make_lifted_structure_loss(margin: float = 0.5) -> Loss:
    """Each positive pair against the negatives of both names (Oh Song et al. 2016)."""
    return from_library(lambda losses: losses.LiftedStructureLoss(neg_margin=margin))


@registry.losses("spacy-sapbert.InfoNceLoss.v1")
def make_info_nce_loss(temperature: float = 0.07) -> Loss:
    """Cross entropy of each positive among the negatives (van den Oord et al. 2018)."""
    return from_library(lambda losses: losses.NTXentLoss(temperature=temperature))


@registry.losses("spacy-sapbert.CircleLoss.v1")
def make_circle_loss(margin: float = 0.25, scale: float = 256.0) -> Loss:
    """Each pair weighted by its distance from its target cosine (Sun et al. 2020)."""
    return from_library(lambda losses: losses.CircleLoss(m=margin, gamma=scale))


@register_partial(registry.losses, "spacy-sapbert.NcaLoss.v1")
def nca_loss(
    vectors: Tensor, positives: Tensor, negatives: Tensor, *, scale: float = 20.0
) -> Tensor:
    """Compute the mean of −log(probability that a random neighbour is a positive).

    That of the library lets an anchor pick any row of the batch, mined or not.

    Source:
        Goldberger et al. (2004).
    """
    vectors = vectors.float()
    # −scale · distance² is this − 2 · scale, which falls out of the probability.
    closeness = 2 * scale * vectors @ vectors.T  # (n, n)
    lowest = torch.finfo(torch.float32).min  # infinity would make the gradient NaN
    right = closeness.masked_fill(~positives, lowest).logsumexp(dim=1)  # (n,)
    wrong = closeness.masked_fill(~negatives, lowest).logsumexp(dim=1)  # (n,)
    terms = softplus(wrong - right)[positives.any(dim=1)]
    return terms.sum() / max(len(terms), 1)
