"""Mentions → the names that share most character 3-grams with them, by TF-IDF.

3-grams find codes, gene symbols and misspellings. A name and a mention are compared by
the cosine of their weighted 3-grams, those of scikit-learn's `char_wb`: each word is
between two blanks, and no 3-gram crosses a word boundary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...io.arrays import damaged_arrays, map_arrays
from ...linking.text import fold_letters

MAX_CHARACTERS = 1000  # of a text, as for the encoder
BLANK = ord(" ")
BITS = 21  # of a character's number: three of them fit into 63 bits

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
    """Return the 3-grams of names as numbers, and the number of the name of each.

    They are in the order of the text, int64. Shape: (n,) each.
    """
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


@contextmanager
def name_damage() -> Iterator[None]:
    """Name the error of files that contradict each other."""
    try:
        yield
    except (IndexError, ValueError) as error:
        reason = f"its files contradict each other ({type(error).__name__})"
        raise damaged_arrays(path="ngrams", reason=reason) from None


def find_highest(cosines: np.ndarray, k: int) -> np.ndarray:
    """Return the rows of the k highest cosines above zero, the best first.

    Equal cosines are in order of row. Shape: (n,) → (up to k,).
    """
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


def list_paths(folder: Path) -> dict[str, Path]:
    """Return the files of an inverted index by their keys in `FILES`."""
    return {name: folder / f"{name}.npy" for name in FILES}


def load_ngrams(paths: Mapping[str, Path], *, rows: int, english: bool) -> "NgramIndex":
    """Map the files of an inverted index of `rows` rows, by keys in `FILES`.

    If `english`, only names count that may be in English.
    """
    arrays = map_arrays(paths, FILES)
    for name in ("scales", "english_scales"):
        if (count := len(arrays[name])) != rows:
            reason = f"it holds {count} numbers and not {rows}"
            raise damaged_arrays(path=paths[name], reason=reason)
    chosen = "english_" if english else ""
    weights, scales = arrays[f"{chosen}weights"], arrays[f"{chosen}scales"]
    return NgramIndex(
        arrays["grams"], arrays["starts"], arrays["rows"], weights, scales
    )


@dataclass(frozen=True, eq=False)
class NgramIndex:
    """The rows of each 3-gram; see `FILES`.

    `beside` are the 3-grams of an index that is searched together with this one,
    ascending, and their weights: they count in the length of a mention.
    """

    grams: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    scales: np.ndarray
    beside: tuple[np.ndarray, np.ndarray] | None = field(default=None, kw_only=True)

    def weigh(self, texts: Sequence[str]) -> Iterator[list[tuple[int, float]]]:
        """Yield the number and the weight of each distinct 3-gram of each mention.

        The weight is what an occurrence adds to the cosine before the scale of the row.
        """
        grams, owners = extract_ngrams(texts)
        order = np.lexsort((grams, owners))
        grams, owners = grams[order], owners[order]
        is_first = np.ones(len(grams), dtype=bool)
        is_first[1:] = (np.diff(grams) != 0) | (np.diff(owners) != 0)
        counts = np.diff(np.flatnonzero(np.append(is_first, True)))
        grams, owners = grams[is_first], owners[is_first]
        known, numbers = find_grams(self.grams, grams)
        # Those that only names in other languages have weigh 0: they are not known.
        counted = self.weights[numbers] > 0
        known[known], numbers = counted, numbers[counted]
        weights = np.zeros(len(grams))
        weights[known] = self.weights[numbers]
        if self.beside is not None:
            more, others = find_grams(self.beside[0], grams)
            weights[more & ~known] = self.beside[1][others[~known[more]]]
        parts = weights * counts  # of the vector of a mention, before normalisation
        lengths = np.sqrt(np.bincount(owners, np.square(parts), minlength=len(texts)))
        values = (parts * weights)[known] / lengths[owners[known]]
        ends = np.searchsorted(owners[known], np.arange(len(texts) + 1))
        pairs = [*zip(numbers.tolist(), values.tolist(), strict=True)]
        for start, end in pairwise(ends.tolist()):
            yield pairs[start:end]

    def compare(
        self, texts: Sequence[str], allowed: np.ndarray | None
    ) -> Iterator[np.ndarray]:
        """Yield the cosines of each mention and all names, float32. Shape: (names,).

        It is the same array each time. What is not `allowed`, a mask, has 0.
        """
        scales = self.scales
        if allowed is not None:
            scales = np.where(allowed, scales, 0)
        sums = np.empty(len(scales))
        cosines = np.empty(len(scales), dtype=np.float32)
        starts = self.starts
        for grams in self.weigh(texts):
            sums.fill(0)
            for gram, weight in grams:
                # A row is there once for each occurrence.
                np.add.at(sums, self.rows[starts[gram] : starts[gram + 1]], weight)
            cosines[:] = sums
            cosines *= scales
            yield cosines

    @name_damage()
    def unite(
        self,
        texts: Sequence[str],
        near: Sequence[np.ndarray],
        k: int,
        *,
        allowed: np.ndarray | None = None,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Add the rows of the k most similar names of each mention to other rows.

        The search is exact. `near` are the other rows of each mention; they are among
        those that `allowed`, a mask of all rows, allows.

        Returns for each mention its rows, ascending, int64, and their cosines, float32.
        Shape: (m,) each.
        """
        united: list[tuple[np.ndarray, np.ndarray]] = []
        compared = self.compare(texts, allowed)
        for some, cosines in zip(near, compared, strict=True):
            rows = np.union1d(some, find_highest(cosines, k))
            united.append((rows, cosines[rows]))
        return united


