"""Miners: the pairs of a batch that the loss is computed from."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from training.errors import Errors, SapbertError
from training.losses.registry import Miner, registry

TRIPLETS = ("all", "hard", "semihard")
DISTANCES = ("euclidean", "cosine")
INFINITY = float("inf")


@registry.miners("spacy-sapbert.TripletMiner.v1")
def make_triplet_miner(
    margin: float = 0.2, triplets: str = "all", distance: str = "euclidean"
) -> Miner:
    """Build `mine_hard_pairs`, the miner of SapBERT, with these settings."""
    check_choice("triplets", triplets, TRIPLETS)
    check_choice("distance", distance, DISTANCES)

    def mine(
        vectors: Tensor, labels: Tensor, names: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return mine_hard_pairs(
            vectors,
            labels,
            margin=margin,
            names=names,
            triplets=triplets,
            distance=distance,
        )

    return mine


@registry.miners("spacy-sapbert.NoMiner.v1")
def make_no_miner() -> Miner:
    """Build a miner that keeps every pair."""

    def mine(
        vectors: Tensor, labels: Tensor, names: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        check_rows(vectors, labels)
        return split_pairs(labels, names)

    return mine


@torch.no_grad()
def mine_hard_pairs(
    vectors: Tensor,
    labels: Tensor,
    *,
    margin: float = 0.2,
    names: Tensor | None = None,
    triplets: str = "all",
    distance: str = "euclidean",
) -> tuple[Tensor, Tensor]:
    """Find the pairs of a batch that are part of a hard triplet.

    A triplet of anchor, positive and negative is kept if the negative is nearer to the
    anchor than the positive, or at most `margin` farther. Only the pairs of these
    triplets are needed: a positive is kept if its triplet with the nearest negative is,
    and a negative if its triplet with the farthest positive is. Two n × n masks
    therefore replace all n³ triplets.

    vectors (Tensor): Unit-length rows. Shape: (n, width).
    labels (Tensor): The concept of each row, int64. Shape: (n,).
    margin (float): In the unit of `distance`, 0 to 2.
    names (Tensor | None): The name of each row as a number, int64. Equal names of
        two concepts are no negatives of each other. Shape: (n,).
    triplets (str): "hard" keeps only the triplets whose negative is no farther than
        the positive, "semihard" only the others of "all".
    distance (str): "euclidean", or "cosine" for one minus the cosine.
    RETURNS (tuple[Tensor, Tensor]): Masks of hard positives and hard negatives, row
        by anchor, bool. Shape: (n, n) each.
    RAISES (SapbertError): If `vectors` and `labels` differ in length, or a setting is
        unknown.
    SOURCE: Liu et al. (2021), Eq. 1; pytorch-metric-learning's TripletMarginMiner
        keeps the same pairs, with `triplets` as its `type_of_triplets`. HiPrBERT
        (2023) for the cosine, where the print keeps the easy triplets instead.
    """
    check_rows(vectors, labels)
    check_choice("triplets", triplets, TRIPLETS)
    check_choice("distance", distance, DISTANCES)
    vectors = vectors.float()
    if distance == "cosine":
        distances = 1 - vectors @ vectors.T  # (n, n)
    else:
        distances = (2 - 2 * vectors @ vectors.T).clamp_(min=0).sqrt_()  # (n, n)
    positives, negatives = split_pairs(labels, names)
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


def split_pairs(labels: Tensor, names: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the masks of all positives and all negatives of a batch.

    labels (Tensor): The concept of each row, int64. Shape: (n,).
    names (Tensor | None): The name of each row as a number, int64. Equal names of
        two concepts are no negatives of each other. Shape: (n,).
    RETURNS (tuple[Tensor, Tensor]): Masks of positives and negatives, row by anchor,
        bool; no row is its own positive. Shape: (n, n) each.
    """
    same = labels[:, None] == labels[None, :]  # (n, n)
    negatives = ~same
    if names is not None:
        negatives &= names[:, None] != names[None, :]
    return same.fill_diagonal_(False), negatives


def check_rows(vectors: Tensor, labels: Tensor) -> None:
    """Raise a SapbertError if vectors and labels differ in length."""
    if len(vectors) != len(labels):
        raise SapbertError(Errors.E601.format(rows=len(vectors), labels=len(labels)))


def check_choice(setting: str, value: str, known: Sequence[str]) -> None:
    """Raise a SapbertError if a setting has none of the known values."""
    if value not in known:
        raise SapbertError(
            Errors.E614.format(
                setting=setting, expected=f"one of {', '.join(known)}", value=value
            )
        )
