"""Token states → one vector a text. Arrays are those of torch or of numpy."""

from collections.abc import Callable
from typing import Any


def pool_cls(states: Any, mask: Any) -> Any:
    """Return the state of the first token, `[CLS]`.

    states (Array): Token states of the last layer. Shape: (n, length, width).
    mask (Array): 1 for a token, 0 for padding. Shape: (n, length).
    RETURNS (Array): Shape: (n, width).
    SOURCE: Liu et al. (2021), §2.
    """
    return states[:, 0]


def pool_mean(states: Any, mask: Any) -> Any:
    """Return the mean of all token states, `[CLS]` and `[SEP]` included.

    states (Array): Token states of the last layer. Shape: (n, length, width).
    mask (Array): 1 for a token, 0 for padding. Shape: (n, length).
    RETURNS (Array): Shape: (n, width).
    """
    weights = mask[:, :, None]
    return (states * weights).sum(1) / weights.sum(1)


POOLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "cls": pool_cls,
    "mean": pool_mean,
}