def find_grams(known: np.ndarray, grams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the 3-grams among known, ascending ones, and their numbers."""
    numbers = np.searchsorted(known, grams)
    is_known = np.searchsorted(known, grams, side="right") > numbers
    return is_known, numbers[is_known]


@name_damage()
def weigh_as_built(index: NgramIndex, base: NgramIndex) -> NgramIndex:
    """Return an index with nearly the cosines that its names would have in another one.

    A 3-gram has the weight that it has in `base`; one that `base` lacks, that of its
    number of names among those of both. The lengths of the names follow from these.
    """
    numbers = np.repeat(np.arange(len(index.grams)), np.diff(index.starts))
    counted = index.scales[index.rows] > 0  # not of names in other languages
    pairs = [numbers[counted], index.rows[counted]]
    cells, counts = np.unique(pairs, axis=1, return_counts=True)
    distinct = np.bincount(cells[0], minlength=len(index.grams))
    total = np.count_nonzero(base.scales) + np.count_nonzero(index.scales)
    weights = np.log((1 + total) / (1 + distinct)) + 1
    weights[distinct == 0] = 0
    known, places = find_grams(base.grams, index.grams)
    known[known] = base.weights[places] > 0
    weights[known] = base.weights[find_grams(base.grams, index.grams[known])[1]]
    squares = np.square(counts * weights[cells[0]])
    lengths = np.sqrt(np.bincount(cells[1], squares, minlength=len(index.scales)))
    scales = np.divide(1, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    return replace(
        index,
        weights=weights.astype(FILES["weights"]),
        scales=scales.astype(FILES["scales"]),
        beside=(base.grams, base.weights),
    )


class NgramLayers:
    """The inverted index of a knowledge base and that of its edits."""

    def __init__(self, base: NgramIndex, added: NgramIndex) -> None:
        added = weigh_as_built(added, base)
        base = replace(base, beside=(added.grams, added.weights))
        self.parts = [(0, base), (len(base.scales), added)]

    def unite(
        self,
        texts: Sequence[str],
        near: Sequence[np.ndarray],
        k: int,
        *,
        allowed: np.ndarray | None = None,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """See `NgramIndex.unite`; with up to k rows of each index."""
        rows: list[list[np.ndarray]] = [[] for _ in texts]
        cosines: list[list[np.ndarray]] = [[] for _ in texts]
        for first, index in self.parts:
            last = first + len(index.scales)
            own = [some[(some >= first) & (some < last)] - first for some in near]
            mask = None if allowed is None else allowed[first:last]
            found = index.unite(texts, own, k, allowed=mask)
            for number, (some, similarities) in enumerate(found):
                rows[number].append(some + first)
                cosines[number].append(similarities)
        joined = map(np.concatenate, rows), map(np.concatenate, cosines)
        return [*zip(*joined, strict=True)]
