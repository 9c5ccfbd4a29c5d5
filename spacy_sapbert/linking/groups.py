"""Candidates of several mentions in one array, those of a mention together.

What is computed of a mention depends on its own candidates alone, and in their order:
no sum, and no other value, changes with the mentions beside it.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def cut(values: Iterable[T], sizes: Iterable[int]) -> list[list[T]]:
    """Return values in parts of some sizes."""
    rest = iter(values)
    return [[*islice(rest, size)] for size in sizes]


class Groups:
    """Which candidates are of which mention.

    Attributes:
        sizes: The number of candidates of each mention. Shape: (mentions,).
        starts: The place of its first candidate. Shape: (mentions,).
        owners: The number of the mention of each candidate. Shape: (candidates,).
    """

    def __init__(self, sizes: Sequence[int] | np.ndarray) -> None:
        self.sizes = np.array(sizes, dtype=np.int64)
        self.starts = self.sizes.cumsum() - self.sizes
        self.owners = np.arange(len(self.sizes)).repeat(self.sizes)

    @cached_property
    def filled(self) -> np.ndarray | None:
        """Which mentions have candidates; None = all of them. Shape: (mentions,)."""
        filled: np.ndarray = self.sizes > 0
        return None if len(filled) and filled.all() else filled

    def reduce(self, function: np.ufunc, values: np.ndarray, empty: Any) -> np.ndarray:
        """Return what a function makes of the values of each mention.

        `empty` = of a mention without candidates. Shape: (candidates, …) → (mentions,
        …).
        """
        if self.filled is None:
            return function.reduceat(values, self.starts)
        found = np.full((len(self.sizes), *values.shape[1:]), empty, dtype=values.dtype)
        if self.filled.any():
            found[self.filled] = function.reduceat(values, self.starts[self.filled])
        return found

    def highest(self, values: np.ndarray, least: float = -np.inf) -> np.ndarray:
        """Return the highest values of each mention, or `least`. (mentions, …)"""
        found = self.reduce(np.maximum, values, least)
        return np.maximum(found, least) if least > -np.inf else found

    def gaps(self, values: np.ndarray) -> np.ndarray:
        """Return how far each value is below the highest. Shape: (candidates, …)."""
        return self.highest(values)[self.owners] - values

    def any(self, chosen: np.ndarray) -> np.ndarray:
        """Return which mentions have a candidate that is chosen. Shape: (mentions,)."""
        return self.reduce(np.logical_or, chosen, False)

    def split(self, values: np.ndarray) -> list[list[Any]]:
        """Return the values of each mention, as lists."""
        return cut(values.tolist(), self.sizes.tolist())
