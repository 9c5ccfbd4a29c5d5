"""The parts of a text that may be names of a knowledge base, found without a database.

Each name has a key, the sum of the hashes of its folded words (see `text.name_keys`).
So the key of any part of a text is a difference of two sums, and one look-up is enough
for all ways to write it. A part that is found may not be a name (`text.is_written` says
whether it is); a part that is not found is not a name.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Self

import numpy as np

from .text import (
    CHARACTERS_A_WORD,
    HYPHEN,
    UNSPACED_CHARACTER,
    Rules,
    fold_piece,
    hash_word,
    split_text,
)

STARTS_AT_ONCE = 2_000  # bounds memory for a very long text
BITS_A_NAME = 3  # a power of two
ROUNDING = 1e-6


class Window(NamedTuple):
    """A part of a text that may be a name.

    Attributes:
        start, end: In characters.
        key: See `text.name_keys`.
    """

    start: int
    end: int
    key: int


def find_places(table: np.ndarray, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each hash in an ascending table, and whether it is there."""
    places = np.searchsorted(table, hashes)
    places[places == len(table)] = 0
    return places, table[places] == hashes


class Pieces(NamedTuple):
    """The words and numbers of a text; see `text.split_text`.

    Attributes:
        joined: Which are several parts with hyphens between; None = all may be a name.
    """

    words: list[str]
    starts: list[int]
    ends: list[int]
    joined: list[bool] | None = None


def join_parts(text: str, pieces: Pieces, rules: Rules) -> Pieces:
    """Return the pieces of a text with the parts of a word joined at its hyphens."""
    hyphens = [match.start() for match in HYPHEN.finditer(text)]
    places = {*hyphens}
    joined = Pieces([], [], [], [])
    assert joined.joined is not None
    for word, start, end in zip(*pieces[:3], strict=True):
        if joined.ends and start - 1 == joined.ends[-1] and start - 1 in places:
            start = joined.starts[-1]
            (word, *_) = fold_piece(text[start:end], rules)
            for values in (joined.words, joined.starts, joined.ends, joined.joined):
                values.pop()
        joined.words.append(word)
        joined.starts.append(start)
        within = bisect_right(hyphens, start)
        joined.joined.append(within < len(hyphens) and hyphens[within] < end)
        joined.ends.append(end)
    return joined


def find_ends(text: str, pieces: Pieces, max_tokens: int) -> np.ndarray:
    """Return for each piece the one after the last of a part that starts with it.

    A part has at most `max_tokens` words and numbers, and no blank line.
    """
    count = len(pieces.words)
    sizes = np.ones(count)
    if UNSPACED_CHARACTER.search(text):
        unspaced = [UNSPACED_CHARACTER.match(text, start) for start in pieces.starts]
        sizes[[match is not None for match in unspaced]] = 1 / CHARACTERS_A_WORD
    totals = np.concatenate([[0], np.cumsum(sizes)])
    ends = np.searchsorted(totals, totals[:-1] + max_tokens + ROUNDING, "right") - 1
    if text.count("\n") > 1:
        gaps = zip(pieces.ends, pieces.starts[1:], strict=False)
        blank = [text.count("\n", end, start) > 1 for end, start in gaps]
        firsts = np.append(np.flatnonzero(blank) + 1, count)
        after = firsts[np.searchsorted(firsts, np.arange(count), "right")]
        ends = np.minimum(ends, after)
    return ends


class NameIndex:
    """The keys of the names of a knowledge base: 9 to 10 bytes each.

    Attributes:
        keys: uint64, ascending. Shape: (n,).
    """

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys if len(keys) else np.zeros(1, dtype=np.uint64)
        # Most parts of a text are not names, which a table of bits that fits into the
        # cache of a core says sooner than a search.
        size = max(3, len(keys).bit_length() + BITS_A_NAME)
        self.shift = np.uint64(64 - size)
        self.bits = np.zeros(2 ** (size - 3), dtype=np.uint8)
        numbers = keys >> self.shift
        masks = np.uint8(1) << (numbers & np.uint64(7)).astype(np.uint8)
        np.bitwise_or.at(self.bits, numbers >> np.uint64(3), masks)

    @classmethod
    def from_keys(cls, keys: Iterable[int]) -> Self:
        """Read the keys, as `text.name_keys` returns them."""
        signed = np.fromiter(keys, dtype=np.int64)
        return cls(np.unique(signed.astype(np.uint64)))

    def has(self, keys: np.ndarray) -> np.ndarray:
        """Return which keys, uint64, are of names. Shape: (n,)."""
        numbers = keys >> self.shift
        masks = np.uint8(1) << (numbers & np.uint64(7)).astype(np.uint8)
        possible = np.flatnonzero(self.bits[numbers >> np.uint64(3)] & masks)
        known = np.zeros(len(keys), dtype=bool)
        _, known[possible] = find_places(self.keys, keys[possible])
        return known

    def find_windows(
        self, text: str, rules: Collection[Rules], max_tokens: int
    ) -> Iterator[Window]:
        """Yield the parts of a text that may be names, in the order of the text.

        They start and end with a word or number, have a letter and two characters, and
        do not cross a blank line. In a script without blanks each character may start
        or end a word, and three count as one of `max_tokens` words. `rules` are of the
        languages of names.
        """
        found: set[Window] = set()
        has_hyphens = HYPHEN.search(text) is not None
        for each in rules:
            pieces = Pieces(*split_text(text, each))
            found.update(self.find_parts(text, pieces, max_tokens))
            if has_hyphens:
                joined = join_parts(text, pieces, each)
                found.update(self.find_parts(text, joined, max_tokens))
        yield from sorted(found)

    def find_parts(
        self, text: str, pieces: Pieces, max_tokens: int
    ) -> Iterator[Window]:
        """Yield the parts of some pieces of a text that may be names."""
        count = len(pieces.words)
        if not count:
            return
        hashes = np.array([*map(hash_word, pieces.words)], dtype=np.uint64)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes)])
        needed = pieces.joined
        if needed is None:
            needed = [not word.isdigit() for word in pieces.words]
        needed_before = np.concatenate([[0], np.cumsum(needed, dtype=np.int64)])
        ends = find_ends(text, pieces, max_tokens)
        for begin in range(0, count, STARTS_AT_ONCE):
            firsts = np.arange(begin, min(begin + STARTS_AT_ONCE, count))
            counts = ends[firsts] - firsts
            first = np.repeat(firsts, counts)
            offsets = np.cumsum(counts) - counts
            last = first + np.arange(counts.sum()) - np.repeat(offsets, counts) + 1
            possible = needed_before[last] > needed_before[first]
            first, last = first[possible], last[possible]
            keys = sums[last] - sums[first]
            is_name = self.has(keys)
            for a, b, key in zip(
                first[is_name].tolist(),
                last[is_name].tolist(),
                keys[is_name].astype(np.int64).tolist(),
                strict=True,
            ):
                window = Window(pieces.starts[a], pieces.ends[b - 1], key)
                if window.end - window.start > 1:
                    yield window
