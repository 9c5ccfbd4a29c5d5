"""Token states → one vector a text, for arrays of torch and of numpy.

States are those of the last layer, of shape (n, length, width). A mask is 1 for a token
and 0 for padding, of shape (n, length). A result has the shape (n, width).
"""

from collections.abc import Callable
from typing import Any


def pool_cls(states: Any, mask: Any) -> Any:
    """Return the state of the first token, `[CLS]`: Liu et al. (2021), §2."""
    return states[:, 0]


def pool_mean(states: Any, mask: Any) -> Any:
    """Return the mean of all token states, `[CLS]` and `[SEP]` included."""
    weights = mask[:, :, None]
    return (states * weights).sum(1) / weights.sum(1)


POOLINGS: dict[str, Callable[[Any, Any], Any]] = {"cls": pool_cls, "mean": pool_mean}
