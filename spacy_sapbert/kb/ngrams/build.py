"""Names → kb/ngrams/: the inverted index of their character 3-grams."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from ..store import Store
from .index import FILES, extract_ngrams, hash_words

NAMES_AT_ONCE = 50_000  # whose 3-grams are sorted in memory


class Run(NamedTuple):
    """The 3-grams of a block of names.

    Attributes:
        names: Number of names.
        grams: The distinct 3-grams, ascending. Shape: (grams,).
        counts: Occurrences of each. Shape: (grams,).
        distinct: Number of names with each. Shape: (grams,).
        words: Digests of the words of these names, ascending. Shape: (words,).
        word_counts: Number of names with each. Shape: (words,).
    """

    names: int
    grams: np.ndarray
    counts: np.ndarray
    distinct: np.ndarray
    words: np.ndarray
    word_counts: np.ndarray


def iter_names(store: Store, rows: range) -> Iterator[str]:
    """Yield one alias of each row: the first in the order of CUI and alias."""
    for start in range(0, len(rows), NAMES_AT_ONCE):
        block = rows[start : start + NAMES_AT_ONCE]
        entries = store.entries(block)
        yield from (entries[row][0].alias if row in entries else "" for row in block)


def build_ngrams(names: Iterable[str], folder: Path) -> None:
    """Build the inverted index in bounded memory; equal names give equal bytes.

    The names of row 0, row 1, … are read once. Blocks of them are sorted by 3-gram,
    written to a temporary file, and then merged for each 3-gram.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as scratch:
        runs = sort_names(names, scratch)
        scratch.seek(0)
        write_index(runs, scratch, folder)


def mark_first(grams: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mask of the first occurrence of each 3-gram in each row.

    Both are ascending, the rows for each 3-gram. Shape: (n,).
    """
    first = np.ones(len(grams), dtype=bool)
    first[1:] = (grams[1:] != grams[:-1]) | (rows[1:] != rows[:-1])
    return first


def sort_names(names: Iterable[str], scratch: IO[bytes]) -> list[Run]:
    """Sort the 3-grams of all names, block by block.

    The rows of each block are written to `scratch`, sorted by 3-gram.
    """
    runs: list[Run] = []
    total = 0
    stream = iter(names)
    while block := list(islice(stream, NAMES_AT_ONCE)):
        grams, owners = extract_ngrams(block)
        order = np.argsort(grams, kind="stable")
        grams, rows = grams[order], (owners[order] + total).astype("<i4")
        scratch.write(rows.tobytes())
        counts = np.unique(grams, return_counts=True)
        _, distinct = np.unique(grams[mark_first(grams, rows)], return_counts=True)
        runs.append(Run(len(block), *counts, distinct, *count_words(block)))
        total += len(block)
    return runs


def count_words(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the digests of the words of names, ascending, and their numbers of names.

    Shape: (words,) each.
    """
    hashes = np.fromiter(
        (number for name in names for number in hash_words(name)), dtype=np.int64
    )
    return np.unique(hashes, return_counts=True)


def find_shared_words(runs: Sequence[Run]) -> np.ndarray:
    """Return the digests of the words of two names or more, ascending. Shape: (n,)."""
    nothing = np.zeros(0, dtype=np.int64)
    words = np.concatenate([nothing, *(run.words for run in runs)])
    counts = np.concatenate([nothing, *(run.word_counts for run in runs)])
    distinct, numbers = np.unique(words, return_inverse=True)
    return distinct[np.bincount(numbers, counts, minlength=len(distinct)) > 1]


def write_index(runs: list[Run], scratch: IO[bytes], folder: Path) -> None:
    """Merge the blocks for each 3-gram, and compute the weights.

    The weights are those of scikit-learn's TfidfTransformer.
    """
    nothing = np.zeros(0, dtype=np.int64)
    grams = np.unique(np.concatenate([nothing, *(run.grams for run in runs)]))
    places = [np.searchsorted(grams, run.grams) for run in runs]
    starts = np.zeros(len(grams) + 1, dtype=np.int64)
    distinct = np.zeros(len(grams), dtype=np.int64)
    for run, place in zip(runs, places, strict=True):
        starts[place + 1] += run.counts
        distinct[place] += run.distinct
    starts = starts.cumsum()
    total = sum(run.names for run in runs)
    weights = (np.log((1 + total) / (1 + distinct)) + 1).astype(FILES["weights"])
    scales = np.zeros(total, dtype=FILES["scales"])
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
        parts = np.diff(first, append=size) * weights[numbers[first]]
        squares = np.bincount(rows[first] - begin, parts**2, minlength=run.names)
        with np.errstate(divide="ignore"):
            scale = np.where(squares > 0, squares**-0.5, 0)
        scales[begin : begin + run.names] = scale
        begin += run.names
    postings.flush()
    arrays = {
        "grams": grams,
        "starts": starts,
        "weights": weights,
        "scales": scales,
        "words": find_shared_words(runs),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(FILES[name]), allow_pickle=False)
