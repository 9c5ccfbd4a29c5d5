"""Token states → one vector a text."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def pool_cls(states: "Tensor", mask: "Tensor") -> "Tensor":
    """Return the state of the first token, `[CLS]`.

    states (Tensor): Token states of the last layer. Shape: (n, length, width).
    mask (Tensor): 1 for a token, 0 for padding. Shape: (n, length).
    RETURNS (Tensor): Shape: (n, width).
    SOURCE: Liu et al. (2021), §2.
    """
    return states[:, 0]


def pool_mean(states: "Tensor", mask: "Tensor") -> "Tensor":
    """Return the mean of all token states, `[CLS]` and `[SEP]` included.

    states (Tensor): Token states of the last layer. Shape: (n, length, width).
    mask (Tensor): 1 for a token, 0 for padding. Shape: (n, length).
    RETURNS (Tensor): Shape: (n, width).
    """
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


POOLINGS: dict[str, Callable[["Tensor", "Tensor"], "Tensor"]] = {
    "cls": pool_cls,
    "mean": pool_mean,
}
