"""How far mentions have the words of names, and names those of mentions.

All words of some mentions are held against those of the names near them at once: each
word of the names of a mention has a row, each word of the mention a column.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from .difference import Difference, Words
from .groups import Groups
from .text import hash_word
from .word_likeness import LEAST_EXTENDED, stand_for


class Near(NamedTuple):
    """A name that is near a mention, and how the mention differs from it."""

    mention: Words
    name: Words
    difference: Difference


class Shared(NamedTuple):
    """What some mentions and the concepts of their pools have in common.

    There are as many columns as the mention with the most words has. A cell without a
    word has the weight 0, and is real and covered.

    Attributes:
        words: The distinct words of each mention.
        weights: How rare they are. Shape: (mentions, columns).
        real: Which are words of names or of the encoder. Shape: (mentions, columns).
        covered: Which are in a name of each concept. Shape: (candidates, columns).
        supports: Whether names say of two words that one may stand for the other, by
            the sum of their hashes.
        replaces: How far a word may stand for another one, 0 to 1, by the vocabulary.
        adds: How far each word changes the meaning of a name it is added to, 0 to 1.
        weigh: How rare words are.
        most: The highest weight that there can be.
    """

    words: Sequence[Sequence[str]]
    weights: np.ndarray
    real: np.ndarray
    covered: np.ndarray
    supports: Callable[[np.ndarray], np.ndarray]
    replaces: Callable[[str, str], float]
    adds: Callable[[Collection[str]], Mapping[str, float]]
    weigh: Callable[[Sequence[str]], Mapping[str, float]]
    most: float


class WordPairs(NamedTuple):
    """The words of names near mentions, and how far words of the mentions are these.

    Attributes:
        words: The distinct words of the names of each mention. (rows,)
        same: The column of a word in its mention, −1 = it is not there. (rows,)
        alike: How far each word of the mention may stand for it by its letters, 0 to 1.
            (rows, columns)
        replacing: The same by the vocabulary; 0 where they are alike. (rows, columns)
        rows: Those of the words with a meaning, one name after the other. (cells,)
        cells: Of which name each cell is, and how many it has.
        heads: The rows of the heads of the names. (names,)
        content: Which words of the mention have a meaning, by the rules of the name.
            (names, columns)
    """

    words: list[str]
    same: np.ndarray
    alike: np.ndarray
    replacing: np.ndarray
    rows: np.ndarray
    cells: Groups
    heads: np.ndarray
    content: np.ndarray

    @property
    def equal(self) -> np.ndarray:
        """Which cells are a word of the mention, bool. Shape: (cells,)."""
        column = self.same[self.rows]
        return (column >= 0) & self.content[self.cells.owners, column]


def pair_words(near: Sequence[Sequence[Near]], shared: Shared) -> WordPairs:
    """Hold the words of names near each mention against those of the mention."""
    words: list[str] = []
    same: list[int] = []
    rows: list[int] = []
    heads: list[int] = []
    contents: list[list[int]] = []  # columns, of a mention by some rules
    content_of: list[int] = []  # which of them is that of each name
    alike: list[tuple[int, int, float]] = []
    columns_of: list[dict[str, int]] = []
    rows_of: list[int] = []
    for names, own, real in zip(near, shared.words, shared.real.tolist(), strict=True):
        columns = {word: column for column, word in enumerate(own)}
        before = None
        for mention, _, _ in names:
            if mention is not before:
                before = mention
                for word in mention.terms:  # other rules may fold it in another way
                    columns.setdefault(word, len(columns))
                contents.append([columns[word] for word in mention.terms])
            content_of.append(len(contents) - 1)
        terms = [*chain(*[name.terms for _, name, _ in names])]
        ends = [name.head for _, name, _ in names]
        distinct = dict.fromkeys(chain(terms, ends))
        numbers = dict(zip(distinct, count(len(words)), strict=False))
        rows += [numbers[word] for word in terms]
        heads += [numbers[word] for word in ends]
        words += numbers
        same += [columns.get(word, -1) for word in numbers]
        columns_of.append(columns)
        rows_of.append(len(numbers))
        for word, column in columns.items():
            is_real = column >= len(own) or real[column]
            # What a real word is derived from begins with the same letters.
            start = word[:LEAST_EXTENDED] if is_real else ""
            alike += [
                (row, column, stand_for(word, other, is_real))
                for other, row in numbers.items()
                if other.startswith(start)
            ]
    width = max([1, *map(len, columns_of)])  # one, so that column −1 is there
    likeness = np.zeros((len(words), width))
    for row, column, value in alike:
        likeness[row, column] = value
    content = np.zeros((len(contents), width), dtype=bool)
    for number, some in enumerate(contents):
        content[number, some] = True
    lengths = [len(name.terms) for names in near for _, name, _ in names]
    return WordPairs(
        words,
        np.array(same, dtype=np.int64),
        likeness,
        find_replacing(words, rows_of, columns_of, likeness, shared),
        np.array(rows, dtype=np.int64),
        Groups(lengths),
        np.array(heads, dtype=np.int64),
        content[content_of],
    )


def find_replacing(
    words: Sequence[str],
    rows_of: Sequence[int],
    columns_of: Sequence[Mapping[str, int]],
    alike: np.ndarray,
    shared: Shared,
) -> np.ndarray:
    """Return how far each real word of a mention may replace one that is not like it.

    `rows_of` is the number of rows of each mention. Shape: (rows, columns).
    """
    hashes = np.zeros((len(columns_of), alike.shape[1]), dtype=np.uint64)
    real = np.zeros(hashes.shape, dtype=bool)
    for number, columns in enumerate(columns_of):
        hashes[number, : len(columns)] = [*map(hash_word, columns)]
        real[number, : len(columns)] = True
    real[:, : shared.real.shape[1]] &= shared.real
    mentions = np.repeat(np.arange(len(columns_of)), rows_of)
    keys = np.array([*map(hash_word, words)], dtype=np.uint64)[:, None]
    usable = real[mentions] & (alike == 0)
    usable &= shared.supports(keys + hashes[mentions])
    replacing = np.zeros(alike.shape)
    for row, column in np.argwhere(usable).tolist():
        word = [*columns_of[mentions[row]]][column]
        replacing[row, column] = shared.replaces(word, words[row])
    return replacing


def cover_words(pairs: WordPairs, names: Groups, shared: Shared) -> np.ndarray:
    """Return how far names of concepts have each word of a mention, 0 to 1.

    A word of the mention may be a misspelled word of one of its nearest names, or be
    derived from one. `names` are those of each concept. Shape: (candidates, columns).
    """
    width = shared.covered.shape[1]
    alone = ~pairs.equal[:, None]  # words that the mention has not
    alike, replacing = (
        names.highest(pairs.cells.highest(table[pairs.rows, :width] * alone, 0.0), 0.0)
        for table in (pairs.alike, pairs.replacing)
    )
    return np.where(shared.covered, 1.0, np.where(alike > 0, alike, replacing))


def cover_names(pairs: WordPairs, shared: Shared) -> np.ndarray:
    """Return the share of each name, by rarity, that its mention has: (names,)."""
    equal, names = pairs.equal, pairs.cells.owners
    known = shared.weigh(pairs.words)
    weights = np.array([known[word] for word in pairs.words])[pairs.rows]
    rest = pairs.content.copy()  # without the words that the name has
    rest[names[equal], pairs.same[pairs.rows[equal]]] = False
    values = np.where(pairs.alike > 0, pairs.alike, pairs.replacing)[pairs.rows]
    best = (values * rest[names]).max(axis=1, initial=0.0)
    count = len(pairs.cells.sizes)
    total = np.bincount(names, weights, count)
    covered = np.bincount(names, weights * np.where(equal, 1.0, best), count)
    return divide(covered, total)


def cover_heads(pairs: WordPairs) -> np.ndarray:
    """Return how far mentions have the heads of names, 0 to 1. Shape: (names,)."""
    column = pairs.same[pairs.heads]
    has = (column >= 0) & pairs.content[np.arange(len(column)), column]
    best = (pairs.alike[pairs.heads] * pairs.content).max(axis=1, initial=0.0)
    return np.where(has, 1.0, best)


def divide(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return shares, float64; 0 of nothing."""
    shares = np.zeros(np.broadcast(part, whole).shape)
    return np.divide(part, whole, out=shares, where=whole != 0)
