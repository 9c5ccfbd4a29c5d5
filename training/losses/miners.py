"""Miners: the pairs of a batch that the loss is computed from."""

from typing import Literal

import torch
from torch import Tensor

from training.losses.registry import register_partial, registry


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
