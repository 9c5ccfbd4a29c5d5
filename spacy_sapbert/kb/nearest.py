"""Mentions → the rows, names and concepts nearest to them that a filter leaves."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ..linking.candidates import SCORE_DIGITS, SORT_DIGITS, Entry, RankedEntry
from ..linking.features import POOL_ROWS, FoundName, Surroundings
from ..linking.filters import Filter
from ..linking.ranking import rank_concepts, sort_entries
from .filters import FilterResult, resolve_filter
from .indexes.exact import search_among
from .naming import Named, NameFinder, choose_row
from .parts import MENTIONS_AT_ONCE, Parts

FIRST_ROWS = 40  # rows read at first, for any k
MORE_ROWS = 2  # times as many are read if they have too few concepts
SEARCHED_ROWS = 80  # at first: graphs find them whether they are asked for them or not
MAX_ROWS = 4096  # rows searched for at most, without a filter
RANDOM_NAMES = 512  # that each mention is compared with
MOST_ALIKE = 8  # of English words
LEAST_SPREAD = 0.02  # of cosines with random names
FILTERS_KEPT = 64  # a byte for each row and each concept
NO_CONCEPTS: frozenset[int] = frozenset()  # one for all mentions that are kept

Ranked = list[RankedEntry]


class Mentions(NamedTuple):
    """Mentions and their vectors."""

    texts: Sequence[str]  # as `read_mention` returns them
    vectors: np.ndarray  # unit, float32; of a name, that of its row (n, width)
    named: np.ndarray  # which are names, bool (n,)
    barred: np.ndarray  # which are names only of concepts that a filter excludes (n,)
    equal: Sequence[frozenset[int]]  # concepts with a name written as each, case too

    def take(self, numbers: Sequence[int]) -> "Mentions":
        texts = [self.texts[number] for number in numbers]
        vectors, named = self.vectors[numbers], self.named[numbers]
        equal = [self.equal[number] for number in numbers]
        return Mentions(texts, vectors, named, self.barred[numbers], equal)


class FoundRows(NamedTuple):
    """Mentions and the names that they are; the fields are those of `Mentions`."""

    texts: Sequence[str]
    rows: np.ndarray  # −1 = it is no name, int64 (n,)
    barred: np.ndarray
    equal: Sequence[frozenset[int]]

    def take(self, numbers: Sequence[int]) -> "FoundRows":
        texts = [self.texts[number] for number in numbers]
        equal = [self.equal[number] for number in numbers]
        return FoundRows(texts, self.rows[numbers], self.barred[numbers], equal)


class Nearest:
    """Searches index and 3-grams of a version, and caches what filters leave."""

    def __init__(self, parts: Parts, names: NameFinder) -> None:
        self.parts = parts
        self.store = parts.store
        self.names = names
        self.resolve_filter = lru_cache(FILTERS_KEPT)(
            lambda filter: resolve_filter(parts.store, filter)
        )
        self.resolve = lru_cache(FILTERS_KEPT)(self.find_left)

    def find_left(self, filter: Filter) -> FilterResult | None:
        """Return what a filter leaves; None if it cannot leave out anything."""
        if not self.names.foreign_origins(filter.document_language):
            filter = filter.replace(document_language="")
        return self.resolve_filter(filter) if filter else None

    def name(
        self, texts: Sequence[str], vectors: np.ndarray, filter: Filter
    ) -> Mentions:
        """Return mentions with vectors; of a name that is left, that of its row."""
        return self.set_vectors(self.find_rows(texts, filter), vectors)

    def find_rows(self, texts: Sequence[str], filter: Filter) -> FoundRows:
        """Find the rows of the names that mentions are, as far as a filter leaves."""
        filtered = self.resolve(filter)
        barred = np.zeros(len(texts), dtype=bool)
        equal: list[frozenset[int]] = []
        rows = np.full(len(texts), -1, dtype=np.int64)
        found: dict[str, list[Named]] = {}
        for number, text in enumerate(texts):
            if number % MENTIONS_AT_ONCE == 0:
                some = texts[number : number + MENTIONS_AT_ONCE]
                found = self.names.find_named(some, filter.document_language)
            names = found[text]
            left = [n for n in names if filtered is None or filtered.matches(n.name)]
            written = frozenset(n.name.concept for n in left if n.is_equal)
            equal.append(written or NO_CONCEPTS)
            row = choose_row(left)
            if row is not None:
                rows[number] = row
            elif names and filtered is not None:
                concepts = [n.name.concept for n in names]
                barred[number] = not filtered.concepts[concepts].any()
        return FoundRows(texts, rows, barred, equal)

    def set_vectors(self, found: FoundRows, vectors: np.ndarray) -> Mentions:
        """Return mentions with vectors: of a name that of its row, else `vectors`."""
        named = found.rows >= 0
        if named.any():
            vectors = vectors.copy()
            vectors[named] = self.parts.index.vectors(found.rows[named])
        return Mentions(found.texts, vectors, named, found.barred, found.equal)

    def search(
        self, vectors: np.ndarray, k: int, filtered: FilterResult | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows that are left; see `Index.search`."""
        if filtered is None:
            return self.parts.index.search(vectors, k)
        return search_among(self.parts.index, vectors, k, filtered.rows)

    def rank(self, vectors: np.ndarray, filter: Filter, *, k: int) -> list[Ranked]:
        """Find the k best concepts of each vector that a filter leaves, by cosine.

        Rows may share a concept. Where concepts lack, a search for more rows adds some
        behind those found, so that the first do not depend on k.
        """
        if not len(vectors):
            return []
        filtered = self.resolve(filter)
        most = min(self.store.total_rows, MAX_ROWS)
        if filtered is not None:
            most = int(np.count_nonzero(filtered.rows))
        results: list[Ranked] = [[] for _ in vectors]
        pending = [*range(len(vectors))]
        count, searched = min(FIRST_ROWS, most), 0
        found: dict[int, tuple[list[int], list[float]]] = {}
        entries: dict[int, list[Entry]] = {}
        read = np.empty(0, dtype=np.int64)
        while pending and most:
            if count > searched:
                searched = min(max(count, SEARCHED_ROWS), most)
                rows, cosines = self.search(vectors[pending], searched, filtered)
                near = zip(rows.tolist(), cosines.tolist(), strict=True)
                found = dict(zip(pending, near, strict=True))
            rows = np.unique([row for n in pending for row in found[n][0][:count]])
            entries |= self.read_entries(np.setdiff1d(rows, read), filtered)
            read = np.union1d(read, rows)
            for number in pending:
                near_rows, scores = found[number]
                ranked = sort_entries(near_rows[:count], scores[:count], entries)
                results[number] = add_concepts(results[number], ranked, k=k)
            if count >= most:
                break
            pending = [number for number in pending if len(results[number]) < k]
            count = min(count * MORE_ROWS, most)
        return results

    def read_entries(
        self, rows: np.ndarray, filtered: FilterResult | None
    ) -> dict[int, list[Entry]]:
        """Return the names on rows (−1 = none) that are left, by row."""
        entries = self.store.entries(row for row in rows.ravel().tolist() if row >= 0)
        if filtered is None:
            return entries
        left = {r: [*filter(filtered.matches, some)] for r, some in entries.items()}
        return {row: names for row, names in left.items() if names}

    def surround(self, vectors: np.ndarray) -> list[Surroundings]:
        """Return how near random names, and English words, are to each vector."""
        near = vectors @ self.random_names.T
        others = np.sort(vectors @ self.parts.english_words.T, axis=1)[:, ::-1]
        values = np.stack(
            [
                near.mean(axis=1),
                np.maximum(near.std(axis=1), LEAST_SPREAD),
                others[:, 0],
                others[:, :MOST_ALIKE].mean(axis=1),
            ],
            axis=1,
        ).astype(np.float64)
        # Sums of float32 differ after these digits with the batch.
        return [Surroundings(*row) for row in values.round(SCORE_DIGITS).tolist()]

    @cached_property
    def random_names(self) -> np.ndarray:
        """Vectors of random names, float32. Shape: (n, width)."""
        rows = sorted(self.store.rows_by_key(RANDOM_NAMES))
        return self.parts.index.vectors(np.array(rows, dtype=np.int64))

    def find_names(
        self, mentions: Mentions, filter: Filter, *, rows: int = POOL_ROWS
    ) -> Iterator[list[FoundName]]:
        """Yield names near each mention, unordered: `rows` by cosine and by 3-grams."""
        filtered = self.resolve(filter)
        total = self.store.total_rows
        if filtered is not None:
            total = int(np.count_nonzero(filtered.rows))
        count = min(rows, total)
        if not count:
            yield from ([] for _ in mentions.texts)
            return
        near = self.search(mentions.vectors, count, filtered)
        if self.parts.manifest.ngrams:
            allowed = None if filtered is None else filtered.rows
            united = self.add_ngram_rows(mentions, near, allowed, filter.is_english)
        else:
            united = [(r, c, np.zeros(len(r))) for r, c in zip(*near, strict=True)]
        every = np.concatenate([rows for rows, _, _ in united])
        entries = self.read_entries(every, filtered)
        for some, cosines, similarities in united:
            values = zip(
                some.tolist(),
                bound(cosines).round(SORT_DIGITS).tolist(),
                bound(similarities).tolist(),
                strict=True,
            )
            yield [
                FoundName(cosine, similarity, entry)
                for row, cosine, similarity in values
                for entry in entries.get(row, ())
            ]

    def add_ngram_rows(
        self,
        mentions: Mentions,
        near: tuple[np.ndarray, np.ndarray],
        allowed: np.ndarray | None,
        english: bool,
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Search by 3-grams, and compute both scores of what either search found.

        `near` has rows (−1 = none) and cosines, (n, m) each; `allowed` masks all rows.
        Returns rows, cosines and similarities of each mention, (r,) each.
        """
        found = near[0] >= 0
        rows, scores = ([*map(np.compress, found, some)] for some in near)
        ngrams = self.parts.english_ngrams if english else self.parts.ngrams
        united = ngrams.unite(mentions.texts, rows, near[0].shape[1], allowed=allowed)
        cosines = [
            # of the rows that 3-grams alone found, computed here
            np.append(known, self.parts.index.vectors(every[len(known) :]) @ vector)
            for known, (every, _), vector in zip(
                scores, united, mentions.vectors, strict=True
            )
        ]
        return [(r, c, s) for (r, s), c in zip(united, cosines, strict=True)]


def add_concepts(known: Ranked, ranked: Iterable[RankedEntry], *, k: int) -> Ranked:
    """Return the concepts found before, then others that a larger search found."""
    others = rank_concepts(ranked, k=k)
    if not known:
        return others
    cuis, last = {concept.entry.cui for concept in known}, known[-1].key
    new = (concept for concept in others if concept.entry.cui not in cuis)
    # By an index that is not exact, a new one may have a higher sort key.
    capped = (concept._replace(key=min(concept.key, last)) for concept in new)
    return rank_concepts([*known, *capped], k=k)


def bound(cosines: np.ndarray) -> np.ndarray:
    """Return cosines in float64, between −1 and 1 whatever an index holds."""
    bounded: np.ndarray = np.fmin(np.fmax(cosines.astype(np.float64), -1), 1)
    return bounded
