"""The parts of a text that may be names of a knowledge base, found without a database.

Names are kept as hashes of what the rules of `list_text_variants` do not change: their
letters without blanks, hyphens, slashes and "'s", in American spelling. So one look-up
is enough for all ways to write a part of a text. A part that is found may not be a name
(an abbreviation must be written exactly so); a part that is not found is not a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice, pairwise
from os.path import commonprefix
from typing import NamedTuple, Self
from unicodedata import category

import numpy as np

from .name_variants import BRITISH, change_order, change_to_american
from .surface_forms import (
    CHARACTERS_A_WORD,
    UNSPACED_CHARACTER,
    Pieces,
    Window,
    singular_forms,
    split_unspaced,
)

FORMS_AT_ONCE = 2_000  # so few that their hashes fit into the cache of a core
STARTS_AT_ONCE = 2_000  # bounds memory for a very long text
WORDS_KEPT = 50_000
LONGEST_KEPT = 50  # characters of a word
MOST_PIECES = 50  # of a name, which is the greatest `max_tokens`
REORDERED = 5  # words and commas of a name that a text may have in another order
BITS_A_NAME = 3  # a power of two
ROUNDING = 1e-6
APOSTROPHES = ("'", "\u2019")
DROPPED = ("-", "/", *APOSTROPHES)
DROPPED_PARTS = re.compile(r" (?:[-/]|['\u2019](?: s)?)(?= |$)", re.MULTILINE)
# Sums of powers of an odd number modulo 2 ** 64 can be divided by the powers.
BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 2**64)
FACTOR = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
EMPTY = np.zeros(1, dtype=np.uint64)  # the hash of no letters


def find_places(table: np.ndarray, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Look up hashes in a table.

    Args:
        table: Ascending, not empty.

    Returns:
        The place in the table for each hash, and whether it is there. Shape: (n,) each.
    """
    places = np.searchsorted(table, hashes)
    places[places == len(table)] = 0
    return places, table[places] == hashes


@cache
def compute_powers(base: int, size: int) -> np.ndarray:
    """Return the powers of a number from 0 on, modulo 2 ** 64. Shape: (2 ** size,)."""
    factors = np.full(2**size, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors)


