"""A mention and concepts → the words that they share, and how rare these are.

English names are counted apart: other names do not change answers for English texts.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..io.arrays import find_sorted, map_arrays
from ..linking.coverage import Shared
from ..linking.difference import is_exact
from ..linking.features import (
    Features,
    Pool,
    Surroundings,
    compute_features,
    list_near,
)
from ..linking.filters import Filter
from ..linking.groups import cut
from ..linking.text import (
    RULES,
    WORDS_KEPT,
    Rules,
    hash_word,
    is_abbreviation,
    is_acronym,
    list_words,
)
from ..linking.word_likeness import (
    SHORTEST_NEW_STEM,
    is_abbreviated,
    is_formed,
    list_bases,
    list_stems,
)
from .replacements import LeftOut, Replacements, leave_out
from .store import Store

LETTERS = re.compile(r"[^\W\d_]+")
LEAST_REPLACED = 0.3  # how far a word must stand for another one to count
MENTIONS_KEPT = 1_000  # whose words were read, about 1 KB each
CONCEPTS_KEPT = 10_000  # of an overlay, whose words are read from its names


class Without(NamedTuple):
    """Names of a concept that do not count, by their rows; None = all of them."""

    concept: int
    rows: frozenset[int] | None


class HashedWord(NamedTuple):
    """A folded word of a mention.

    Attributes:
        hashes: Of the word, as each of some languages folds it.
        stems: Hashes of its stems and of the words it is made of; it is a real word if
            one of these is.
        real: Whether it is no misspelled word in any case: a number, an abbreviation, a
            medical word of known parts.
    """

    word: str
    hashes: tuple[int, ...]
    stems: tuple[int, ...]
    real: bool


class WordTable:
    """The words of the names of each concept, mapped; see `FILES`."""

    def __init__(self, paths: Mapping[str, Path], store: Store) -> None:
        arrays = map_arrays(paths)
        self.hashes = arrays["hashes"]
        self.counts = {True: arrays["english"], False: arrays["every"]}
        self.starts = arrays["starts"]
        self.places = arrays["places"]
        self.real = arrays["real"]
        self.totals = arrays["totals"].tolist()
        self.name_words, self.name_starts = arrays["name_words"], arrays["name_starts"]
        self.first_names = arrays["first_names"]
        self.store = store
        self.replacements = Replacements(arrays)
        self.replaces = lru_cache(WORDS_KEPT)(self.compute_replaced)
        self.read_kept = lru_cache(CONCEPTS_KEPT)(partial(read_words, store))

    def features(
        self,
        texts: Sequence[str],
        pools: Sequence[Pool],
        filter: Filter,
        *,
        around: Sequence[Surroundings] = (),
        without: Sequence[Without] = (),
        counts: Sequence[Mapping[str, int]] | None = None,
        concept_counts: Mapping[str, int] | None = None,
    ) -> Features:
        """Compute the features of the concepts of pools, but for some names.

        Those of one mention come after the other; see `compute_features`.
        """
        near = [
            list_near(text, pool, lambda entry: self.store.rules_of(entry.origin))
            for text, pool in zip(texts, pools, strict=True)
        ]
        concepts = [
            [names.nearest.concept for names in pool.near.values()] for pool in pools
        ]
        return compute_features(
            pools,
            near,
            self.compare(texts, concepts, filter, without=without),
            around=around,
            counts=counts,
            concept_counts=concept_counts,
        )

    def is_real(self, word: HashedWord, *, english: bool) -> bool:
        """Return whether names or English texts have a word."""
        is_known = self.count_names(join([word.hashes]), english=english).any()
        return bool(is_known or find_sorted(join([word.stems]), self.real)[0].any())

    def compare(
        self,
        texts: Sequence[str],
        concepts: Sequence[Sequence[int]],
        filter: Filter,
        *,
        without: Sequence[Without] = (),
    ) -> Shared:
        """Compare mentions with concepts, each mention with its own."""
        english = filter.is_english
        words = [read_mention_words(text, filter) for text in texts]
        flat = [word for some in words for word in some]
        rules_of = self.store.rules_of
        left_out = [
            {*list_words(alias, rules_of(origin))}
            for concept, rows in without
            for alias, origin, row in self.store.names_of_concept(concept)
            if (rows is None or row in rows)
            and (not english or rules_of(origin) == "english")
        ]
        unknown = self.leave_out(without[0]) if without else None
        replaces: Callable[[str, str], float] = self.replaces
        if unknown is not None:
            replaces = partial(self.compute_replaced, left_out=unknown)
        folds = cut(
            self.count_names(join(w.hashes for w in flat), english=english).tolist(),
            [len(word.hashes) for word in flat],
        )
        counts = [max(some, default=0) for some in folds]
        for names in left_out:
            counts = [n - (w.word in names) for n, w in zip(counts, flat, strict=True)]
        stems = cut(
            find_sorted(join(word.stems for word in flat), self.real)[0].tolist(),
            [len(word.stems) for word in flat],
        )
        real = [
            word.real or count > 0 or any(some)
            for word, count, some in zip(flat, counts, stems, strict=True)
        ]
        total = self.totals[0 if english else 1]
        names_with = np.array(counts, dtype=np.int64).clip(0, total)
        weights = np.log((2 + total) / (1 + names_with)).tolist()
        rows_left_out = {c: rows for c, rows in without if rows is not None}
        sizes = [*map(len, words)]
        return Shared(
            words=[[word.word for word in some] for some in words],
            weights=cut(weights, sizes),
            real=cut(real, sizes),
            covered=self.find_covered(words, concepts, filter, rows_left_out),
            supports=self.replacements.are_supported,
            replaces=replaces,
            adds=partial(self.weigh_added, left_out=unknown),
            weigh=partial(self.weigh, english=english),
            most=self.most(english=english),
        )

    def find_covered(
        self,
        words: Sequence[Sequence[HashedWord]],
        concepts: Sequence[Sequence[int]],
        filter: Filter,
        without: Mapping[int, frozenset[int]],
    ) -> list[list[list[bool]]]:
        """Return which words of each mention are in a name of each of its concepts."""
        sizes = [*map(len, concepts)]
        hashes, of_english, owners = self.words_of([*chain(*concepts)], without)
        if filter.is_english:
            hashes, owners = hashes[of_english], owners[of_english]
        width = max(map(len, words), default=0)
        folds = max((len(word.hashes) for some in words for word in some), default=0)
        keys = np.zeros((folds, width, len(words)), dtype=np.uint64)
        for number, some in enumerate(words):
            for place, word in enumerate(some):
                keys[: len(word.hashes), place, number] = word.hashes
        candidates = np.arange(len(concepts)).repeat(sizes)  # the mention of each
        covered = np.zeros((len(candidates), width), dtype=bool)
        mentions = candidates[owners]
        for by_fold in keys:
            for place, of_mentions in enumerate(by_fold):
                covered[owners[hashes == of_mentions[mentions]], place] = True
        by_mention = cut(covered.tolist(), sizes)
        return [
            [of_concept[: len(some)] for of_concept in of_mention]
            for some, of_mention in zip(words, by_mention, strict=True)
        ]

    def leave_out(self, without: Without) -> LeftOut | None:
        """Find out what is not known without some names of a concept.

        Names of edits did not teach anything; None = there is no other name.
        """
        names: tuple[list[list[str]], list[list[str]]] = [], []
        for alias, origin, row in self.store.names_of_concept(without.concept):
            if (rules := self.store.rules_of(origin)) == "english":
                kept = without.rows is not None and row not in without.rows
                if kept or (row is not None and row < self.store.base_rows):
                    names[kept].append(list_words(alias, rules))
        if not names[False]:
            return None
        return leave_out(self.store, without.concept, *names)

    def compute_replaced(
        self, word: str, other: str, left_out: LeftOut | None = None
    ) -> float:
        """Return how far a word may stand for another one by the vocabulary, 0 to 1."""
        hashes = hash_word(word), hash_word(other)
        counts = self.replacements.replaces(hashes[0], hashes[1:], left_out)
        same, apart = counts[0].tolist()
        value = same / (same + apart + 1)
        return value if value >= LEAST_REPLACED else 0.0

    def weigh_added(
        self, words: Collection[str], left_out: LeftOut | None = None
    ) -> dict[str, float]:
        """Return how far words change what a name means that they are added to."""
        counts = self.replacements.adds([*map(hash_word, words)], left_out)
        values = 1 - counts[:, 0] / (counts.sum(axis=1) + 1)
        return dict(zip(words, values.tolist(), strict=True))

    def weigh(self, words: Collection[str], *, english: bool) -> dict[str, float]:
        """Return how rare folded words are: log of (names / names with the word)."""
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
        known, places = find_sorted(keys, self.hashes)
        counts[known] = self.counts[english][places]
        return counts

    def words_of(
        self, concepts: Sequence[int], without: Mapping[int, frozenset[int]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return hash, whether an English name has it, and owner of each word.

        The owner is a place in `concepts`. `without` has, by concept, the rows of names
        that do not count. Shape: (words,) each.
        """
        numbers = np.array(concepts, dtype=np.int64)
        # Of an overlay, both are the last one.
        starts = self.starts.take(numbers, mode="clip").tolist()
        ends = self.starts.take(numbers + 1, mode="clip").tolist()
        parts, owners, added = [self.places[:0]], list[int](), list[int]()
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start < end and concepts[number] not in without:
                parts.append(self.places[start:end])
                owners.append(number)
            else:
                added.append(number)
        packed = np.concatenate(parts)
        hashes, english = self.hashes[packed >> 1], (packed & 1) == 1
        lengths = [*map(len, parts[1:])]
        owner = np.array(owners, dtype=np.int64).repeat(lengths)
        for number in added:
            concept = concepts[number]
            some = self.read_kept(concept, without.get(concept, frozenset()))
            hashes, english = (
                np.concatenate(pair)
                for pair in zip((hashes, english), some, strict=True)
            )
            owner = np.append(owner, np.full(len(some[0]), number))
        return hashes, english, owner


