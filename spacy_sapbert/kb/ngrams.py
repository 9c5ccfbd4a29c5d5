"""Character 3-grams: names → kb/ngrams/; mentions → the names that share most of them.

They find codes and misspellings. As scikit-learn's `char_wb`, they are within words.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from ..io.arrays import find_sorted, map_arrays
from ..linking.text import fold_letters
from .store import Store

MAX_CHARACTERS = 1000  # of a text, as for the encoder
BLANK = ord(" ")
BITS = 21  # of a character's number: three of them fit into 63 bits
NAMES_AT_ONCE = 50_000  # whose 3-grams are sorted in memory

# The files, and the type of the array in each.
FILES: dict[str, str] = {
    "grams": "<i8",  # the 3-grams as numbers, ascending (grams,)
    "starts": "<i8",  # start of the rows of each in `rows` (grams + 1,)
    "rows": "<i4",  # ascending for each 3-gram, once for each occurrence
    "weights": "<f4",  # inverse document frequency of each 3-gram (grams,)
    "scales": "<f4",  # factors from sums to cosines (names,)
    # the same of the names that may be in English; 0 for the others
    "english_weights": "<f4",
    "english_scales": "<f4",
}


def extract_ngrams(names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return 3-grams as numbers, in order, and the name of each as a number; int64."""
    texts = [fold_letters(name[:MAX_CHARACTERS]) for name in names]
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    line = f" {' '.join(texts)} ".encode("utf-32-le")
    characters = np.frombuffer(line, dtype="<u4").astype(np.int64)
    # Every character but a blank is the middle of one 3-gram.
    middle = characters[1:-1]
    grams = (characters[:-2] << 2 * BITS) | (middle << BITS) | characters[2:]
    owners = np.repeat(np.arange(len(texts)), lengths + 1)[: len(middle)]
    kept = middle != BLANK
    return grams[kept], owners[kept]


def find_highest(cosines: np.ndarray, k: int) -> np.ndarray:
    """Return the rows of the k highest cosines above zero, best first, then by row."""
    # Most rows share little with a mention: try the others first.
    for part in (2, 4, np.inf):
        rows = np.flatnonzero(cosines > cosines.max(initial=0) / part)
        if len(rows) >= k:
            break
    if len(rows) > k:
        last = np.partition(cosines[rows], len(rows) - k)[len(rows) - k]
        rows = rows[cosines[rows] >= last]
    order = np.lexsort((rows, -cosines[rows]))
    return rows[order[:k]]


