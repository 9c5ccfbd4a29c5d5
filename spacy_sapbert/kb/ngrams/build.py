"""Names → kb/ngrams/: the inverted index of their character 3-grams."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from ..store import Store
from .index import FILES, extract_ngrams

NAMES_AT_ONCE = 50_000  # whose 3-grams are sorted in memory


class Run(NamedTuple):
    """The 3-grams of a block of names.

    Attributes:
        names: Number of names.
        grams: The distinct 3-grams, ascending. Shape: (grams,).
        counts: Occurrences of each. Shape: (grams,).
        distinct: Number of names with each, and of those in English. Shape: (2, grams).
        english: Whether each name may be in English, bool. Shape: (names,).
    """

    names: int
    grams: np.ndarray
    counts: np.ndarray
    distinct: np.ndarray
    english: np.ndarray


def iter_names(store: Store, rows: range) -> Iterator[tuple[str, bool]]:
    """Yield the first alias of each row, by CUI, and whether a name may be English."""
    for start in range(0, len(rows), NAMES_AT_ONCE):
        block = rows[start : start + NAMES_AT_ONCE]
        entries = store.entries(block)
        for row in block:
            names = entries.get(row, ())
            english = any(store.rules_of(entry.origin) == "english" for entry in names)
            yield (names[0].alias if names else ""), english


def build_ngrams(store: Store, rows: range, folder: Path) -> None:
    write_ngrams(iter_names(store, rows), folder)


def write_ngrams(names: Iterable[tuple[str, bool]], folder: Path) -> None:
    """Build the inverted index in bounded memory; equal names give equal bytes.

    Blocks of the names of row 0, row 1, … are sorted by 3-gram, written to a temporary
    file, and then merged for each 3-gram. Each comes with whether it may be English.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as scratch:
        runs = sort_names(names, scratch)
        scratch.seek(0)
        write_index(runs, scratch, folder)


def mark_first(grams: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a mask of the first of equal pairs, which are ascending. Shape: (n,)."""
    first = np.ones(len(grams), dtype=bool)
    first[1:] = (grams[1:] != grams[:-1]) | (rows[1:] != rows[:-1])
    return first


def sort_names(names: Iterable[tuple[str, bool]], scratch: IO[bytes]) -> list[Run]:
    """Write the rows of each block to `scratch`, sorted by 3-gram."""
    runs: list[Run] = []
    total = 0
    stream = iter(names)
    while block := list(islice(stream, NAMES_AT_ONCE)):
        grams, owners = extract_ngrams([name for name, _ in block])
        english = np.array([flag for _, flag in block], dtype=bool)
        order = np.argsort(grams, kind="stable")
        grams, rows = grams[order], (owners[order] + total).astype("<i4")
        scratch.write(rows.tobytes())
        known, counts = np.unique(grams, return_counts=True)
        first = mark_first(grams, rows)
        places = np.searchsorted(known, grams[first])
        flags = english[rows[first] - total]
        distinct = [np.bincount(places, w, len(known)) for w in (None, flags)]
        runs.append(Run(len(block), known, counts, np.array(distinct, int), english))
        total += len(block)
    return runs


def write_index(runs: list[Run], scratch: IO[bytes], folder: Path) -> None:
    """Merge the blocks; the weights are those of scikit-learn's TfidfTransformer."""
    nothing = np.zeros(0, dtype=np.int64)
    grams = np.unique(np.concatenate([nothing, *(run.grams for run in runs)]))
    places = [np.searchsorted(grams, run.grams) for run in runs]
    starts = np.zeros(len(grams) + 1, dtype=np.int64)
    distinct = np.zeros((2, len(grams)), dtype=np.int64)
    for run, place in zip(runs, places, strict=True):
        starts[place + 1] += run.counts
        distinct[:, place] += run.distinct
    starts = starts.cumsum()
    total = sum(run.names for run in runs)
    totals = np.array([[total], [sum(int(run.english.sum()) for run in runs)]])
    weights = (np.log((1 + totals) / (1 + distinct)) + 1).astype(FILES["weights"])
    weights[distinct == 0] = 0
    scales = np.zeros((2, total), dtype=FILES["scales"])
    postings = np.lib.format.open_memmap(
        folder / "rows.npy", mode="w+", dtype=FILES["rows"], shape=(int(starts[-1]),)
    )
    free, begin = starts[:-1].copy(), 0
    for run, place in zip(runs, places, strict=True):
        size = int(run.counts.sum())
        rows = np.frombuffer(scratch.read(4 * size), dtype=FILES["rows"])
        shift = free[place] - (run.counts.cumsum() - run.counts)
        postings[np.arange(size) + np.repeat(shift, run.counts)] = rows
        free[place] += run.counts
        # The length of the vector of each name; repeated 3-grams count repeatedly.
        numbers = np.repeat(place, run.counts)
        first = np.flatnonzero(mark_first(numbers, rows))
        for number, kept in enumerate((np.ones_like(run.english), run.english)):
            parts = np.diff(first, append=size) * weights[number, numbers[first]]
            squares = np.bincount(rows[first] - begin, parts**2, minlength=run.names)
            with np.errstate(divide="ignore"):
                scale = np.where((squares > 0) & kept, squares**-0.5, 0)
            scales[number, begin : begin + run.names] = scale
        begin += run.names
    postings.flush()
    arrays = {
        "grams": grams,
        "starts": starts,
        "weights": weights[0],
        "scales": scales[0],
        "english_weights": weights[1],
        "english_scales": scales[1],
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(FILES[name]), allow_pickle=False)
