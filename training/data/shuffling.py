"""Numbers of pairs in the random order of an epoch."""

from collections.abc import Iterator
from math import isqrt

import numpy as np

ROUNDS = 6


def mix_bits(values: np.ndarray) -> np.ndarray:
    """Hash numbers. uint64 in and out, shape: (n,).

    SOURCE: Steele et al. (2014), Fast splittable pseudorandom number generators;
        the constants of Stafford's Mix13, as in SplitMix64.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def permute(numbers: np.ndarray, total: int, *, seed: int, epoch: int) -> np.ndarray:
    """Return the numbers at some places of a random order, without building the order.

    numbers (np.ndarray): Places, each below `total`. Shape: (n,).
    total (int): How many numbers are shuffled, at least 1.
    epoch (int): From 0.
    RETURNS (np.ndarray): Different numbers below `total`, int64. Shape: (n,).
    SOURCE: Black and Rogaway (2002), Ciphers with arbitrary finite domains.
    """
    side = np.uint64(isqrt(total - 1) + 1)
    keys = np.random.SeedSequence([seed, epoch]).generate_state(ROUNDS, np.uint64)
    found = np.array(numbers, dtype=np.uint64)
    left = np.arange(len(found))
    while len(left):
        high, low = np.divmod(found[left], side)
        for key in keys:
            high, low = low, (high + mix_bits(low + key) % side) % side
        found[left] = high * side + low
        left = left[found[left] >= np.uint64(total)]
    return found.astype(np.int64)


def shuffled_batches(
    total: int, *, size: int, seed: int, epoch: int, start: int = 0
) -> Iterator[np.ndarray]:
    """Yield the numbers 0 to `total` − 1 in the random order of an epoch.

    size (int): Pairs in a batch; the last one may have fewer.
    start (int): Number of batches to skip.
    YIELDS (np.ndarray): Numbers of pairs, int64. Shape: (size,).
    """
    for first in range(start * size, total, size):
        places = np.arange(first, min(first + size, total))
        yield permute(places, total, seed=seed, epoch=epoch)
