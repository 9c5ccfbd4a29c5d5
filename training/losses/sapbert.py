"""Mining and loss of SapBERT, Eq. 1 and 2 of the paper, and the loss of a hierarchy."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from training.losses.functions import Loss, register_partial, registry


@register_partial(registry.miners, "spacy-sapbert.NoMiner.v1")
def mine_all_pairs(
    vectors: Tensor, labels: Tensor, name_ids: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the masks of all positives and all negatives of a batch.

    See `mine_hard_pairs`; the vectors are not used. No row is its own positive.
    """
    same = labels[:, None] == labels[None, :]  # (n, n)
    negatives = ~same
    if name_ids is not None:
        negatives &= name_ids[:, None] != name_ids[None, :]
    return same.fill_diagonal_(False), negatives


@register_partial(registry.miners, "spacy-sapbert.TripletMiner.v1")
@torch.no_grad()
def mine_hard_pairs(
    vectors: Tensor,
    labels: Tensor,
    name_ids: Tensor | None = None,
    *,
    margin: float = 0.2,
    distance: Literal["euclidean", "cosine"] = "euclidean",
) -> tuple[Tensor, Tensor]:
    """Find the pairs of a batch that are part of a hard triplet.

    A triplet of anchor, positive and negative is kept if the negative is nearer to the
    anchor than the positive, or at most `margin` farther. Only the pairs of these
    triplets are needed: a positive is kept if its triplet with the nearest negative is,
    and a negative if its triplet with the farthest positive is. Two n × n masks
    therefore replace all n³ triplets.

    Args:
        vectors: Unit-length rows. Shape: (n, width).
        labels: The concept of each row, int64. Shape: (n,).
        name_ids: A number for each text, int64. Equal names of two concepts are not
            negatives of each other. Shape: (n,).
        margin: −λ of the paper, in the unit of `distance`, 0 to 2.
        distance: "euclidean", or "cosine" for one minus the cosine.

    Returns:
        Masks of hard positives and of hard negatives, row by anchor, bool. Shape:
        (n, n) each.

    Source:
        Liu et al. (2021), Eq. 1. HiPrBERT (2023), 3.4, for the cosine; its inequality
        is printed the other way round and would keep the easy triplets.
    """
    vectors = vectors.float()
    if distance == "cosine":
        distances = 1 - vectors @ vectors.T  # (n, n)
    else:
        distances = (2 - 2 * vectors @ vectors.T).clamp_(min=0).sqrt_()  # (n, n)
    positives, negatives = mine_all_pairs(vectors, labels, name_ids)
    nearest = distances.masked_fill(~negatives, torch.inf).amin(1, keepdim=True)
    farthest = distances.masked_fill(~positives, -torch.inf).amax(1, keepdim=True)
    positives &= nearest - distances <= margin
    negatives &= distances - farthest <= margin
    return positives, negatives


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