def join(parts: Iterable[Iterable[int]]) -> np.ndarray:
    """Return hashes one after the other."""
    return np.array([*chain.from_iterable(parts)], dtype=np.uint64)


def read_words(
    store: Store, concept: int, without: frozenset[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Read the words of a concept from its names; see `WordTable.words_of`."""
    words: dict[str, bool] = {}
    for alias, origin, row in store.names_of_concept(concept):
        if row not in without:
            rules = store.rules_of(origin)
            for word in list_words(alias, rules):
                words[word] = words.get(word, False) or rules == "english"
    hashes = np.array([*map(hash_word, words)], dtype=np.uint64)
    return hashes, np.array([*words.values()], dtype=bool)


def read_mention_words(text: str, filter: Filter) -> Sequence[HashedWord]:
    """Return the distinct words of a mention, by the rules that may be its own."""
    if filter.is_english:
        return hash_words_of(text, "english")
    own = RULES.get(filter.document_language.lower(), "other")
    return hash_words_of(text, own)


@lru_cache(maxsize=MENTIONS_KEPT)
def hash_words_of(text: str, own: Rules) -> tuple[HashedWord, ...]:
    """Return the distinct words of a mention, by rules of a language and English."""
    rules: dict[Rules, None] = dict.fromkeys((own, "english"))
    folded = [list_words(text, each) for each in rules]
    # A numeral and a letter may be two words in one language and one in another.
    same = [words for words in folded if len(words) == len(folded[-1])]
    short = {
        word
        for piece in LETTERS.findall(text)
        if is_abbreviation(piece) or is_acronym(piece)
        for word in list_words(piece, "english")
    }
    # "fifth" and "5" are one word in English, and two in another language.
    by_word: dict[str, dict[str, None]] = {}
    for *others, word in zip(*same, strict=True):
        by_word.setdefault(word, {}).update(dict.fromkeys(others))
    return tuple(
        hash_folds((*others, word), short=word in short)
        for word, others in by_word.items()
    )


@lru_cache(maxsize=WORDS_KEPT)
def hash_folds(folds: tuple[str, ...], *, short: bool) -> HashedWord:
    """Return a word, as each of some languages folds it; `short` = abbreviated."""
    word = folds[-1]
    stems = {*folds, *list_stems(word, SHORTEST_NEW_STEM), *list_bases(word)}
    hashes, real = (
        tuple(map(hash_word, words)) for words in (dict.fromkeys(folds), stems)
    )
    is_real = short or is_abbreviated(word) or is_exact(word) or is_formed(word)
    return HashedWord(word, hashes, real, is_real)
