"""Miners: the pairs of a batch that the loss is computed from."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from training.losses.registry import register_partial, registry

INFINITY = float("inf")


@register_partial(registry.miners, "spacy-sapbert.NoMiner.v1")
def keep_all_pairs(
    vectors: Tensor, labels: Tensor, names: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the masks of all positives and all negatives of a batch.

    See `mine_hard_pairs`; the vectors are not used. No row is its own positive.
    """
    same = labels[:, None] == labels[None, :]  # (n, n)
    negatives = ~same
    if names is not None:
        negatives &= names[:, None] != names[None, :]
    return same.fill_diagonal_(False), negatives


@register_partial(registry.miners, "spacy-sapbert.TripletMiner.v1")
@torch.no_grad()
def mine_hard_pairs(
    vectors: Tensor,
    labels: Tensor,
    names: Tensor | None = None,
    *,
    margin: float = 0.2,
    triplets: Literal["all", "hard", "semihard"] = "all",
    distance: Literal["euclidean", "cosine"] = "euclidean",
) -> tuple[Tensor, Tensor]:
    """Find the pairs of a batch that are part of a hard triplet.

    A triplet of anchor, positive and negative is kept if the negative is nearer to the
    anchor than the positive, or at most `margin` farther. Only the pairs of these
    triplets are needed: a positive is kept if its triplet with the nearest negative is,
    and a negative if its triplet with the farthest positive is. Two n × n masks
    therefore replace all n³ triplets.

    vectors (Tensor): Unit-length rows. Shape: (n, width).
    labels (Tensor): The concept of each row, int64. Shape: (n,).
    names (Tensor | None): The name of each row as a number, int64. Equal names of
        two concepts are no negatives of each other. Shape: (n,).
    margin (float): In the unit of `distance`, 0 to 2.
    triplets (str): "hard" keeps only the triplets whose negative is no farther than
        the positive, "semihard" only the others of "all".
    distance (str): "euclidean", or "cosine" for one minus the cosine.
    RETURNS (tuple[Tensor, Tensor]): Masks of hard positives and hard negatives, row
        by anchor, bool. Shape: (n, n) each.
    SOURCE: Liu et al. (2021), Eq. 1; pytorch-metric-learning's TripletMarginMiner
        keeps the same pairs, with `triplets` as its `type_of_triplets`. HiPrBERT
        (2023) for the cosine, where the print keeps the easy triplets instead.
    """
    vectors = vectors.float()
    if distance == "cosine":
        distances = 1 - vectors @ vectors.T  # (n, n)
    else:
        distances = (2 - 2 * vectors @ vectors.T).clamp_(min=0).sqrt_()  # (n, n)
    positives, negatives = keep_all_pairs(vectors, labels, names)
    if triplets == "semihard":
        return find_semihard(distances, positives, negatives, margin)
    slack = min(margin, 0.0) if triplets == "hard" else margin
    nearest = distances.masked_fill(~negatives, INFINITY).amin(1, keepdim=True)
    farthest = distances.masked_fill(~positives, -INFINITY).amax(1, keepdim=True)
    positives &= nearest - distances <= slack
    negatives &= distances - farthest <= slack
    return positives, negatives


def find_semihard(
    distances: Tensor, positives: Tensor, negatives: Tensor, margin: float
) -> tuple[Tensor, Tensor]:
    """Find the pairs of triplets whose negative is farther, but by `margin` at most.

    A positive is kept if its triplet with the next farther negative is one of them, and
    a negative if its triplet with the next nearer positive is. Both are found in sorted
    rows.

    distances (Tensor): Between the rows of a batch. Shape: (n, n).
    positives (Tensor): Mask of all positives, row by anchor, bool. Shape: (n, n).
    negatives (Tensor): Mask of all negatives, row by anchor, bool. Shape: (n, n).
    margin (float): In the unit of the distances, 0 to 2.
    RETURNS (tuple[Tensor, Tensor]): Masks of those kept. Shape: (n, n) each.
    """
    others = distances.masked_fill(~negatives, INFINITY).sort(dim=1).values
    beyond = torch.searchsorted(others, distances, right=True)  # up to n: one more
    following = pad(others, (0, 1), value=INFINITY).gather(1, beyond)  # (n, n)
    ones = distances.masked_fill(~positives, -INFINITY).sort(dim=1).values
    before = torch.searchsorted(ones, distances)  # down to 0: one more at the front
    preceding = pad(ones, (1, 0), value=-INFINITY).gather(1, before)  # (n, n)
    return (
        positives & (following - distances <= margin),
        negatives & (distances - preceding <= margin),
    )
