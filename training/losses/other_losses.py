"""The losses that the paper compares with Multi-Similarity, with its constants.

All take:
    vectors (Tensor): Unit-length rows. Shape: (n, width).
    positives (Tensor): Mask of the positives, row by anchor, bool. Shape: (n, n).
    negatives (Tensor): Mask of the negatives, row by anchor, bool. Shape: (n, n).

and return a scalar. Each pair of the masks counts once, and the memory needed is n × n.
A docstring names each difference from the loss of pytorch-metric-learning for the same
pairs. If that library is given triplets, as in the code that the authors released, a
pair counts as often as it is part of a triplet.

SOURCE: Liu et al. (2021), the comparison of losses, with the constants chosen there.
"""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from training.losses.registry import register_partial, registry


@register_partial(registry.losses, "spacy-sapbert.CosineLoss.v1")
def cosine_loss(vectors: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """Compute the distance of positives from cosine 1, and of negatives from 0 or less.

    RETURNS (Tensor): The mean of 1 − cosine over the positives, plus the mean of the
        cosines above 0 over the negatives. Shape: ().
    SOURCE: torch's CosineEmbeddingLoss, with a mean for each of the two parts.
    """
    cosines = compute_cosines(vectors)
    pulls = mean_or_zero(1 - cosines[positives])
    return pulls + mean_or_zero(cosines[negatives].relu())


@register_partial(registry.losses, "spacy-sapbert.TripletLoss.v1")
def triplet_loss(
    vectors: Tensor, positives: Tensor, negatives: Tensor, *, margin: float = 0.2
) -> Tensor:
    """Compute the mean violation of all triplets of a positive and a negative.

    The triplets that violate the margin are counted in sorted rows: the loss is a sum
    of distances, each times the number of its triplets, and no triplet needs memory.

    margin (float): In Euclidean distance, 0 to 2.
    RETURNS (Tensor): The mean over the triplets that violate the margin. Shape: ().
    SOURCE: pytorch-metric-learning's TripletMarginLoss.
    """
    distances = compute_distances(vectors)
    with torch.no_grad():
        reach = distances + margin  # up to where a negative is too near
        near = distances.masked_fill(~negatives, torch.inf).sort(dim=1).values
        by_positive = torch.searchsorted(near, reach) * positives  # (n, n)
        # Both compare the same rounded numbers, so that they count the same triplets.
        far = reach.masked_fill(~positives, torch.inf).sort(dim=1).values
        kept_clear = torch.searchsorted(far, distances, right=True)  # (n, n)
        by_negative = (positives.sum(1, keepdim=True) - kept_clear) * negatives
        triplets = by_positive.sum()
    violations = ((by_positive - by_negative) * distances).sum() + margin * triplets
    return violations / triplets.clamp(min=1)


@register_partial(registry.losses, "spacy-sapbert.NcaLoss.v1")
def nca_loss(
    vectors: Tensor, positives: Tensor, negatives: Tensor, *, scale: float = 20.0
) -> Tensor:
    """Compute the negative log probability that a random neighbour is a positive.

    The probability of a neighbour decreases with its squared distance.

    scale (float): Weight of the nearest neighbours, above 0.
    RETURNS (Tensor): The mean of −log(probability of a positive) over the anchors
        with a positive. Shape: ().
    SOURCE: Goldberger et al. (2004); pytorch-metric-learning's NCALoss without a
        miner. With one, it still lets an anchor pick any row of the batch.
    """
    # −scale · distance² is this − 2 · scale, which falls out of the probability.
    closeness = 2 * scale * compute_cosines(vectors)  # (n, n)
    right = log_sum_exp(closeness, positives)  # (n,)
    wrong = log_sum_exp(closeness, negatives)  # (n,)
    return mean_or_zero(softplus(wrong - right)[positives.any(dim=1)])


@register_partial(registry.losses, "spacy-sapbert.LiftedStructureLoss.v1")
def lifted_structure_loss(
    vectors: Tensor, positives: Tensor, negatives: Tensor, *, margin: float = 0.5
) -> Tensor:
    """Compare each positive pair with the negatives of both of its names.

    margin (float): In Euclidean distance, 0 to 2.
    RETURNS (Tensor): The mean over the positives, those without a negative at either
        name counting 0. Shape: ().
    SOURCE: Oh Song et al. (2016); pytorch-metric-learning's LiftedStructureLoss with
        the margin as `neg_margin`. It still pulls positives that have no negative.
    """
    distances = compute_distances(vectors)
    pushes = log_sum_exp(margin - distances, negatives)  # (n,)
    both_ends = torch.logaddexp(pushes[:, None], pushes[None, :])  # (n, n)
    violations = (both_ends + distances)[positives].relu()
    return mean_or_zero(violations.square()) / 2


@register_partial(registry.losses, "spacy-sapbert.InfoNceLoss.v1")
def info_nce_loss(
    vectors: Tensor, positives: Tensor, negatives: Tensor, *, temperature: float = 0.07
) -> Tensor:
    """Compute the cross entropy of each positive among the negatives of its anchor.

    temperature (float): The lower, the more the most similar negatives count, above 0.
    RETURNS (Tensor): The mean over the positives; other positives of the anchor
        do not count. Shape: ().
    SOURCE: van den Oord et al. (2018), Eq. 4; pytorch-metric-learning's NTXentLoss.
    """
    exponents = compute_cosines(vectors) / temperature
    pushes = log_sum_exp(exponents, negatives)  # (n,)
    return mean_or_zero(softplus(pushes[:, None] - exponents)[positives])


@register_partial(registry.losses, "spacy-sapbert.CircleLoss.v1")
def circle_loss(
    vectors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    margin: float = 0.25,
    scale: float = 256.0,
) -> Tensor:
    """Compute a loss that weights each pair by its distance from its target cosine.

    margin (float): Accepted distance of the cosines from 1 and 0.
    scale (float): Weight of the worst pairs, above 0.
    RETURNS (Tensor): The mean over the anchors with a positive, a negative and a loss
        above 0. Shape: ().
    SOURCE: Sun et al. (2020); pytorch-metric-learning's CircleLoss.
    """
    cosines = compute_cosines(vectors)
    fixed = cosines.detach()  # no gradient through the weights of the pairs
    pulls = -scale * (1 + margin - fixed).relu() * (cosines - (1 - margin))
    pushes = scale * (fixed + margin).relu() * (cosines - margin)
    worst = log_sum_exp(pulls, positives) + log_sum_exp(pushes, negatives)  # (n,)
    losses = softplus(worst)[positives.any(dim=1) & negatives.any(dim=1)]
    return mean_or_zero(losses[losses > 0])


def compute_cosines(vectors: Tensor) -> Tensor:
    """Compute all cosines of a batch in float32. Shape: (n, n)."""
    vectors = vectors.float()
    return vectors @ vectors.T


def compute_distances(vectors: Tensor) -> Tensor:
    """Compute all Euclidean distances of a batch in float32. Shape: (n, n)."""
    vectors = vectors.float()
    # At distance 0, a name twice in the batch, the gradient of cdist is 0; that of the
    # square root of 2 − 2 cosine is infinite.
    return torch.cdist(vectors, vectors)


def log_sum_exp(exponents: Tensor, mask: Tensor) -> Tensor:
    """Compute log(Σ exp(x)) over the masked entries of each row, without overflow.

    exponents (Tensor): Shape: (n, n).
    mask (Tensor): Which entries count, bool. Shape: (n, n).
    RETURNS (Tensor): The lowest float32 for a row without any; infinity would make
        its gradient NaN. Shape: (n,).
    """
    lowest = torch.finfo(exponents.dtype).min
    return exponents.masked_fill(~mask, lowest).logsumexp(dim=1)


def mean_or_zero(values: Tensor) -> Tensor:
    """Compute a mean; 0 with a gradient if there are no values."""
    return values.sum() / max(len(values), 1)
