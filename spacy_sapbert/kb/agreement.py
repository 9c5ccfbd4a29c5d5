"""A mention and concepts → the words that they share, and what excludes them.

English names are counted apart: other names do not change answers for English texts.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..io.arrays import find_sorted, map_arrays
from ..linking.candidates import RankedEntry
from ..linking.features import (
    Features,
    Pool,
    Shared,
    compute_features,
    excludes,
    list_near,
    says_more,
    split_words,
)
from ..linking.filters import Filter
from ..linking.opposites import (
    LOSS,
    list_doubtful_opposites,
    list_lost_functions,
    list_opposites,
)
from ..linking.text import RULES, WORDS_KEPT, Rules, hash_word, list_words
from ..linking.word_likeness import SHORTEST_NEW_STEM, list_stems
from .store import Store
from .words import LETTER, NEGATION, NUMERAL, OTHER, kind_of

FEWEST_CONCEPTS = 10  # that are found and compared, for any k
CONCEPTS_KEPT = 10_000  # of an overlay, whose words are read from its names
HASHED_LOSS = np.array(sorted(map(hash_word, LOSS)), dtype=np.uint64)


class Without(NamedTuple):
    """Names of a concept that do not count, by their rows; None = all of them."""

    concept: int
    rows: frozenset[int] | None


class HashedWord(NamedTuple):
    """A folded word of a mention."""

    word: str
    hashes: np.ndarray  # of the word, as each of some languages folds it
    real: np.ndarray  # also of stems; the word is real if one of these is
    kind: int
    opposites: np.ndarray  # hashes (n,)
    doubtful: np.ndarray  # opposites only of a real word (n,)
    lost: np.ndarray  # opposites that do not count beside a word of `LOSS` (n,)


class WordTable:
    """The words of the names of each concept, mapped; see `FILES`."""

    def __init__(self, paths: Mapping[str, Path], store: Store) -> None:
        arrays = map_arrays(paths)
        self.hashes = arrays["hashes"]
        self.kinds = arrays["kinds"]
        self.counts = {True: arrays["english"], False: arrays["every"]}
        self.starts = arrays["starts"]
        self.places = arrays["places"]
        self.real = arrays["real"]
        self.totals = arrays["totals"].tolist()
        self.store = store
        self.read_kept = lru_cache(CONCEPTS_KEPT)(partial(read_words, store))

    def put_excluded_last(
        self, text: str, concepts: list[RankedEntry], filter: Filter
    ) -> tuple[list[RankedEntry], bool]:
        """Order the concepts that a mention excludes behind the others.

        Only the first `FEWEST_CONCEPTS` are compared, so that `k` changes nothing. Also
        returns whether the first one is excluded.
        """
        near = concepts[:FEWEST_CONCEPTS]
        numbers = [concept.entry.concept for concept in near]
        excluded = self.compare(text, numbers, filter).excluded
        for number, concept in enumerate(near):
            rules = self.store.rules_of(concept.entry.origin)
            name = split_words(concept.entry.alias, rules)
            excluded[number] |= excludes(split_words(text, rules), name)
        if not excluded.any():
            return concepts, False
        left = [c for c, e in zip(near, excluded, strict=True) if not e]
        last = [c for c, e in zip(near, excluded, strict=True) if e]
        # Sort keys are in −1 … 1.
        last = [c._replace(key=c.key - 2) for c in last]
        rest = [c._replace(key=c.key - 4) for c in concepts[len(near) :]]
        return [*left, *last, *rest], not left

    def features(
        self,
        text: str,
        pool: Pool,
        filter: Filter,
        *,
        without: Sequence[Without] = (),
        counts: Mapping[str, int] | None = None,
        concept_counts: Mapping[str, int] | None = None,
    ) -> Features:
        """Compute the features of the concepts of a pool, but for some names."""
        pairs = list_near(text, pool, lambda entry: self.store.rules_of(entry.origin))
        numbers = [names.nearest.concept for names in pool.near.values()]
        shared = self.compare(text, numbers, filter, without=without)
        for number, of_concept in enumerate(pairs):
            shared.excluded[number] |= bool(of_concept) and all(
                excludes(m, name) for name, m in of_concept
            )
        narrowed = self.find_narrowed(text, numbers, shared.excluded, filter, without)
        of_names = {
            word
            for of_concept in pairs
            for name, _ in of_concept
            for word in name.content
        }
        weights = self.weigh([*of_names], english=filter.is_english)
        shared = shared._replace(
            name_weights=weights,
            excluded=shared.excluded & ~narrowed,
            narrowed=narrowed,
        )
        return compute_features(
            pool, pairs, shared, counts=counts, concept_counts=concept_counts
        )

    def find_narrowed(
        self,
        text: str,
        concepts: Sequence[int],
        excluded: np.ndarray,
        filter: Filter,
        without: Sequence[Without],
    ) -> np.ndarray:
        """Return which of the excluded concepts have a name that a mention narrows.

        `without` = names that do not count. Shape: (concepts,), bool.
        """
        left_out = {each.concept: each.rows for each in without}
        narrowed = np.zeros(len(concepts), dtype=bool)
        for number in np.flatnonzero(excluded).tolist():
            rows = left_out.get(concepts[number], frozenset())
            names = self.store.names_of_concept(concepts[number])
            narrowed[number] = rows is not None and any(
                says_more(split_words(text, rules), split_words(alias, rules))
                for alias, origin, row in names
                if row not in rows
                and (
                    (rules := self.store.rules_of(origin)) == "english"
                    or not filter.is_english
                )
            )
        return narrowed

    def compare(
        self,
        text: str,
        concepts: Sequence[int],
        filter: Filter,
        *,
        without: Sequence[Without] = (),
    ) -> Shared:
        """Compare a mention with concepts; weights of names are left to `features`."""
        english = filter.is_english
        words = read_mention_words(text, filter)
        left_out = [
            {*list_words(alias, self.store.rules_of(origin))}
            for concept, rows in without
            for alias, origin, row in self.store.names_of_concept(concept)
            if (rows is None or row in rows)
            and (not english or self.store.rules_of(origin) == "english")
        ]
        counts = np.zeros(len(words), dtype=np.int64)
        real = np.array([word.kind != OTHER for word in words], dtype=bool)
        for number, word in enumerate(words):
            counts[number] = self.count_names(word.hashes, english=english).max()
            counts[number] -= sum(word.word in names for names in left_out)
            real[number] |= (
                counts[number] > 0 or find_sorted(word.real, self.real)[0].any()
            )
        total = self.totals[0 if english else 1]
        rows_left_out = {c: rows for c, rows in without if rows is not None}
        hashes, kinds, of_english, owners = self.words_of(concepts, rows_left_out)
        if english:
            hashes, kinds = hashes[of_english], kinds[of_english]
            owners = owners[of_english]
        covered, excluded = match_words(
            words, real, hashes, kinds, owners, len(concepts)
        )
        return Shared(
            words=[word.word for word in words],
            weights=np.log((2 + total) / (1 + counts.clip(0, total))),
            real=real,
            covered=covered,
            excluded=excluded,
            narrowed=np.zeros(len(concepts), dtype=bool),
            name_weights={},
            most=self.most(english=english),
        )

    def weigh(self, words: Sequence[str], *, english: bool) -> dict[str, float]:
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
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return hash, kind, whether an English name has it, and owner of each word.

        The owner is a place in `concepts`. `without` has, by concept, the rows of names
        that do not count. Shape: (words,) each.
        """
        built: list[np.ndarray] = [self.places[:0]]
        owners = [0]
        others: list[tuple[np.ndarray, ...]] = []
        for number, concept in enumerate(concepts):
            packed = self.places[:0]
            if concept < len(self.starts) - 1 and concept not in without:
                packed = self.places[self.starts[concept] : self.starts[concept + 1]]
            if len(packed):
                built.append(packed)
                owners.append(number)
            else:  # of an overlay
                some = self.read_kept(concept, without.get(concept, frozenset()))
                others.append((*some, np.full(len(some[0]), number)))
        packed = np.concatenate(built)
        places = packed >> 1
        numbers = np.repeat(owners, [len(part) for part in built])
        words = self.hashes[places], self.kinds[places], (packed & 1) == 1, numbers
        if not others:
            return words
        hashes, kinds, english, numbers = map(
            np.concatenate, zip(words, *others, strict=True)
        )
        return hashes, kinds, english, numbers