class PartHashes:
    """Hashes of all parts of a text, each computed from two sums.

    The hash of a part does not depend on what stands around it.
    """

    def __init__(self, codes: np.ndarray) -> None:
        values = (codes + np.uint64(1)) * FACTOR
        values ^= values >> HALF
        size = len(codes).bit_length()
        self.powers = compute_powers(BASE, size)
        self.inverses = compute_powers(INVERSE, size)
        values *= self.powers[: len(codes)]
        self.sums = np.zeros(len(codes) + 1, dtype=np.uint64)
        np.cumsum(values, out=self.sums[1:])

    def find(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the hashes of parts, uint64. Shape: (n,)."""
        hashes: np.ndarray = (self.sums[ends] - self.sums[starts]) * self.inverses[
            starts
        ]
        return hashes


def read_codes(text: str) -> np.ndarray:
    """Return the code points of a text, uint32. Shape: (characters,)."""
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


@lru_cache(maxsize=1000)
def hash_text(text: str) -> int:
    """Return the hash of a whole text."""
    return int(PartHashes(read_codes(text)).sums[-1])


POSSESSIVE = np.uint64(hash_text("s"))


def reduce_spelling(text: str) -> str:
    """Return a text in American spelling, also where this makes a British one."""
    for _ in range(2):
        (text,) = change_to_american(text)
    return text


def reduce_forms(forms: Iterable[str]) -> np.ndarray:
    """Return the hashes of names, and of those with commas also in another order."""
    listed = [*forms]
    for form in listed[:]:
        if " , " in form and form.count(" ") < REORDERED:
            listed.extend(change_order(form))
    text = reduce_spelling(DROPPED_PARTS.sub("", "\n".join([*listed, ""])))
    codes = read_codes(text.replace(" ", ""))
    ends = np.flatnonzero(codes == ord("\n"))
    return PartHashes(codes).find(np.concatenate([[0], ends[:-1] + 1]), ends)


Singulars = tuple[tuple[int, int], ...]


class Word(NamedTuple):
    """A piece of a text.

    Attributes:
        letters: In American spelling.
        singulars: What may be its singular: the number of letters that it has of
            `letters`, and the hash of those that follow.
    """

    letters: str
    singulars: Singulars
    is_start: bool
    is_end: bool
    has_letter: bool


def read_word(piece: str) -> Word:
    """Return what is known of a piece of a text, or of some with hyphens between."""
    british = BRITISH.search(piece) is not None
    letters = reduce_spelling(piece) if british else piece
    singulars: set[tuple[int, int]] = set()
    for written in (piece, *(change_to_american(piece) if british else ())):
        for singular in map(reduce_spelling, singular_forms(written)):
            shared = len(commonprefix([letters, singular]))
            singulars.add((shared, hash_text(singular[shared:])))
    is_word = piece[0].isalnum()
    return Word(
        "" if piece in DROPPED else letters,
        tuple(singulars),
        is_word,
        # A word of Thai may end with a mark, which is a piece of its own.
        is_word or category(piece[-1])[0] == "M",
        any(map(str.isalpha, piece)),
    )


read_kept_word = lru_cache(maxsize=WORDS_KEPT)(read_word)


def read_words(pieces: Sequence[str]) -> list[Word]:
    """Return what is known of pieces; that of short ones is kept."""
    if max(map(len, pieces)) <= LONGEST_KEPT:
        return [*map(read_kept_word, pieces)]
    return [*map(read_word, pieces)]


class Cuts(NamedTuple):
    """Where parts of a text can end, other than after a word as it is written.

    Attributes:
        lasts: Numbers of the last pieces.
        ends: Ends of the letters that the parts have of the text.
        suffixes: Hashes of the letters that follow.
    """

    lasts: list[int]
    ends: list[int]
    suffixes: list[int]

    def add(self, last: int, start: int, singulars: Singulars) -> None:
        """Add the singulars of a word whose letters have a start."""
        for shared, suffix in singulars:
            self.lasts.append(last)
            self.ends.append(start + shared)
            self.suffixes.append(suffix)


def find_after(forms: Sequence[str], mark: str) -> list[int]:
    """Return the numbers of the pieces after a mark."""
    if mark not in forms:
        return []
    return [number for number, form in enumerate(forms[:-1], 1) if form == mark]


def list_singulars(
    forms: Sequence[str], words: Sequence[Word], starts: Sequence[int]
) -> tuple[Cuts, list[int]]:
    """List where parts of a text end if their last words are plurals.

    The last word may be one of several with hyphens between: "metasta-ses".

    Args:
        forms: The pieces.
        starts: Of their letters, and the end of the last ones.

    Returns:
        Where they end; numbers of the pieces that may be spelled in another way if the
        hyphen before them is left out.
    """
    cuts = Cuts([], [], [])
    for number, word in enumerate(words):
        if word.singulars:
            cuts.add(number, starts[number], word.singulars)
    unsure: list[int] = []
    for number in find_after(forms, "-"):
        first = number
        while first > max(1, number - MOST_PIECES) and forms[first - 1] == "-":
            if starts[first - 2] == starts[first - 1]:  # of "'s", which is left out
                break
            first -= 2
        pieces = range(first, number + 1, 2)
        (whole,) = read_words(["".join(forms[piece] for piece in pieces)])
        if first == number or whole.letters != "".join(
            words[piece].letters for piece in pieces
        ):
            unsure.append(number)
        elif words[number].is_end:
            cuts.add(number, starts[first], whole.singulars)
    return cuts, unsure


def find_ends(text: str, pieces: Pieces, max_tokens: int) -> np.ndarray:
    """Return for each piece the one after the last of a part that starts with it.

    A part has at most `max_tokens` words and other characters, and no blank line.
    """
    count = len(pieces.forms)
    sizes = np.ones(count)
    if UNSPACED_CHARACTER.search(text):
        unspaced = map(UNSPACED_CHARACTER.match, pieces.forms)
        sizes[[match is not None for match in unspaced]] = 1 / CHARACTERS_A_WORD
    totals = np.concatenate([[0], np.cumsum(sizes)])
    ends = np.searchsorted(totals, totals[:-1] + max_tokens + ROUNDING, "right") - 1
    if text.count("\n") > 1:
        gaps = pairwise(pieces.spans)
        blank = [text.count("\n", end, start) > 1 for (_, end), (start, _) in gaps]
        firsts = np.append(np.flatnonzero(blank) + 1, count)
        after = firsts[np.searchsorted(firsts, np.arange(count), "right")]
        ends = np.minimum(ends, after)
    return ends


def count_before(numbers: list[int], count: int) -> np.ndarray:
    """Return how many of some pieces are not after each piece. Shape: (count,)."""
    flags = np.zeros(count, dtype=np.int64)
    flags[numbers] = 1
    return np.cumsum(flags)


def pair_ranges(
    values: np.ndarray, begins: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each value with each number of its range. Shape: (sum of counts,) each."""
    offsets = begins - np.cumsum(counts) + counts
    numbers = np.arange(counts.sum()) + np.repeat(offsets, counts)
    return np.repeat(values, counts), numbers


class NameIndex:
    """The hashes of the names of a knowledge base: 9 to 10 bytes for most names.

    Attributes:
        hashes: uint64, ascending. Shape: (n,).
    """

    def __init__(self, hashes: np.ndarray) -> None:
        self.hashes = hashes
        # Most parts of a text are not names, which a table of bits that fits into the
        # cache of a core says sooner than a search.
        size = max(3, len(hashes).bit_length() + BITS_A_NAME)
        self.shift = np.uint64(64 - size)
        self.bits = np.zeros(2 ** (size - 3), dtype=np.uint8)
        numbers = hashes >> self.shift
        masks = np.uint8(1) << (numbers & np.uint64(7)).astype(np.uint8)
        np.bitwise_or.at(self.bits, numbers >> np.uint64(3), masks)

    @classmethod
    def from_forms(cls, forms: Iterable[str]) -> Self:
        """Read the names, each in the form of `name_form`."""
        stream = iter(forms)
        parts = [EMPTY]
        while some := [*islice(stream, FORMS_AT_ONCE)]:
            parts.append(reduce_forms(some))
        return cls(np.unique(np.concatenate(parts)))

    def has(self, hashes: np.ndarray) -> np.ndarray:
        """Return which hashes are of names. Shape: (n,)."""
        numbers = hashes >> self.shift
        masks = np.uint8(1) << (numbers & np.uint64(7)).astype(np.uint8)
        possible = np.flatnonzero(self.bits[numbers >> np.uint64(3)] & masks)
        known = np.zeros(len(hashes), dtype=bool)
        _, known[possible] = find_places(self.hashes, hashes[possible])
        return known

    def find_windows(self, text: str, max_tokens: int) -> Iterator[Window]:
        """Yield the parts of a text that may be names.

        Args:
            max_tokens: Maximum of words and other characters in a name. Three
                characters of a script without blanks count as a word.

        Yields:
            Parts that start and end with a word, have a letter and two characters, and
            do not cross a blank line. In a script without blanks each character may
            start or end a word.
        """
        pieces = split_unspaced(text)
        forms, count = pieces.forms, len(pieces.forms)
        if not forms:
            return
        words = read_words(forms)
        columns = zip(*words, strict=True)
        letters, _, is_start, is_end, has_letter = map(list, columns)
        after = (number for mark in APOSTROPHES for number in find_after(forms, mark))
        possessives = [number for number in after if forms[number] == "s"]
        for number in possessives:
            letters[number] = ""
        hashes = PartHashes(read_codes("".join(letters)))
        starts = np.cumsum([0, *map(len, letters)])
        cuts, unsure = list_singulars(forms, words, starts.tolist())
        written = np.flatnonzero(is_end)
        last = np.append(written, np.array(cuts.lasts, dtype=np.int64))
        order = np.argsort(last, kind="stable")
        last = last[order]
        end = np.append(starts[written + 1], np.array(cuts.ends, np.int64))[order]
        nothing = np.zeros(len(written), dtype=np.uint64)
        suffix = np.append(nothing, np.array(cuts.suffixes, dtype=np.uint64))[order]
        possessive = np.zeros(count, dtype=bool)
        possessive[possessives] = True
        unsure_before = count_before(unsure, count)
        letters_before = np.cumsum([False, *has_letter])
        firsts = np.flatnonzero(is_start)
        begins = np.searchsorted(last, firsts)
        counts = np.searchsorted(last, find_ends(text, pieces, max_tokens)[firsts])
        counts -= begins
        for at in range(0, len(firsts), STARTS_AT_ONCE):
            some = slice(at, at + STARTS_AT_ONCE)
            first, cut = pair_ranges(firsts[some], begins[some], counts[some])
            start, stop = starts[first], end[cut]
            keys = hashes.find(start, stop)
            keys += suffix[cut] * hashes.powers[np.maximum(stop - start, 0)]
            keys = np.where(possessive[first], POSSESSIVE + BASE * keys, keys)
            of_last = last[cut]
            found = self.has(keys) | (unsure_before[of_last] > unsure_before[first])
            found &= letters_before[of_last + 1] > letters_before[first]
            parts = zip(first[found].tolist(), of_last[found].tolist(), strict=True)
            for number, other in sorted({*parts}):
                window = pieces.join(number, other)
                if window[2] - window[1] > 1:
                    yield window
