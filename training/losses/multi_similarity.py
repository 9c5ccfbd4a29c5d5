"""The Multi-Similarity loss, alone and over the distances of a hierarchy."""

from collections.abc import Sequence

import torch
from torch import Tensor

from training.losses.registry import Loss, register_partial, registry


@register_partial(registry.losses, "spacy-sapbert.MultiSimilarityLoss.v1")
def multi_similarity_loss(
    vectors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    scale_pos: float = 2.0,
    scale_neg: float = 50.0,
    offset: float = 0.5,
) -> Tensor:
    """Compute the Multi-Similarity loss.

    Args:
        vectors: Unit-length rows. Shape: (n, width).
        positives: Mask of the positives, row by anchor, bool. Shape: (n, n).
        negatives: Mask of the negatives, row by anchor, bool. Shape: (n, n).
        scale_pos: α, weight of the least similar positives, above 0.
        scale_neg: β, weight of the most similar negatives, above 0.
        offset: ε (λ of Wang et al.), the cosine that separates the two, −1 to 1.

    Returns:
        The mean over all anchors; an anchor without a pair counts 0. Without any pair
        it is 0 and still has a gradient. Shape: ().

    Source:
        Wang et al. (2019), Eq. 15, with the roles of the constants as in their code;
        Liu et al. (2021), Eq. 2 prints them swapped.
    """
    vectors = vectors.float()
    cosines = vectors @ vectors.T  # (n, n)
    pulls = log_one_plus_sum_exp(-scale_pos * (cosines - offset), positives)  # (n,)
    pushes = log_one_plus_sum_exp(scale_neg * (cosines - offset), negatives)  # (n,)
    return (pulls / scale_pos + pushes / scale_neg).mean()


def log_one_plus_sum_exp(exponents: Tensor, mask: Tensor) -> Tensor:
    """Compute log(1 + Σ exp(x)) over the masked entries of each row of (n, n)."""
    kept = exponents.masked_fill(~mask, -torch.inf)
    one = kept.new_zeros(len(kept), 1)  # exp(0) = 1
    return torch.cat([one, kept], dim=1).logsumexp(dim=1)


def hierarchical_loss(
    vectors: Tensor,
    distances: Tensor,
    name_ids: Tensor,
    thresholds: Sequence[int],
    loss: Loss,
) -> Tensor:
    """Compute the sum of a loss over the distances of a hierarchy.

    For each threshold the pairs up to it are positives and the others negatives.

    Args:
        vectors: Unit-length rows. Shape: (n, width).
        distances: Distance between the concepts of two rows. Shape: (n, n).
        name_ids: A number for each text, int64. Pairs of equal names are neither
            positives nor negatives. Shape: (n,).
        thresholds: Distances; at least one.

    Source:
        HiPrBERT (2023), with the Multi-Similarity loss.
    """
    different = name_ids[:, None] != name_ids[None, :]  # (n, n)
    terms = [
        loss(
            vectors,
            (distances <= threshold) & different,
            (distances > threshold) & different,
        )
        for threshold in thresholds
    ]
    return torch.stack(terms).sum()
