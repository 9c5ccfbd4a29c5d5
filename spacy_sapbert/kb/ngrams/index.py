"""Mentions → the names that share most character 3-grams with them, by TF-IDF.

It finds what an encoder of wordpieces does not see: codes, gene symbols, misspellings.
A name and a mention are compared by the cosine of their weighted 3-grams, which are
those of scikit-learn's `char_wb`: each word stands between two blanks, and no 3-gram
crosses from one word into the next.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tokenize import TokenError
from unicodedata import combining, normalize

import numpy as np

from ...errors import Errors, SapbertError

FOLDER = "ngrams"  # in the folder of the knowledge base
LONGEST_TEXT = 1000  # characters that are looked at, as the encoder does
BLANK = ord(" ")
BITS = 21  # of a character's number: three of them fit into 63 bits

# The files, and the type of what each holds.
FILES: dict[str, str] = {
    "grams": "<i8",  # the 3-grams as numbers, ascending (grams,)
    "starts": "<i8",  # where the rows of each begin in `rows` (grams + 1,)
    "rows": "<i4",  # of each 3-gram ascending, a row as often as its name has it
    "weights": "<f4",  # inverse document frequency of each 3-gram (grams,)
    "scales": "<f4",  # by which sums over a row become cosines (names,)
}


def fold_name(text: str) -> str:
    """Write a text as its 3-grams are taken: in lower case, without accents.

    text (str): A name or a mention.
    RETURNS (str): Words with single blanks between them.
    """
    text = text[:LONGEST_TEXT]
    if not text.isascii():
        text = normalize("NFKD", text)
        text = "".join(character for character in text if not combining(character))
        # A lone surrogate is no text to anybody.
        text = text.encode("utf8", "replace").decode("utf8")
    return " ".join(text.lower().split())


def extract_ngrams(names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Take names apart into character 3-grams.

    names (Iterable[str]): Any texts.
    RETURNS (tuple[np.ndarray, np.ndarray]): The 3-grams as numbers, in the order of the
        text, and the number of the name that each is of, int64. Shape: (n,) each.
    """
    texts = [fold_name(name) for name in names]
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    line = f" {' '.join(texts)} ".encode("utf-32-le")
    characters = np.frombuffer(line, dtype="<u4").astype(np.int64)
    # Every character but a blank is the middle of one 3-gram.
    middle = characters[1:-1]
    grams = (characters[:-2] << 2 * BITS) | (middle << BITS) | characters[2:]
    owners = np.repeat(np.arange(len(texts)), lengths + 1)[: len(middle)]
    kept = middle != BLANK
    return grams[kept], owners[kept]


def best_places(cosines: np.ndarray, k: int) -> np.ndarray:
    """Find the k highest cosines above zero.

    cosines (np.ndarray): Shape: (n,).
    k (int): How many.
    RETURNS (np.ndarray): Where they are, the highest first, equal ones in order.
        Shape: (up to k,).
    """
    # Most rows share little with a mention: try without those that do.
    places = np.flatnonzero(cosines > cosines.max(initial=0) / 2)
    if len(places) < k:
        places = np.flatnonzero(cosines > 0)
    if len(places) > k:
        last = np.partition(cosines[places], len(places) - k)[len(places) - k]
        places = places[cosines[places] >= last]
    order = np.lexsort((places, -cosines[places]))
    return places[order[:k]]


def load_ngrams(folder: Path, *, rows: int) -> "NgramIndex":
    """Map an inverted index whose files have been checked.

    folder (Path): What `build_ngrams` wrote.
    rows (int): How many rows the index of the knowledge base has.
    RETURNS (NgramIndex): The inverted index.
    RAISES (SapbertError): If there is none, or it does not belong to these rows.
    """
    if not folder.is_dir():
        raise SapbertError(Errors.E590.format(path=folder))
    arrays: dict[str, np.ndarray] = {}
    for name, kind in FILES.items():
        path = folder / f"{name}.npy"
        try:
            # Without `view`, each slice would be a memmap of its own, which is slow.
            array = np.lib.format.open_memmap(path, mode="r").view(np.ndarray)
        except (OSError, ValueError, TypeError, SyntaxError, TokenError) as error:
            reason = f"it cannot be read ({type(error).__name__})"
            raise SapbertError(Errors.E591.format(path=path, reason=reason)) from None
        if array.dtype != kind or array.ndim != 1:
            reason = (
                f"it holds {array.dtype} of shape {array.shape}, not a row of {kind}"
            )
            raise SapbertError(Errors.E591.format(path=path, reason=reason))
        arrays[name] = array
    starts = arrays["starts"]
    sizes = {
        "starts": len(arrays["grams"]) + 1,
        "weights": len(arrays["grams"]),
        "scales": rows,
        "rows": int(starts[-1]) if len(starts) else 0,
    }
    for name, size in sizes.items():
        if len(arrays[name]) != size:
            reason = f"it holds {len(arrays[name])} numbers and not {size}"
            path = folder / f"{name}.npy"
            raise SapbertError(Errors.E591.format(path=path, reason=reason))
    return NgramIndex(**arrays)


