"""Arrays in files, mapped and not read."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..errors import SapbertError
from .forks import ProcessLock

# numpy parses headers with `ast`, which fails in two threads before Python 3.11.8.
PARSING = ProcessLock()


def map_arrays(
    paths: Mapping[str, Path], kinds: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Map arrays of one dimension in files of numpy, after a check of their types."""
    arrays: dict[str, np.ndarray] = {}
    for name, kind in kinds.items():
        reason = None
        try:
            with PARSING:
                mapped = np.lib.format.open_memmap(paths[name], mode="r")
            array = mapped.view(np.ndarray)  # each slice of a memmap is one, slowly
            if array.dtype != kind or array.ndim != 1:
                reason = f"it holds {array.dtype} of shape {array.shape}, not {kind}"
            arrays[name] = array
        except Exception as error:  # numpy raises almost any for a damaged header
            reason = f"it cannot be read ({type(error).__name__})"
        if reason is not None:
            raise damaged_arrays(path=paths[name], reason=reason)
    return arrays


def find_sorted(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the keys among ascending values, and the places of these."""
    places = np.searchsorted(values, keys)
    known = np.searchsorted(values, keys, side="right") > places
    return known, places[known]


def damaged_arrays(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E306",
        f"{path}: Expected character n-grams of the names of this knowledge base, but "
        f"{reason}. Copy or build the knowledge base again.",
    )