@dataclass(frozen=True, eq=False)
class Postings:
    """The rows of each 3-gram in the files of a folder; see `FILES`."""

    grams: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    scales: np.ndarray

    def find(self, grams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a mask of those of some 3-grams that are known, and their numbers."""
        known, numbers = find_sorted(grams, self.grams)
        # Those that only names in other languages have weigh 0: they are not known.
        counted = self.weights[numbers] > 0
        known[known] = counted
        return known, numbers[counted]


def load_ngrams(paths: Mapping[str, Path], *, english: bool) -> Postings:
    """Map the files in `FILES`; if `english`, only names that may be English count."""
    arrays = map_arrays(paths)
    chosen = "english_" if english else ""
    weights, scales = arrays[f"{chosen}weights"], arrays[f"{chosen}scales"]
    return Postings(arrays["grams"], arrays["starts"], arrays["rows"], weights, scales)


def weigh_as_built(added: Postings, base: Postings) -> Postings:
    """Return 3-grams of an overlay, as if its names had been built with the others.

    One that `base` lacks has the weight of its number of names among those of both.
    """
    numbers = np.repeat(np.arange(len(added.grams)), np.diff(added.starts))
    counted = added.scales[added.rows] > 0  # not of names in other languages
    pairs = [numbers[counted], added.rows[counted]]
    cells, counts = np.unique(pairs, axis=1, return_counts=True)
    distinct = np.bincount(cells[0], minlength=len(added.grams))
    total = np.count_nonzero(base.scales) + np.count_nonzero(added.scales)
    weights = np.log((1 + total) / (1 + distinct)) + 1
    weights[distinct == 0] = 0
    known, places = base.find(added.grams)
    weights[known] = base.weights[places]
    squares = np.square(counts * weights[cells[0]])
    lengths = np.sqrt(np.bincount(cells[1], squares, minlength=len(added.scales)))
    scales = np.divide(1, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    return replace(
        added,
        weights=weights.astype(FILES["weights"]),
        scales=scales.astype(FILES["scales"]),
    )


class NgramIndex:
    """The 3-grams of the names that were built, and those of an overlay.

    `hidden` masks the rows that were built and are not found.
    """

    def __init__(
        self,
        base: Postings,
        added: Postings | None = None,
        *,
        hidden: np.ndarray | None = None,
    ) -> None:
        self.layers = [base]
        if added is not None:
            self.layers.append(weigh_as_built(added, base))
        if hidden is not None and hidden.any():
            self.layers[0] = replace(base, scales=np.where(hidden, 0, base.scales))
        ends = np.cumsum([0, *(len(layer.scales) for layer in self.layers)]).tolist()
        self.places = [slice(*pair) for pair in pairwise(ends)]  # rows of each layer
        self.total = ends[-1]

    def weigh(self, texts: Sequence[str]) -> Iterator[list[list[tuple[int, float]]]]:
        """Yield the number and weight of each 3-gram, by layer, for each mention.

        The weight is what an occurrence adds to the cosine before the scale of the row.
        """
        grams, owners = extract_ngrams(texts)
        order = np.lexsort((grams, owners))
        grams, owners = grams[order], owners[order]
        is_first = mark_first(grams, owners)
        counts = np.diff(np.flatnonzero(np.append(is_first, True)))
        grams, owners = grams[is_first], owners[is_first]
        found = [layer.find(grams) for layer in self.layers]
        weights = np.zeros(len(grams))
        for layer, (known, numbers) in zip(self.layers, found, strict=True):
            weights[known] = layer.weights[numbers]
        parts = weights * counts  # of the vector of a mention, before normalisation
        lengths = np.sqrt(np.bincount(owners, np.square(parts), minlength=len(texts)))
        pairs: list[list[list[tuple[int, float]]]] = []
        for known, numbers in found:
            values = (parts * weights)[known] / lengths[owners[known]]
            ends = np.searchsorted(owners[known], np.arange(len(texts) + 1)).tolist()
            every = [*zip(numbers.tolist(), values.tolist(), strict=True)]
            pairs.append([every[start:end] for start, end in pairwise(ends)])
        yield from map(list, zip(*pairs, strict=True))

    def unite(
        self,
        texts: Sequence[str],
        near: Sequence[np.ndarray],
        k: int,
        *,
        allowed: np.ndarray | None = None,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Add the rows of the k most similar names of each mention to those near it.

        `allowed` masks all rows. Returns those near, then the others, ascending, and
        the cosines of all, (m,) each.
        """
        scales = [layer.scales for layer in self.layers]
        if allowed is not None:
            pairs = zip(self.places, scales, strict=True)
            scales = [np.where(allowed[place], some, 0) for place, some in pairs]
        sums = np.empty(self.total)
        cosines = np.empty(self.total, dtype=np.float32)
        united: list[tuple[np.ndarray, np.ndarray]] = []
        for some, of_layers in zip(near, self.weigh(texts), strict=True):
            sums.fill(0)
            for layer, place, grams in zip(
                self.layers, self.places, of_layers, strict=True
            ):
                part, rows, starts = sums[place], layer.rows, layer.starts
                for gram, weight in grams:
                    # A row is there once for each occurrence.
                    np.add.at(part, rows[starts[gram] : starts[gram + 1]], weight)
            cosines[:] = sums
            for place, factors in zip(self.places, scales, strict=True):
                part = cosines[place]
                part *= factors
            others = {*find_highest(cosines, k).tolist()}.difference(some.tolist())
            rows = np.append(some, np.array(sorted(others), dtype=np.int64))
            united.append((rows, cosines[rows]))
        return united


# Building


class Run(NamedTuple):
    """The 3-grams of a block of names."""

    names: int
    grams: np.ndarray  # distinct, ascending (grams,)
    counts: np.ndarray  # occurrences of each (grams,)
    distinct: np.ndarray  # names with each, and of those in English (2, grams)
    english: np.ndarray  # whether each name may be in English (names,)


def iter_names(store: Store, rows: range) -> Iterator[tuple[str, bool]]:
    """Yield the first alias of each row, by CUI, and whether a name may be English."""
    for start in range(0, len(rows), NAMES_AT_ONCE):
        block = rows[start : start + NAMES_AT_ONCE]
        entries = store.entries(block)
        for row in block:
            names = entries[row]
            english = any(store.rules_of(entry.origin) == "english" for entry in names)
            yield names[0].alias, english


def build_ngrams(store: Store, rows: range, folder: Path) -> None:
    write_ngrams(iter_names(store, rows), folder)


def write_ngrams(names: Iterable[tuple[str, bool]], folder: Path) -> None:
    """Build the inverted index in bounded memory; equal names give equal bytes.

    A name comes with whether it may be English. Sorted blocks of names are merged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as scratch:
        runs = sort_names(names, scratch)
        scratch.seek(0)
        write_index(runs, scratch, folder)


def mark_first(grams: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a mask of the first of equal pairs, which are neighbours. Shape: (n,)."""
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