def read_words(
    store: Store, concept: int, without: frozenset[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read the words of a concept from its names; see `WordTable.words_of`."""
    words: dict[str, bool] = {}
    for alias, origin, row in store.names_of_concept(concept):
        if row not in without:
            rules = store.rules_of(origin)
            for word in list_words(alias, rules):
                words[word] = words.get(word, False) or rules == "english"
    hashes = np.array([*map(hash_word, words)], dtype=np.uint64)
    kinds = np.array([*map(kind_of, words)], dtype=np.uint8)
    return hashes, kinds, np.array([*words.values()], dtype=bool)


def read_mention_words(text: str, filter: Filter) -> list[HashedWord]:
    """Return the distinct words of a mention, by the rules that may be its own."""
    rules: list[Rules] = ["english"]
    if not filter.is_english:
        own = RULES.get(filter.document_language.lower(), "other")
        rules = [*dict.fromkeys([own, "english"])]
    folded = [list_words(text, each) for each in rules]
    # A numeral and a letter may be two words in one language and one in another.
    same = [words for words in folded if len(words) == len(folded[-1])]
    return [hash_folds(folds) for folds in dict.fromkeys(zip(*same, strict=True))]


@lru_cache(maxsize=WORDS_KEPT)
def hash_folds(folds: tuple[str, ...]) -> HashedWord:
    """Return a word, as each of some languages folds it, with what excludes it."""
    word = folds[-1]
    stems = {*folds, *list_stems(word, SHORTEST_NEW_STEM)}
    hashes, real, *others = (
        np.array([*map(hash_word, words)], dtype=np.uint64)
        for words in (
            dict.fromkeys(folds),
            stems,
            list_opposites(word),
            list_doubtful_opposites(word),
            list_lost_functions(word),
        )
    )
    return HashedWord(word, hashes, real, kind_of(word), *others)


def match_words(
    words: Sequence[HashedWord],
    real: np.ndarray,
    hashes: np.ndarray,
    kinds: np.ndarray,
    owners: np.ndarray,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return `covered` and `excluded` of `Shared`; the arrays are from `words_of`."""
    covered = np.zeros((count, len(words)), dtype=bool)
    excluded = np.zeros(count, dtype=bool)
    for number, word in enumerate(words):
        is_word = hashes == word.hashes[0]
        for other in word.hashes[1:]:
            is_word |= hashes == other
        covered[owners[is_word], number] = True
        opposites = word.opposites
        if real[number] and len(word.doubtful):
            opposites = np.concatenate([opposites, word.doubtful])
        if len(opposites):
            is_opposite = np.isin(hashes, opposites)
            if len(word.lost):
                losing = np.full(count, any(other.word in LOSS for other in words))
                losing[owners[np.isin(hashes, HASHED_LOSS)]] = True
                is_opposite &= ~(losing[owners] & np.isin(hashes, word.lost))
            opposed = np.zeros(count, dtype=bool)
            opposed[owners[is_opposite]] = True
            excluded |= opposed & ~covered[:, number]
    mine = np.array([word.kind for word in words])
    keys = np.array([word.hashes[-1] for word in words], dtype=np.uint64)
    for kind in (NUMERAL, LETTER):
        # "A-T" and "C9" are abbreviations
        if not (mine == kind).any() or (kind == LETTER and not (mine == OTHER).any()):
            continue
        others = (kinds == kind) & ~np.isin(hashes, keys[mine == kind])
        has_other = np.zeros(count, dtype=bool)
        has_other[owners[others]] = True
        excluded |= has_other & ~covered[:, mine == kind].all(axis=1)
    if (mine == NEGATION).any():
        excluded |= ~covered[:, mine == NEGATION].any(axis=1)
    return covered, excluded
