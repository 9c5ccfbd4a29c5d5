"""Which pairs of a batch the encoder still gets wrong."""

from typing import Optional, Tuple

import torch
from torch import Tensor

from spacy_sapbert.errors import Errors, SapbertError


@torch.no_grad()
def mine_hard_pairs(
    vectors: Tensor,
    labels: Tensor,
    *,
    margin: float = 0.2,
    names: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """Find the pairs in a batch that the encoder still gets wrong.

    A triplet of anchor, positive and negative is kept if the negative is nearer to
    the anchor than the positive, or less than `margin` farther. Only the pairs of the
    kept triplets are needed: a positive is in one if it is with the nearest negative,
    and a negative if it is with the farthest positive, so that two n × n masks do the
    work of all n³ triplets.

    vectors (Tensor): Unit-length rows. Shape: (n, width).
    labels (Tensor): The concept of each row, int64. Shape: (n,).
    margin (float): Slack in Euclidean distance, 0 to 2.
    names (Optional[Tensor]): The name of each row as a number, int64. Equal names of
        two concepts are no negatives of each other. Shape: (n,).
    RETURNS (Tuple[Tensor, Tensor]): Masks of hard positives and hard negatives, row
        by anchor, bool. Shape: (n, n) each.
    RAISES (SapbertError): If `vectors` and `labels` differ in length.
    SOURCE: Liu et al. (2021), Eq. 1; pytorch-metric-learning's TripletMarginMiner
        with `type_of_triplets="all"` keeps the same pairs.
    """
    if len(vectors) != len(labels):
        raise SapbertError(Errors.E601.format(rows=len(vectors), labels=len(labels)))
    vectors = vectors.float()
    distances = (2 - 2 * vectors @ vectors.T).clamp_(min=0).sqrt_()  # (n, n)
    same = labels[:, None] == labels[None, :]  # (n, n)
    positives = same.clone().fill_diagonal_(False)
    negatives = ~same
    if names is not None:
        negatives &= names[:, None] != names[None, :]
    infinity = float("inf")
    nearest = distances.masked_fill(~negatives, infinity).amin(1, keepdim=True)
    farthest = distances.masked_fill(~positives, -infinity).amax(1, keepdim=True)
    positives &= nearest - distances <= margin
    negatives &= distances - farthest <= margin
    return positives, negatives
