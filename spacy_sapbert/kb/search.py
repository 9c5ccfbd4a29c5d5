"""Mentions → links: embed, find the nearest names, order concepts, say why not.

The result of a mention depends on the mention, the options and the version of the
knowledge base, and on nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..io.cache import LruCache
from ..linking.candidates import Entry, RankedEntry
from ..linking.features import (
    POOL_ROWS,
    Features,
    FoundName,
    Pool,
    Provenance,
    Shared,
    all_excluded,
    compute_features,
    excludes,
    list_near,
    pool_concepts,
    split_words,
)
from ..linking.filters import Filter
from ..linking.languages import ENGLISH
from ..linking.learned_order import order_by_ranker
from ..linking.link import (
    EXCLUDED,
    TRUNCATED,
    ConceptInfo,
    Linked,
    MentionQuery,
    SearchResult,
    link_results,
    make_queries,
)
from ..linking.options import LinkOptions
from ..linking.ranking import has_text, order_entries, rank_concepts
from ..linking.scores import SORT_DIGITS, round_score
from ..linking.text import RULES, Rules, list_words, name_form, read_mention
from ..vocabularies.concepts import ANNOTATED
from .embedding import embed_texts
from .filters import (
    FilterResult,
    check_sources_of_codes,
    choose_codes,
    resolve_filter,
)
from .indexes.layered import search_among
from .naming import Named, NameFinder
from .parts import Parts
from .store import Store
from .words import MentionWords, Without

FIRST_ROWS = 40  # rows searched for at first, for any k
FEWEST_CONCEPTS = 10  # that are found and compared, for any k
MORE_ROWS = 4  # times as many are searched for if they have too few concepts
MAX_ROWS = 4096  # rows searched for at most, without a filter
MENTIONS_AT_ONCE = 256  # searched together: limits memory, does not change results
FILTER_CACHE = 16  # filters, or more if the options have more
SEARCH_CACHE = 5_000  # mentions, about 5 KB each
CONCEPT_CACHE = 20_000  # concepts, about 1 KB each
VOCABULARY_NAME = Provenance(vocabulary=True, annotated=False)

Ranked = list[RankedEntry]


class Mentions(NamedTuple):
    """Mentions and their vectors.

    Attributes:
        texts: As `read_mention` returns them.
        vectors: Unit vectors in float32; of a mention that is a name, that of its row.
            Shape: (n, width).
        named: Which mentions are names, bool. Shape: (n,).
        barred: Which are names only of concepts that a filter excludes, bool.
            Shape: (n,).
    """

    texts: Sequence[str]
    vectors: np.ndarray
    named: np.ndarray
    barred: np.ndarray

    def take(self, numbers: Sequence[int]) -> "Mentions":
        """Return some of the mentions."""
        texts = [self.texts[number] for number in numbers]
        vectors, named = self.vectors[numbers], self.named[numbers]
        return Mentions(texts, vectors, named, self.barred[numbers])


class MentionSearch:
    """Finds the concepts of mentions, and caches what it found."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self.store = store
        self.parts = parts
        self.manifest = parts.manifest
        self.results: LruCache[Any, SearchResult] = LruCache(SEARCH_CACHE)
        self.concepts: LruCache[str, Any] = LruCache(CONCEPT_CACHE)
        self.filters: LruCache[Filter, FilterResult] = LruCache(FILTER_CACHE)
        self.names = NameFinder(store)
        self.check_codes = cache(lambda codes: check_sources_of_codes(store, codes))
        self.provenance = {
            number: Provenance(vocabulary=values != [ANNOTATED], annotated=True)
            for number, values in store.origins("source").items()
            if ANNOTATED in values
        }

    def link(
        self,
        mentions: Sequence[str],
        labels: Sequence[str],
        documents: Sequence[int],
        options: LinkOptions,
    ) -> list[Linked]:
        """Link mentions to concepts; see `KnowledgeBase.link`."""
        if options.codes:
            self.check_codes(options.codes)
        self.filters.size = max(FILTER_CACHE, 2 * len(options.label_types))
        queries = make_queries(mentions, labels, options)
        results = self.find(queries, options)
        info = self.load_info(results.values(), options)
        calibrated, logistic = self.manifest.calibration, None
        if calibrated and calibrated.by == "cosine":
            logistic = calibrated.logistic
        return link_results(
            queries,
            results,
            info,
            options,
            labels=labels,
            documents=documents,
            logistic=logistic,
        )

    # Find

    def find(
        self, queries: Sequence[MentionQuery], options: LinkOptions
    ) -> dict[MentionQuery, SearchResult]:
        """Find the concepts of mentions; equal queries and cached ones cost nothing."""
        key = options.search_key()
        distinct = dict.fromkeys(queries)
        cached = self.results.get_many((query, key) for query in distinct)
        results = {query: result for (query, _), result in cached.items()}
        if new := [query for query in distinct if query not in results]:
            added = self.find_new(new, options)
            self.results.put_many({(q, key): r for q, r in added.items()})
            results.update(added)
        return results

    def find_new(
        self, queries: Sequence[MentionQuery], options: LinkOptions
    ) -> dict[MentionQuery, SearchResult]:
        """Find the concepts of distinct mentions."""
        results = {query: SearchResult([], "empty") for query in queries}
        texts = {q.text: read_mention(q.text) for q in queries if has_text(q.text)}
        if not texts:
            return results
        read = [*dict.fromkeys(texts.values())]
        embedded = embed_texts(self.store, self.parts, read)
        numbers = {text: number for number, text in enumerate(read)}
        by_filter: dict[Filter, dict[int, list[MentionQuery]]] = {}
        for query in queries:
            number = numbers.get(texts.get(query.text, ""))
            if number is not None:
                if embedded.readable[number]:
                    results[query] = SearchResult([], "no_vector")
                same = by_filter.setdefault(query.filter, {})
                same.setdefault(number, []).append(query)
        for filter, some in by_filter.items():
            for start in range(0, len(some), MENTIONS_AT_ONCE):
                batch = [*some][start : start + MENTIONS_AT_ONCE]
                mentions = self.name(
                    [read[n] for n in batch], embedded.vectors[batch], filter
                )
                # A name may have signs that the encoder cannot read in the mention.
                findable = mentions.named | embedded.usable[batch]
                kept = np.flatnonzero(findable).tolist()
                noted = self.note(mentions.take(kept), filter, options)
                for place, result in zip(kept, noted, strict=True):
                    number = batch[place]
                    if embedded.truncated[number] and result.note is None:
                        result = result._replace(note=TRUNCATED)
                    results.update(dict.fromkeys(some[number], result))
        return results

    def name(
        self, texts: Sequence[str], vectors: np.ndarray, filter: Filter
    ) -> Mentions:
        """Return mentions that are names with the vectors of their rows.

        Only names that a filter leaves count. A mention is a name only if all concepts
        of which it is one, in the best way to write it, share a row or a concept.

        Args:
            texts: Distinct.
            vectors: What the encoder makes of them. Shape: (n, width).
        """
        found = self.names.find_named(texts, filter.document_language)
        filtered = self.resolve(filter)
        named = np.zeros(len(texts), dtype=bool)
        barred = np.zeros(len(texts), dtype=bool)
        rows: dict[int, int] = {}
        for number, text in enumerate(texts):
            names = found.get(text, [])
            row = choose_row(
                n for n in names if filtered is None or filtered.matches(n.name)
            )
            if row is not None:
                rows[number] = row
            elif names and filtered is not None:
                barred[number] = not any(filtered.leaves(n.name.concept) for n in names)
        named[[*rows]] = True
        if rows:
            vectors = vectors.copy()
            wanted = np.array([*rows.values()], dtype=np.int64)
            vectors[[*rows]] = self.parts.index.vectors(wanted)
        return Mentions(texts, vectors, named, barred)

    def note(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the concepts of mentions, and why some are not linked.

        "filtered" = without the filter, the mention would be linked, or it is a name of
        concepts that the filter excludes.
        """
        results = self.order(mentions, filter, options)
        notes: dict[int, str] = dict.fromkeys(
            np.flatnonzero(mentions.barred).tolist(), "filtered"
        )
        below: list[int] = []
        for number, result in enumerate(results):
            if number not in notes and not self.links(result, options):
                below.append(number)
                notes[number] = EXCLUDED if result.excluded else "below_threshold"
        # That a mention has no concept in the language of the document is no reason.
        wider = Filter(document_language=filter.document_language)
        if below and filter != wider:
            free = self.order(mentions.take(below), wider, options)
            for number, result in zip(below, free, strict=True):
                if self.links(result, options):
                    notes[number] = "filtered"
        return [r._replace(note=notes.get(n)) for n, r in enumerate(results)]

    def links(self, result: SearchResult, options: LinkOptions) -> bool:
        """Return whether a mention is linked to the first concept that was found.

        The concept is not excluded. Its cosine reaches the threshold, if there is one;
        or its probability that of the learned order, if there is one.
        """
        if not result.ranked or result.excluded:
            return False
        ranker, threshold = self.parts.ranker, self.cosine_threshold(options)
        if threshold is not None:
            return round_score(result.ranked[0].score) >= threshold
        return ranker is None or (result.probability or 0) >= ranker.threshold

    def cosine_threshold(self, options: LinkOptions) -> float | None:
        """Return the cosine that the first candidate must reach; None = any.

        That of the options comes first, then what was learned from annotations (a
        probability), then the threshold of the knowledge base, then the order that was
        learned from names.
        """
        if options.threshold is not None or self.manifest.has_ranker:
            return options.threshold
        return self.manifest.threshold

    # Order

    def order(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the best concepts of mentions, in the learned order if there is one.

        An order that was learned from names is not for mentions that are names.
        """
        ranker = self.parts.ranker
        learned = np.zeros(len(mentions.texts), dtype=bool)
        if ranker is not None:
            learned = ~mentions.named if ranker.taught is None else ~learned
        results: dict[int, SearchResult] = {}
        for chosen, order in (
            (~learned, self.order_by_cosine),
            (learned, self.order_by_ranker),
        ):
            numbers = np.flatnonzero(chosen).tolist()
            if numbers:
                ordered = order(mentions.take(numbers), filter, options)
                results.update(zip(numbers, ordered, strict=True))
        return [results[number] for number in range(len(learned))]

    def order_by_cosine(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the concepts of mentions by cosine; with a probability if there is one.

        The probability does not depend on `k`.
        """
        ranker, counts = self.parts.ranker, self.count_annotations(mentions.texts)
        ranked = self.rank(mentions.vectors, filter, k=max(options.k, FEWEST_CONCEPTS))
        results: list[SearchResult] = []
        for number, concepts in enumerate(ranked):
            probability, excluded = None, False
            if ranker is not None and ranker.known is not None:
                cosines = np.array([c.score for c in concepts[:FEWEST_CONCEPTS]])
                probability = ranker.name_probability(cosines) if concepts else 0.0
            if not mentions.named[number]:
                concepts, excluded = self.put_excluded_last(
                    mentions.texts[number], concepts, filter
                )
            best = rank_concepts(concepts, k=options.k)
            results.append(
                SearchResult(best, None, counts[number], probability, excluded)
            )
        return results

    def put_excluded_last(
        self, text: str, concepts: Ranked, filter: Filter
    ) -> tuple[Ranked, bool]:
        """Order the concepts of a mention that it excludes behind the others.

        The first `FEWEST_CONCEPTS` are compared, and stay before the rest for any k.

        Returns:
            The concepts, and whether the first one is excluded.
        """
        near = concepts[:FEWEST_CONCEPTS]
        numbers = [concept.entry.concept for concept in near]
        words = self.read_words(text, filter)
        english = is_english(filter)
        excluded = self.parts.words.compare(words, numbers, english=english).excluded
        for number, concept in enumerate(near):
            rules = self.store.rules_of(concept.entry.origin)
            name = split_words(concept.entry.alias, rules)
            excluded[number] |= excludes(split_words(text, rules), name)
        if not excluded.any():
            return concepts, False
        left = [c for c, e in zip(near, excluded, strict=True) if not e]
        last = [c for c, e in zip(near, excluded, strict=True) if e]
        # Sort keys are in −1 … 1.
        last = [c._replace(order=c.order - 2) for c in last]
        rest = [c._replace(order=c.order - 4) for c in concepts[len(near) :]]
        return [*left, *last, *rest], not left

    def order_by_ranker(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the concepts of mentions in the learned order."""
        ranker = self.parts.ranker
        assert ranker is not None
        texts, counts = mentions.texts, self.count_annotations(mentions.texts)
        found = self.find_names(mentions, filter)
        pools = [pool_concepts(names, self.find_provenance) for names in found]
        more = [n for n, pool in enumerate(pools) if len(pool.near) < options.k]
        ranked: dict[int, Ranked] = {}
        if more:
            others = self.rank(mentions.vectors[more], filter, k=options.k)
            ranked = dict(zip(more, others, strict=True))
        taught = self.manifest.taught is not None
        cuis = {cui for pool in pools for cui in pool.near}
        totals = self.store.annotated_concepts(cuis) if taught else {}
        results: list[SearchResult] = []
        for number, pool in enumerate(pools):
            features = self.features(
                texts[number],
                pool,
                filter,
                counts=counts[number] if taught else None,
                concept_counts=totals,
            )
            ordered, probability = order_by_ranker(
                ranker, pool, features, ranked.get(number, ())
            )
            excluded = bool(ordered) and all_excluded(features)
            best = rank_concepts(ordered, k=options.k)
            results.append(
                SearchResult(best, None, counts[number], probability, excluded)
            )
        return results

    # Features

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
        """Compute the features of the concepts of a pool; see `compute_features`.

        Args:
            without: Names that do not count.
        """
        english = is_english(filter)
        words = self.read_words(text, filter, without)
        pairs = list_near(text, pool, lambda entry: self.store.rules_of(entry.origin))
        numbers = [names.nearest.concept for names in pool.near.values()]
        compared = self.parts.words.compare(
            words, numbers, english=english, without=without
        )
        of_names = {
            word
            for of_concept in pairs
            for name, _ in of_concept
            for word in name.content
        }
        shared = Shared(
            words=[word.word for word in words.words],
            weights=words.weights,
            real=words.real,
            covered=compared.covered,
            excluded=compared.excluded,
            name_weights=self.parts.words.weigh([*of_names], english=english),
            most=self.parts.words.most(english=english),
        )
        return compute_features(
            pool, pairs, shared, counts=counts, concept_counts=concept_counts
        )

    def read_words(
        self, text: str, filter: Filter, without: Sequence[Without] = ()
    ) -> MentionWords:
        """Return what is known of the words of a mention."""
        rules: list[Rules] = ["english"]
        if not is_english(filter):
            own = RULES.get(filter.document_language.lower(), "other")
            rules = [*dict.fromkeys([own, "english"])]
        return self.parts.words.read_mention(
            [list_words(text, each) for each in rules],
            english=is_english(filter),
            without=without,
        )

    def count_annotations(self, texts: Sequence[str]) -> list[Mapping[str, int]]:
        """Return how often each mention was annotated with each concept."""
        if self.manifest.taught is None:
            return [{} for _ in texts]
        forms = [name_form(text) for text in texts]
        known = self.store.annotated(forms)
        return [known.get(form, {}) for form in forms]

    def find_provenance(self, entry: Entry) -> Provenance:
        """Return whether a name is of the vocabulary, or an annotated mention."""
        return self.provenance.get(entry.origin, VOCABULARY_NAME)

    def rank(
        self, vectors: np.ndarray, filter: Filter, *, k: int
    ) -> list[list[RankedEntry]]:
        """Find the k best concepts of each vector that a filter leaves, by cosine.

        Several rows may belong to one concept, so more rows are searched for the
        vectors that still lack concepts. They only add concepts: which come first does
        not depend on k.

        Args:
            vectors: Unit vectors in float32. Shape: (n, width).

        Returns:
            The concepts of each mention; see `rank_concepts`.
        """
        filtered = self.resolve(filter)
        total = self.store.total_rows
        most = min(total, MAX_ROWS) if filtered is None else len(filtered.rows)
        allowed = None if filtered is None else filtered.rows
        results: list[Ranked] = [[] for _ in vectors]
        pending = list(range(len(vectors)))
        count = min(FIRST_ROWS, most)
        while pending and most:
            rows, cosines = self.search(vectors[pending], count, allowed)
            distinct = np.unique(rows)
            entries = self.store.entries(distinct[distinct >= 0])
            if filtered is not None:
                entries = filtered.filter_entries(entries)
            near = zip(rows.tolist(), cosines.tolist(), strict=True)
            for number, (near_rows, scores) in zip(pending, near, strict=True):
                ranked = order_entries(near_rows, scores, entries)
                results[number] = add_concepts(results[number], ranked, k=k)
            if count >= most:
                break
            pending = [number for number in pending if len(results[number]) < k]
            count = min(count * MORE_ROWS, most)
        return results

    # Nearest

    def search(
        self, vectors: np.ndarray, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows; see `KnowledgeBase.search`."""
        index = self.parts.index
        if rows is None:
            return index.search(vectors, k)
        return search_among(index, vectors, k, rows, total=self.store.total_rows)

    def find_names(
        self, mentions: Mentions, filter: Filter, *, rows: int = POOL_ROWS
    ) -> Iterator[list[FoundName]]:
        """Yield the names nearest to each mention that a filter leaves, in no order.

        Args:
            rows: How many rows are searched for by cosine, and as many by 3-grams if
                they are indexed.
        """
        filtered = self.resolve(filter)
        allowed = None if filtered is None else filtered.rows
        count = min(rows, self.store.total_rows if allowed is None else len(allowed))
        if not count:
            yield from ([] for _ in mentions.texts)
            return
        near = self.search(mentions.vectors, count, allowed)
        if self.manifest.ngrams:
            mask = None if filtered is None else filtered.mask(self.store.total_rows)
            united = self.add_ngram_rows(mentions, near, mask, is_english(filter))
        else:
            united = [
                (r[r >= 0], c[r >= 0], np.zeros((r >= 0).sum()))
                for r, c in zip(*near, strict=True)
            ]
        distinct = np.unique(np.concatenate([rows for rows, _, _ in united]))
        entries = self.store.entries(distinct)
        if filtered is not None:
            entries = filtered.filter_entries(entries)
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

        Args:
            near: Rows (−1 = none) and cosines of the index. Shape: (n, m) each.
            allowed: Mask of the rows that 3-grams may add; None = all. Shape: (rows,).
            english: Whether only names that may be in English count.

        Returns:
            For each mention rows, ascending, cosines and similarities, (r,) each.
        """
        rows, scores = near
        ngrams = self.parts.english_ngrams if english else self.parts.ngrams
        united = ngrams.unite(
            mentions.texts,
            [some[some >= 0] for some in rows],
            rows.shape[1],
            allowed=allowed,
        )
        cosines: list[np.ndarray] = []
        for (every, _), some, found in zip(united, rows, scores, strict=True):
            values = np.full(len(every), np.nan, dtype=np.float32)
            values[np.searchsorted(every, some[some >= 0])] = found[some >= 0]
            cosines.append(values)
        # Of the rows that 3-grams alone found, the cosines are computed.
        missing = [np.isnan(values) for values in cosines]
        wanted = [every[m] for (every, _), m in zip(united, missing, strict=True)]
        distinct = np.unique(np.concatenate(wanted))
        row_vectors = self.parts.index.vectors(distinct)
        for number, vector in enumerate(mentions.vectors):
            places = np.searchsorted(distinct, wanted[number])
            cosines[number][missing[number]] = row_vectors[places] @ vector
        return [(r, c, s) for (r, s), c in zip(united, cosines, strict=True)]

    def resolve(self, filter: Filter) -> FilterResult | None:
        """Return what a filter leaves; None if it cannot leave out anything."""
        if not self.names.foreign_origins(filter.document_language):
            filter = replace(filter, document_language="")
        return self.resolve_filter(filter) if filter else None

    def resolve_filter(self, filter: Filter) -> FilterResult:
        """Find what a filter leaves; the results of the last filters are cached."""
        cached = self.filters.get_many([filter])
        if not cached:
            cached = {filter: resolve_filter(self.store, filter)}
            self.filters.put_many(cached)
        return cached[filter]

    # Concepts

    def load_info(
        self, results: Iterable[SearchResult], options: LinkOptions
    ) -> ConceptInfo:
        """Read the data of the concepts in results, as far as options need it."""
        cuis = list({r.entry.cui: None for result in results for r in result.ranked})
        data = self.concepts.get_many(cuis)
        if new := [cui for cui in cuis if cui not in data]:
            types, codes = self.store.types(new), self.store.codes(new)
            read = {cui: (types.get(cui, []), codes.get(cui, {})) for cui in new}
            self.concepts.put_many(read)
            data.update(read)
        with_parents = "coherence" in options.tie_evidence
        return ConceptInfo(
            types={cui: types for cui, (types, _) in data.items()},
            codes={
                cui: choose_codes(codes, options.codes)
                for cui, (_, codes) in data.items()
            },
            parents=self.store.parents(cuis) if with_parents else {},
            sources=self.store.origins("source") if options.source_rank else {},
        )


def is_english(filter: Filter) -> bool:
    """Return whether a filter is for documents in English."""
    return filter.document_language.lower() in ENGLISH


def choose_row(names: Iterable[Named]) -> int | None:
    """Return the row of the name that a mention is; None if it is not clear.

    Of the names that are written most alike, all share a row or a concept.
    """
    alike = [n for n in names if n.name.row is not None]
    most = max((n.likeness for n in alike), default=0)
    best = [n.name for n in alike if n.likeness == most]
    if not best:
        return None
    row = best[0].row
    concepts: dict[int, set[int]] = {}
    for name in best:
        concepts.setdefault(name.row, set()).add(name.concept)  # type: ignore[arg-type]
    shared = len(concepts) == 1 or set.intersection(*concepts.values())
    return row if shared else None


def add_concepts(known: Ranked, ranked: Iterable[RankedEntry], *, k: int) -> Ranked:
    """Return the concepts found before, then others that a larger search found."""
    others = rank_concepts(ranked, k=k)
    if not known:
        return others
    cuis, last = {concept.entry.cui for concept in known}, known[-1].order
    new = (concept for concept in others if concept.entry.cui not in cuis)
    # By an index that is not exact, a new one may have a higher sort key.
    capped = (concept._replace(order=min(concept.order, last)) for concept in new)
    return rank_concepts([*known, *capped], k=k)


def bound(cosines: np.ndarray) -> np.ndarray:
    """Return cosines in float64, between −1 and 1 whatever an index holds."""
    bounded: np.ndarray = np.nan_to_num(cosines.astype(np.float64), nan=-1.0)
    return bounded.clip(-1, 1)
