"""Which pairs of a batch the encoder still gets wrong."""

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
    """Make the miner of SapBERT, which keeps the pairs of hard triplets.

    margin (float): Slack in that distance, 0 to 2.
    triplets (str): "all", "hard" or "semihard".
    distance (str): "euclidean" as in SapBERT, "cosine" as in HiPrBERT.
    RETURNS (Miner): `mine_hard_pairs` with these settings.
    RAISES (SapbertError): If `triplets` or `distance` is another.
    """
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
    """Make a miner that keeps every pair, to train without mining.

    RETURNS (Miner): `split_pairs`, which looks at no vector.
    """

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
    """Find the pairs in a batch that the encoder still gets wrong.

    A triplet of anchor, positive and negative is kept if the negative is nearer to
    the anchor than the positive, or at most `margin` farther. Only the pairs of the
    kept triplets are needed: a positive is in one if it is with the nearest negative,
    and a negative if it is with the farthest positive, so that two n × n masks do the
    work of all n³ triplets.

    vectors (Tensor): Unit-length rows. Shape: (n, width).
    labels (Tensor): The concept of each row, int64. Shape: (n,).
    margin (float): Slack in that distance, 0 to 2.
    names (Tensor | None): The name of each row as a number, int64. Equal names of
        two concepts are no negatives of each other. Shape: (n,).
    triplets (str): "hard" keeps only the triplets whose negative is no farther than
        the positive, "semihard" only the others of "all".
    distance (str): "euclidean", or "cosine" for one minus the cosine.
    RETURNS (tuple[Tensor, Tensor]): Masks of hard positives and hard negatives, row
        by anchor, bool. Shape: (n, n) each.
    RAISES (SapbertError): If `vectors` and `labels` differ in length, or `triplets`
        or `distance` is unknown.
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
        return keep_semihard(distances, positives, negatives, margin)
    slack = min(margin, 0.0) if triplets == "hard" else margin
    nearest = distances.masked_fill(~negatives, INFINITY).amin(1, keepdim=True)
    farthest = distances.masked_fill(~positives, -INFINITY).amax(1, keepdim=True)
    positives &= nearest - distances <= slack
    negatives &= distances - farthest <= slack
    return positives, negatives


def keep_semihard(
    distances: Tensor, positives: Tensor, negatives: Tensor, margin: float
) -> tuple[Tensor, Tensor]:
    """Keep the pairs of triplets whose negative is farther, but by `margin` at most.

    A positive is in such a triplet if it is with the first negative beyond it, and a
    negative if it is with the last positive before it. Both are looked up in sorted
    rows.

    distances (Tensor): Between the rows of a batch. Shape: (n, n).
    positives (Tensor): Mask of all positives, row by anchor, bool. Shape: (n, n).
    negatives (Tensor): Mask of all negatives, row by anchor, bool. Shape: (n, n).
    margin (float): Slack in that distance, 0 to 2.
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
    """Part all pairs of a batch into positives and negatives.

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
    """Check that each vector has a label.

    vectors (Tensor): Shape: (n, width).
    labels (Tensor): Shape: (n,).
    RAISES (SapbertError): If they differ in length.
    """
    if len(vectors) != len(labels):
        raise SapbertError(Errors.E601.format(rows=len(vectors), labels=len(labels)))


def check_choice(setting: str, value: str, known: Sequence[str]) -> None:
    """Check that a setting has one of its values.

    setting (str): Its name.
    value (str): What was given.
    known (Sequence[str]): The values that there are.
    RAISES (SapbertError): If it has another.
    """
    if value not in known:
        raise SapbertError(
            Errors.E614.format(
                setting=setting, expected=f"one of {', '.join(known)}", value=value
            )
        )
