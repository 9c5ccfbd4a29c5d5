"""Candidates of several mentions in one array, those of a mention together.

What is computed of a mention depends on its own candidates alone, and in their order:
no sum, and no other value, changes with the mentions beside it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


class Groups:
    """Which candidates are of which mention.

    Attributes:
        sizes: The number of candidates of each mention. Shape: (mentions,).
        owners: The number of the mention of each candidate. Shape: (candidates,).
        places: The place of each candidate among those of its mention. The same shape.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = np.array(sizes, dtype=np.int64)
        self.owners = np.repeat(np.arange(len(sizes)), self.sizes)
        starts = np.cumsum(self.sizes) - self.sizes
        self.places = np.arange(len(self.owners)) - starts[self.owners]

    def highest(self, values: np.ndarray, initial: float = -np.inf) -> np.ndarray:
        """Return the highest value of each mention. Shape: (mentions,)."""
        found = np.full(len(self.sizes), initial)
        np.maximum.at(found, self.owners, values)
        return found

    def lowest(self, values: np.ndarray) -> np.ndarray:
        """Return the lowest value of each mention. Shape: (mentions,)."""
        found = np.full(len(self.sizes), np.inf)
        np.minimum.at(found, self.owners, values)
        return found

    def gaps(self, values: np.ndarray) -> np.ndarray:
        """Return how far each value is below the highest. Shape: (candidates,)."""
        return self.highest(values)[self.owners] - values

    def any(self, chosen: np.ndarray) -> np.ndarray:
        """Return which mentions have a candidate that is chosen. Shape: (mentions,)."""
        return np.bincount(self.owners[chosen], minlength=len(self.sizes)) > 0

    def spread(self, values: np.ndarray, rest: Any) -> np.ndarray:
        """Return a row for each mention, with `rest` behind its candidates.

        Shape: (mentions, most candidates of one).
        """
        shape = (len(self.sizes), int(self.sizes.max(initial=0)))
        table = np.full(shape, rest, dtype=values.dtype)
        table[self.owners, self.places] = values
        return table

    def first(self, chosen: np.ndarray) -> np.ndarray:
        """Return the place of the first chosen candidate of each mention.

        Each must have one. Shape: (mentions,).
        """
        places = np.flatnonzero(chosen)
        return places[np.searchsorted(self.owners[places], np.arange(len(self.sizes)))]