class NgramIndex:
    """For each 3-gram the rows whose names have it; see `FILES`."""

    def __init__(
        self,
        grams: np.ndarray,
        starts: np.ndarray,
        rows: np.ndarray,
        weights: np.ndarray,
        scales: np.ndarray,
    ) -> None:
        self.grams = grams
        self.starts = starts
        self.rows = rows
        self.weights = weights
        self.scales = scales

    def weigh(self, text: str) -> Iterator[tuple[np.ndarray, float]]:
        """Take a mention apart; 3-grams that no name has do not count.

        text (str): The mention.
        YIELDS (tuple[np.ndarray, float]): For each distinct 3-gram the rows that have
            it, ascending and as often as they have it, and what each time adds to the
            cosine, but for the scale of the row.
        """
        grams, counts = np.unique(extract_ngrams([text])[0], return_counts=True)
        places = np.searchsorted(self.grams, grams)
        known = np.searchsorted(self.grams, grams, side="right") > places
        places, counts = places[known], counts[known]
        weights = self.weights[places].astype(np.float64)
        parts = weights * counts  # of the mention's own vector, not yet of unit length
        length = np.sqrt(np.square(parts).sum())
        for place, part in zip(places, parts * weights / (length or 1), strict=True):
            yield self.rows[self.starts[place] : self.starts[place + 1]], part

    def search(
        self, texts: Sequence[str], k: int, *, allowed: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the names that share most with each mention, by exact search.

        texts (Sequence[str]): The mentions.
        k (int): How many rows for each.
        allowed (np.ndarray | None): Which rows may be found, bool; None = all.
            Shape: (rows,).
        RETURNS (tuple[np.ndarray, np.ndarray]): Rows, int64, and cosines, float32, the
            best first, equal ones by row. Where fewer rows share a 3-gram, the rest is
            row −1 with 0. Shape: (n, up to k) each.
        RAISES (SapbertError): If `allowed` is not a mask of the rows.
        """
        scales = self.scales
        if allowed is not None:
            if allowed.shape != scales.shape or allowed.dtype != bool:
                raise SapbertError(
                    Errors.E592.format(
                        rows=len(scales), got=allowed.dtype, shape=allowed.shape
                    )
                )
            scales = np.where(allowed, scales, 0)
        k = min(k, len(scales))
        rows = np.full((len(texts), k), -1, dtype=np.int64)
        scores = np.zeros((len(texts), k), dtype=np.float32)
        sums = np.empty(len(scales))
        cosines = np.empty(len(scales), dtype=np.float32)
        for number, text in enumerate(texts):
            sums.fill(0)
            for found, part in self.weigh(text):
                np.add.at(sums, found, part)
            np.multiply(sums, scales, out=cosines, casting="same_kind")
            best = best_places(cosines, k)
            rows[number, : len(best)] = best
            scores[number, : len(best)] = cosines[best]
        return rows, scores

    def similarity(
        self, texts: Sequence[str], rows: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Compare mentions with some names each.

        texts (Sequence[str]): The mentions.
        rows (Sequence[np.ndarray]): For each mention some rows. Shape: (m,) each.
        RETURNS (list[np.ndarray]): Cosines, as `search` gives them, float32.
            Shape: (m,) each.
        """
        results: list[np.ndarray] = []
        for text, wanted in zip(texts, rows, strict=True):
            sums = np.zeros(len(wanted))
            for found, part in self.weigh(text):
                ends = np.searchsorted(found, wanted, side="right")
                sums += (ends - np.searchsorted(found, wanted)) * part
            results.append((sums * self.scales[wanted]).astype(np.float32))
        return results


class NgramLayers:
    """The inverted indices of the layers of a knowledge base, asked as one.

    parts (Sequence[tuple[int, NgramIndex]]): Each with the number of its row 0.
    """

    def __init__(self, parts: Sequence[tuple[int, NgramIndex]]) -> None:
        self.parts = parts

    def search(
        self, texts: Sequence[str], k: int, *, allowed: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `NgramIndex.search`; up to k rows of each layer, not in order."""
        rows: list[np.ndarray] = []
        scores: list[np.ndarray] = []
        for first, index in self.parts:
            size = len(index.scales)
            own = None if allowed is None else allowed[first : first + size]
            found, cosines = index.search(texts, k, allowed=own)
            rows.append(np.where(found >= 0, found + first, -1))
            scores.append(cosines)
        return np.concatenate(rows, axis=1), np.concatenate(scores, axis=1)

    def similarity(
        self, texts: Sequence[str], rows: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """See `NgramIndex.similarity`."""
        results = [np.zeros(len(wanted), dtype=np.float32) for wanted in rows]
        for first, index in self.parts:
            size = len(index.scales)
            masks = [(wanted >= first) & (wanted < first + size) for wanted in rows]
            own = [w[mask] - first for w, mask in zip(rows, masks, strict=True)]
            found = index.similarity(texts, own)
            for result, mask, cosines in zip(results, masks, found, strict=True):
                result[mask] = cosines
        return results
