"""Arrays in files, mapped and not read."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .forks import ProcessLock

# numpy parses headers with `ast`, which fails in two threads before Python 3.11.8.
PARSING = ProcessLock()


def map_arrays(paths: Mapping[str, Path]) -> dict[str, np.ndarray]:
    """Map the arrays in files of numpy, which hold no objects."""
    with PARSING:
        mapped = {
            name: np.lib.format.open_memmap(path, mode="r")
            for name, path in paths.items()
        }
    # Each slice of a memmap is one, slowly.
    return {name: array.view(np.ndarray) for name, array in mapped.items()}


def find_sorted(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the keys among ascending values, and the places of these.

    Keys have any shape, and the mask has it too. Shape of the places: (known,).
    """
    if not len(values):
        return np.zeros(keys.shape, dtype=bool), np.zeros(0, dtype=np.int64)
    places = np.searchsorted(values, keys)
    known: np.ndarray = values.take(places, mode="clip") == keys
    return known, places[known]
