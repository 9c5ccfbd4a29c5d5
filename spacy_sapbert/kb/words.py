"""The words of the names of each concept: what a mention and a concept share.

Words are folded (`linking.text`) and known by their hashes. Names that may be in
English are counted for themselves, so that a mention in an English text gets the same
answer whatever names there are in other languages.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..io.arrays import damaged_arrays, map_arrays
from ..io.cache import LruCache
from ..linking.opposites import (
    NEGATING_WORDS,
    list_doubtful_opposites,
    list_opposites,
)
from ..linking.text import (
    GREEK_NAMES,
    WORDS_KEPT,
    clean_text,
    fold_piece,
    hash_word,
    list_words,
)
from ..linking.word_likeness import SHORTEST_NEW_STEM, list_stems
from .store import Store

NUMERAL, LETTER, NEGATION, OTHER = 1, 2, 3, 0  # kinds of words
NOTHING = np.zeros(0, dtype="<i4")
CONCEPTS_KEPT = 10_000  # of an overlay, whose words are read from its names

# The files, and the type of the array in each.
FILES: dict[str, str] = {
    "hashes": "<u8",  # of the words, ascending (words,)
    "kinds": "|u1",  # see `kind_of` (words,)
    "english": "<i4",  # names that may be in English, with each word (words,)
    "every": "<i4",  # names in any language, with each word (words,)
    "starts": "<i8",  # of the words of each concept in `places` (concepts + 1,)
    # Twice the place of the word in `hashes`, one more if an English name has it.
    "places": "<i4",
    # hashes of the words of the encoder, and of stems of words, ascending
    "real": "<u8",
    "totals": "<i8",  # names that may be in English, and all names (2,)
}


def kind_of(word: str) -> int:
    """Return what a folded word is, if it tells concepts apart."""
    if word.isdigit():
        return NUMERAL
    if len(word) == 1 or word in GREEK_NAMES:
        return LETTER
    return NEGATION if word in NEGATING_WORDS else OTHER


def list_real_words(tokens: Iterable[str], *, folded: bool = True) -> Iterator[str]:
    """Yield the whole words among the tokens of an encoder, folded as English words."""
    tokens = [*tokens]
    marks = [
        mark for mark in ("\u2581", "\u0120") if any(t[:1] == mark for t in tokens)
    ]
    for token in tokens:
        word = token[1:] if marks and token[:1] in marks else token
        if word.isalpha() and (not marks or word != token):
            yield fold_piece(clean_text(word), "english")[0] if folded else word


def build_words(store: Store, tokens: Iterable[str], folder: Path) -> None:
    """Write the files of the words of all names; equal names give equal bytes."""
    numbers: dict[str, int] = {}
    starts, packed = [0], list[np.ndarray]()
    counts: list[list[int]] = [[], []]
    totals = [0, 0]
    for concept, names in groupby(store.names_by_concept(), lambda name: name[0]):
        starts += [starts[-1]] * (concept + 1 - len(starts))
        words: dict[int, bool] = {}
        for _, alias, origin in names:
            rules = store.rules_of(origin)
            is_english = rules == "english"
            totals[0] += is_english
            totals[1] += 1
            for word in dict.fromkeys(list_words(alias, rules)):
                number = numbers.setdefault(word, len(numbers))
                if number == len(counts[0]):
                    counts[0].append(0)
                    counts[1].append(0)
                counts[0][number] += is_english
                counts[1][number] += 1
                words[number] = words.get(number, False) or is_english
        packed.append(np.array([2 * n + e for n, e in sorted(words.items())], "<i4"))
        starts.append(starts[-1] + len(words))
    hashes = np.array([*map(hash_word, numbers)], dtype="<u8")
    order = np.argsort(hashes)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    every = np.concatenate([np.zeros(0, "<i4"), *packed])
    common = {w for w, n in numbers.items() if counts[1][n] > 1 and w.isalpha()}
    listed = {*list_real_words(tokens)}
    stems = {s for w in common | listed for s in list_stems(w, SHORTEST_NEW_STEM) - {w}}
    real = [hash_word(word) for word in listed | stems]
    arrays = {
        "hashes": hashes[order],
        "kinds": np.array([*map(kind_of, numbers)], dtype="|u1")[order],
        "english": np.array(counts[0], dtype="<i4")[order],
        "every": np.array(counts[1], dtype="<i4")[order],
        "starts": np.array(starts, dtype="<i8"),
        "places": 2 * ranks[every >> 1] + (every & 1) if len(every) else every,
        "real": np.unique(np.array(real, dtype="<u8")),
        "totals": np.array(totals, dtype="<i8"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(FILES[name]), allow_pickle=False)


class Without(NamedTuple):
    """Names of a concept that do not count, by their rows; None = all of them."""

    concept: int
    rows: frozenset[int] | None


class HashedWord(NamedTuple):
    """A folded word of a mention.

    Attributes:
        hashes: Of the word, as each of some languages folds it.
        real: The same, and hashes of stems: one is of a real word if the word is.
        opposites: Hashes of its opposites, and of those that count only if it is a real
            word. Shape: (n,) each.
    """

    word: str
    hashes: np.ndarray
    real: np.ndarray
    kind: int
    opposites: np.ndarray
    doubtful: np.ndarray


@lru_cache(maxsize=WORDS_KEPT)
def hash_folds(folds: tuple[str, ...]) -> HashedWord:
    """Return a word, as each of some languages folds it, with what excludes it."""
    word = folds[-1]
    sure, doubtful = (
        np.array([*map(hash_word, opposites)], dtype=np.uint64)
        for opposites in (list_opposites(word), list_doubtful_opposites(word))
    )
    hashes = np.array([*map(hash_word, dict.fromkeys(folds))], dtype=np.uint64)
    stems = {*folds, *list_stems(word, SHORTEST_NEW_STEM)}
    real = np.array([*map(hash_word, stems)], dtype=np.uint64)
    return HashedWord(word, hashes, real, kind_of(word), sure, doubtful)


class MentionWords(NamedTuple):
    """The words of a mention, each once.

    Attributes:
        weights: How rare they are: log of (names / names with the word). Shape: (n,).
        real: Which are words of names, or of the encoder, or derived from these, bool.
            Shape: (n,).
    """

    words: list[HashedWord]
    weights: np.ndarray
    real: np.ndarray


class Compared(NamedTuple):
    """What a mention and each of some concepts have in common.

    Attributes:
        covered: Which words of the mention are in a name of the concept, bool.
            Shape: (concepts, words).
        excluded: Which concepts have a numeral, letter or opposite that excludes the
            mention in the place of its own, bool. Shape: (concepts,).
    """

    covered: np.ndarray
    excluded: np.ndarray


class WordTable:
    """The words of the names of concepts; see `FILES`."""

    def __init__(self, arrays: Mapping[str, np.ndarray], store: Store) -> None:
        self.hashes = arrays["hashes"]
        self.kinds = arrays["kinds"]
        self.counts = {True: arrays["english"], False: arrays["every"]}
        self.starts = arrays["starts"]
        self.places = arrays["places"]
        self.real = arrays["real"]
        self.totals = arrays["totals"].tolist()
        self.store = store
        self.changed: LruCache[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = (
            LruCache(CONCEPTS_KEPT)
        )

    def read_mention(
        self,
        folded: Sequence[Sequence[str]],
        *,
        english: bool,
        without: Sequence[Without] = (),
    ) -> MentionWords:
        """Return what is known of the words of a mention.

        Args:
            folded: From `list_words`, for each of some languages, the last English.
            english: Whether only names that may be in English count.
            without: Names that do not count.
        """
        # A numeral and a letter may be two words in one language and one in another.
        same = [words for words in folded if len(words) == len(folded[-1])]
        hashed = [hash_folds(folds) for folds in dict.fromkeys(zip(*same, strict=True))]
        left_out = [
            {*list_words(alias, self.store.rules_of(origin))}
            for concept, rows in without
            for alias, origin, row in self.store.names_of_concept(concept)
            if (rows is None or row in rows)
            and (not english or self.store.rules_of(origin) == "english")
        ]
        counts = np.zeros(len(hashed), dtype=np.int64)
        real = np.array([word.kind != OTHER for word in hashed], dtype=bool)
        for number, word in enumerate(hashed):
            found = self.count_names(word.hashes, english=english)
            counts[number] = found.max(initial=0)
            counts[number] -= sum(word.word in words for words in left_out)
            real[number] |= counts[number] > 0 or self.has_real(word.real)
        total = self.totals[0 if english else 1]
        weights = np.log((2 + total) / (1 + counts.clip(0, total)))
        return MentionWords(hashed, weights, real)

    def has_real(self, keys: np.ndarray) -> bool:
        """Return whether one of some hashes is of a word of the encoder."""
        if not len(self.real):
            return False
        places = np.searchsorted(self.real, keys)
        places[places == len(self.real)] = 0
        return bool((self.real[places] == keys).any())

    def weigh(self, words: Sequence[str], *, english: bool) -> dict[str, float]:
        """Return how rare folded words are, by word; see `MentionWords`."""
        keys = np.array([*map(hash_word, words)], dtype=np.uint64)
        counts = self.count_names(keys, english=english)
        weights = np.log((2 + self.totals[0 if english else 1]) / (1 + counts))
        return dict(zip(words, weights.tolist(), strict=True))

    def most(self, *, english: bool) -> float:
        """Return the weight of a word that is in no name."""
        return math.log(2 + self.totals[0 if english else 1])

    def count_names(self, keys: np.ndarray, *, english: bool) -> np.ndarray:
        """Return in how many names each word is, int64. Shape: (n,)."""
        counts = np.zeros(len(keys), dtype=np.int64)
        if len(self.hashes):
            places = np.searchsorted(self.hashes, keys)
            places[places == len(self.hashes)] = 0
            known = self.hashes[places] == keys
            counts[known] = self.counts[english][places[known]]
        return counts

    def words_of(
        self, concepts: Sequence[int], without: Mapping[int, frozenset[int]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the words of concepts, one after the other.

        Args:
            without: By concept, the rows of names that do not count.

        Returns:
            Hash, kind, whether an English name has it, and the number of the concept
            in `concepts`, of each word. Shape: (words,) each.
        """
        built: list[np.ndarray] = []
        owners: list[int] = []
        others: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        for number, concept in enumerate(concepts):
            packed = NOTHING
            if concept < len(self.starts) - 1 and concept not in without:
                packed = self.places[self.starts[concept] : self.starts[concept + 1]]
            if len(packed):
                built.append(packed)
                owners.append(number)
            else:
                some = self.read_kept(concept, without.get(concept, frozenset()))
                others.append((*some, np.full(len(some[0]), number)))
        packed = np.concatenate([NOTHING, *built])
        places = packed >> 1
        words = (
            self.hashes[places],
            self.kinds[places],
            (packed & 1) == 1,
            np.repeat(owners, [len(part) for part in built]).astype(np.int64),
        )
        if not others:
            return words
        hashes, kinds, english, numbers = map(
            np.concatenate, zip(words, *others, strict=True)
        )
        return hashes, kinds, english, numbers

    def read_kept(
        self, concept: int, without: frozenset[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read the words of a concept of an overlay, once; see `read_words`."""
        if without:
            return self.read_words(concept, without)
        known = self.changed.get_many([concept])
        if concept not in known:
            known[concept] = self.read_words(concept)
            self.changed.put_many(known)
        return known[concept]

    def read_words(
        self, concept: int, without: frozenset[int] = frozenset()
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read the words of a concept from its names; see `words_of`.

        Args:
            without: The rows of names that do not count.
        """
        words: dict[str, bool] = {}
        for alias, origin, row in self.store.names_of_concept(concept):
            if row not in without:
                rules = self.store.rules_of(origin)
                for word in list_words(alias, rules):
                    words[word] = words.get(word, False) or rules == "english"
        hashes = np.array([*map(hash_word, words)], dtype=np.uint64)
        kinds = np.array([*map(kind_of, words)], dtype=np.uint8)
        return hashes, kinds, np.array([*words.values()], dtype=bool)

    def compare(
        self,
        mention: MentionWords,
        concepts: Sequence[int],
        *,
        english: bool,
        without: Sequence[Without] = (),
    ) -> Compared:
        """Compare a mention with the names of concepts, by their numbers.

        Args:
            english: Whether only names that may be in English count.
            without: Names that do not count.
        """
        count, size = len(concepts), len(mention.words)
        covered = np.zeros((count, size), dtype=bool)
        excluded = np.zeros(count, dtype=bool)
        if not count or not size:
            return Compared(covered, excluded)
        rows = {concept: some for concept, some in without if some is not None}
        hashes, kinds, of_english, owners = self.words_of(concepts, rows)
        if english:
            hashes, kinds, owners = (
                hashes[of_english],
                kinds[of_english],
                owners[of_english],
            )
        for number, word in enumerate(mention.words):
            is_word = hashes == word.hashes[0]
            for other in word.hashes[1:]:
                is_word |= hashes == other
            covered[owners[is_word], number] = True
            opposites = word.opposites
            if mention.real[number] and len(word.doubtful):
                opposites = np.concatenate([opposites, word.doubtful])
            if len(opposites):
                opposed = np.zeros(count, dtype=bool)
                opposed[owners[np.isin(hashes, opposites)]] = True
                excluded |= opposed & ~covered[:, number]
        mine = np.array([word.kind for word in mention.words])
        keys = np.array([word.hashes[-1] for word in mention.words], dtype=np.uint64)
        for kind in (NUMERAL, LETTER):
            # "A-T" and "C9" are abbreviations
            if not (mine == kind).any() or (
                kind == LETTER and not (mine == OTHER).any()
            ):
                continue
            same = kinds == kind
            has_other = np.zeros(count, dtype=bool)
            has_other[owners[same & ~np.isin(hashes, keys[mine == kind])]] = True
            excluded |= has_other & ~covered[:, mine == kind].all(axis=1)
        if (mine == NEGATION).any():
            excluded |= ~covered[:, mine == NEGATION].any(axis=1)
        return Compared(covered, excluded)


def load_words(paths: Mapping[str, Path], store: Store) -> WordTable:
    """Map the words of names, by keys in `FILES`, whose files have been verified.

    A file that cannot be read, or contradicts the others, is an error.
    """
    arrays = map_arrays(paths, FILES)
    sizes = {len(arrays[name]) for name in ("hashes", "kinds", "english", "every")}
    starts, places = arrays["starts"], arrays["places"]
    if (
        len(sizes) != 1
        or len(arrays["totals"]) != 2
        or not len(starts)
        or starts[-1] != len(places)
        or (len(places) and not 0 <= places.min() <= places.max() < 2 * max(sizes))
    ):
        reason = "its files contradict each other"
        raise damaged_arrays(path=paths["starts"], reason=reason)
    return WordTable(arrays, store)
