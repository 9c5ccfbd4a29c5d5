"""Mentions → links: embed, find the nearest names, order concepts, say why not.

The result of a mention depends on the mention, the options and the version of the
knowledge base, and on nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..linking.broader import rank_parents
from ..linking.candidates import Entry, RankedEntry
from ..linking.features import POOL_ROWS, Provenance, pool_concepts
from ..linking.filters import Filter
from ..linking.fusion import fuse_scores
from ..linking.link import (
    BROADER,
    TRUNCATED,
    ConceptInfo,
    Linked,
    MentionQuery,
    SearchResult,
    link_results,
    make_queries,
)
from ..linking.name_variants import choose_variant, list_variants
from ..linking.options import DEFAULT_OPTIONS, LinkOptions, change_options
from ..linking.ranking import has_text, order_entries, rank_concepts
from ..linking.scores import round_score
from ..linking.surface_forms import name_form
from ..linking.taught_order import order_by_ranker
from ..system.cache import LruCache
from ..vocabularies.concepts import ANNOTATED
from .filters import (
    FilterResult,
    check_sources_of_codes,
    choose_codes,
    foreign_origins,
    resolve_filter,
)
from .indexes.layered import search_among
from .parts import Parts
from .store import Store, name_key

FIRST_ROWS = 40  # rows searched for at first, for any k
MORE_ROWS = 4  # times as many are searched for if they have too few concepts
MAX_ROWS = 4096  # rows searched for at most, without a filter
BROADER_CANDIDATES = 10  # whose parents are considered
MENTIONS_AT_ONCE = 256  # searched together: limits memory, does not change results
FILTER_CACHE = 16  # filters, or more if the options have more
SEARCH_CACHE = 5_000  # mentions, about 5 KB each
CONCEPT_CACHE = 20_000  # concepts, about 1 KB each
VOCABULARY_NAME = Provenance(vocabulary=True, annotated=False)
RELATIONS = ("parent", "child", "sibling")

Ranked = list[RankedEntry]


class EmbeddedTexts(NamedTuple):
    """Embedded texts.

    Attributes:
        vectors: Unit vectors in float32, zero for texts that the encoder cannot read.
            Shape: (n, width).
        truncated: Whether each text is longer than the maximum of the encoder.
            Shape: (n,).
        readable: Whether the encoder has a token of each text. Shape: (n,).
    """

    vectors: np.ndarray
    truncated: np.ndarray
    readable: np.ndarray


class Nearest(NamedTuple):
    """The rows nearest to some mentions, by cosine and with 3-grams.

    Attributes:
        rows: −1 = none. Shape: (n, m).
        cosines: Shape: (n, m).
        near: Rows and cosines by cosine alone. Shape: (n, up to m) each.
        orders: Sort keys. Shape: (n, m).
    """

    rows: np.ndarray
    cosines: np.ndarray
    near: tuple[np.ndarray, np.ndarray]
    orders: np.ndarray


class RelatedConcept(NamedTuple):
    """A concept near another one.

    Attributes:
        cui: Its id.
        name: Its preferred name.
        score: The highest cosine of a name of the one and a name of the other, −1 to 1.
        relation: The first of `RELATIONS` that holds; siblings share a parent.
    """

    cui: str
    name: str
    score: float
    relation: str | None


class MentionSearch:
    """Finds the concepts of mentions, and caches what it found.

    Args:
        store: The concepts and names.
        parts: Encoder, index, 3-grams and learned order.
    """

    def __init__(self, store: Store, parts: Parts) -> None:
        self.store = store
        self.parts = parts
        self.manifest = parts.manifest
        self.results: LruCache[Any, SearchResult] = LruCache(SEARCH_CACHE)
        self.concepts: LruCache[str, Any] = LruCache(CONCEPT_CACHE)
        self.filters: LruCache[Filter, FilterResult] = LruCache(FILTER_CACHE)
        self.foreign_origins = cache(lambda lang: foreign_origins(store, lang))
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
        most = max(options.k, BROADER_CANDIDATES) if options.broader else options.k
        wider = options if most == options.k else change_options(options, {"k": most})
        results = self.find(queries, wider)
        info = self.load_info(results.values(), options)
        # A calibration is for cosines, not for fused scores.
        calibrated = self.manifest.calibration if options.fusion is None else None
        links = link_results(
            queries,
            results,
            info,
            options,
            labels=labels,
            documents=documents,
            logistic=calibrated.logistic if calibrated else None,
        )
        if options.broader:
            links = [
                self.link_broader(linked, results[query].ranked, info, query.filter)
                for query, linked in zip(queries, links, strict=True)
            ]
        return links

    # Embed

    def embed(self, texts: Sequence[str], *, variants: bool = False) -> EmbeddedTexts:
        """Embed texts; see `KnowledgeBase.embed`."""
        encoder = self.parts.encoder
        token_ids, truncated = encoder.tokenize(texts)
        keys = [name_key(ids) for ids in token_ids]
        names = self.store.rows_of_keys(keys)
        # Texts with the same token ids can have different variants.
        rows: dict[Any, int] = {
            text: names[key]
            for key, text in zip(keys, texts, strict=True)
            if key in names
        }
        if variants:
            rows.update(self.find_variants([t for t in texts if t not in rows]))
        used = [
            text if text in rows else key for key, text in zip(keys, texts, strict=True)
        ]
        new = {
            key: ids
            for key, ids in zip(used, token_ids, strict=True)
            if key not in rows
        }
        place = {key: number for number, key in enumerate([*rows, *new])}
        vectors = encoder.encode([*new.values()])
        if rows:
            known = self.vectors(np.fromiter(rows.values(), dtype=np.int64))
            vectors = np.concatenate([known, vectors])
        return EmbeddedTexts(
            vectors[[place[key] for key in used]],
            np.array(truncated, dtype=bool),
            np.array([bool(ids) for ids in token_ids], dtype=bool),
        )

    def find_variants(self, texts: Sequence[str]) -> dict[str, int]:
        """Return the row of the English name that is a variant of each text, if any."""
        variants = {text: list_variants(name_form(text)) for text in texts}
        forms = chain.from_iterable(variants.values())
        names = self.store.names(forms, without=self.foreign_origins("en"))
        rows = {text: choose_variant(v, names) for text, v in variants.items()}
        return {text: row for text, row in rows.items() if row is not None}

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows, float32. Shape: (n,) → (n, width)."""
        return self.parts.index.vectors(rows)

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
            for english in (True, False):
                some = [q for q in new if q.filter.may_be_english == english]
                found = self.find_new(some, options, variants=english)
                self.results.put_many({(q, key): r for q, r in found.items()})
                results.update(found)
        return results

    def find_new(
        self, queries: Sequence[MentionQuery], options: LinkOptions, *, variants: bool
    ) -> dict[MentionQuery, SearchResult]:
        """Find the concepts of distinct mentions; `variants`: see `embed`."""
        results = {query: SearchResult([], "empty") for query in queries}
        texts = [t for t in dict.fromkeys(q.text for q in queries) if has_text(t)]
        if not texts:
            return results
        vectors, truncated, readable = self.embed(texts, variants=variants)
        usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        place = {text: number for number, text in enumerate(texts)}
        by_filter: dict[Filter, list[int]] = {}
        for query in queries:
            number = place.get(query.text)
            if number is not None and readable[number]:
                results[query] = SearchResult([], "no_vector")
                if usable[number]:
                    by_filter.setdefault(query.filter, []).append(number)
        for filter, numbers in by_filter.items():
            for start in range(0, len(numbers), MENTIONS_AT_ONCE):
                batch = np.array(numbers[start : start + MENTIONS_AT_ONCE])
                some = [texts[number] for number in batch]
                found = self.note(some, vectors[batch], filter, options)
                for text, long, result in zip(
                    some, truncated[batch], found, strict=True
                ):
                    if long and result.note is None:
                        result = result._replace(note=TRUNCATED)
                    results[MentionQuery(text, filter)] = result
        return results

    def note(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        filter: Filter,
        options: LinkOptions,
    ) -> list[SearchResult]:
        """Find the concepts of mentions, and why some are not linked.

        "filtered" = without the filter, the mention would be linked.
        """
        found = self.order(texts, vectors, filter, options)
        below = [n for n, result in enumerate(found) if not self.links(result, options)]
        notes: dict[int, str] = dict.fromkeys(below, "below_threshold")
        # That a mention has no concept in the language of the document is no reason.
        wider = Filter(document_language=filter.document_language)
        if below and filter != wider:
            some = [texts[number] for number in below]
            free = self.order(some, vectors[below], wider, options, k=1)
            for number, result in zip(below, free, strict=True):
                if self.links(result, options):
                    notes[number] = "filtered"
        if options.fusion is not None:  # a probability is for cosines
            found = [result._replace(probability=None) for result in found]
        return [
            result._replace(note=notes.get(number))
            for number, result in enumerate(found)
        ]

    def links(self, result: SearchResult, options: LinkOptions) -> bool:
        """Return whether a mention is linked to the first concept that was found.

        Its cosine reaches the threshold or, with a learned order and no threshold in
        the options, its probability reaches that of the order.
        """
        if not result.ranked:
            return False
        ranker, threshold = self.parts.ranker, options.threshold
        if threshold is None and ranker is not None:
            return (result.probability or 0) >= ranker.threshold
        if threshold is None:
            threshold = self.manifest.threshold
        return threshold is None or round_score(result.ranked[0].score) >= threshold

    # Order

    def order(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        filter: Filter,
        options: LinkOptions,
        *,
        k: int | None = None,
    ) -> list[SearchResult]:
        """Find the best concepts of mentions, in the learned order if there is one."""
        k = k or options.k
        ranked, names = self.rank(texts, vectors, filter, options, k=k)
        if self.manifest.taught is None:
            return [SearchResult(found, None) for found in ranked]
        forms = [name_form(text) for text in texts]
        known = self.store.annotated(forms)
        counts: list[Mapping[str, int]] = [known.get(form, {}) for form in forms]
        ranker = self.parts.ranker
        if ranker is None:
            pairs = zip(ranked, counts, strict=True)
            return [SearchResult(found, None, count) for found, count in pairs]
        pools = [pool_concepts(found, self.find_provenance) for found in names]
        cuis = {found.entry.cui for pool, _ in pools for found in pool}
        concept_counts = self.store.annotated_concepts(cuis)
        results: list[SearchResult] = []
        for text, (pool, near), others, count in zip(
            texts, pools, ranked, counts, strict=True
        ):
            found, probability = order_by_ranker(
                ranker, text, pool, near, others, count, concept_counts
            )
            best = rank_concepts(found, k=k)
            results.append(SearchResult(best, None, count, probability))
        return results

    def find_provenance(self, entry: Entry) -> Provenance:
        """Return whether a name is of the vocabulary, or an annotated mention."""
        return self.provenance.get(entry.origin, VOCABULARY_NAME)

    def rank(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        filter: Filter,
        options: LinkOptions,
        *,
        k: int | None = None,
    ) -> tuple[list[Ranked], list[Ranked]]:
        """Find the k best concepts of each vector that a filter leaves.

        Several rows may belong to one concept, so more rows are searched for the
        vectors that still lack concepts. They only add concepts: which come first does
        not depend on k.

        Args:
            texts: The mentions, for the similarity of characters.
            vectors: Unit vectors in float32. Shape: (n, width).
            filter: The filter.
            options: `k` and the fusion.
            k: Number of concepts; None = that of the options.

        Returns:
            The concepts of each mention, see `rank_concepts`; and, for a learned order,
            its names by cosine.
        """
        k = k or options.k
        filtered = self.resolve(filter)
        total = self.store.total_rows
        most = min(total, MAX_ROWS) if filtered is None else len(filtered.rows)
        results: list[Ranked] = [[] for _ in vectors]
        names: list[Ranked] = [[] for _ in vectors]
        learned = self.parts.ranker is not None
        pending = np.arange(len(vectors))
        count = min(POOL_ROWS if learned else FIRST_ROWS, most)
        first = True
        while len(pending) and most:
            some = [texts[int(number)] for number in pending]
            nearest = self.nearest(some, vectors[pending], count, filtered, options)
            entries = self.store.entries(np.unique(nearest.rows[nearest.rows >= 0]))
            if filtered is not None:
                entries = filtered.filter_entries(entries)
            for place, number in enumerate(pending):
                if first and learned:
                    rows, cosines = (values[place].tolist() for values in nearest.near)
                    names[number] = list(order_entries(rows, cosines, entries))
                ranked = order_entries(
                    nearest.rows[place].tolist(),
                    nearest.cosines[place].tolist(),
                    entries,
                    orders=nearest.orders[place].tolist(),
                )
                results[number] = add_concepts(results[number], ranked, k=k)
            if count >= most:
                break
            first = False
            pending = np.array([n for n in pending if len(results[n]) < k], int)
            count = min(count * MORE_ROWS, most)
        return results, names

    # Nearest

    def nearest(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        count: int,
        filtered: FilterResult | None,
        options: LinkOptions,
    ) -> Nearest:
        """Find the nearest rows, with those that share most 3-grams if options say so.

        Args:
            texts: The mentions.
            vectors: Their unit vectors in float32. Shape: (n, width).
            count: Maximum of rows by cosine, and by 3-grams.
            filtered: The rows to search; None = all.
            options: The fusion.
        """
        rows, cosines = self.search(
            vectors, count, None if filtered is None else filtered.rows
        )
        if options.fusion is None:
            return Nearest(rows, cosines, (rows, cosines), cosines)
        allowed = None if filtered is None else filtered.mask(self.store.total_rows)
        united = self.add_ngram_rows(texts, vectors, (rows, cosines), allowed)
        size = max((len(found) for found, _, _ in united), default=0)
        all_rows = np.full((len(texts), size), -1, dtype=np.int64)
        all_cosines = np.zeros((len(texts), size), dtype=np.float32)
        orders = np.zeros((len(texts), size))
        for number, (found, scores, similarities) in enumerate(united):
            all_rows[number, : len(found)] = found
            all_cosines[number, : len(found)] = scores
            orders[number, : len(found)] = fuse_scores(
                scores,
                similarities,
                fusion=options.fusion,
                weight=options.ngram_weight,
            )
        return Nearest(all_rows, all_cosines, (rows, cosines), orders)

    def search(
        self, vectors: np.ndarray, k: int, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows; see `KnowledgeBase.search`."""
        index = self.parts.index
        if rows is None:
            return index.search(vectors, k)
        return search_among(index, vectors, k, rows, total=self.store.total_rows)

    def add_ngram_rows(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        found: tuple[np.ndarray, np.ndarray],
        allowed: np.ndarray | None,
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Search by 3-grams, and compute both scores of what either search found.

        Args:
            found: Rows (−1 = none) and cosines of the index. Shape: (n, m) each.
            allowed: Mask of the rows that 3-grams may add; None = all. Shape: (rows,).

        Returns:
            For each mention rows, ascending, cosines and similarities, (r,) each.
        """
        ngrams = self.parts.ngrams
        by_ngrams, _ = ngrams.search(texts, found[0].shape[1], allowed=allowed)
        united: list[np.ndarray] = []
        cosines: list[np.ndarray] = []
        for near, scores, more in zip(*found, by_ngrams, strict=True):
            rows = np.union1d(near[near >= 0], more[more >= 0]).astype(np.int64)
            known = np.full(len(rows), np.nan, dtype=np.float32)
            known[np.searchsorted(rows, near[near >= 0])] = scores[near >= 0]
            united.append(rows)
            cosines.append(known)
        missing = [rows[np.isnan(c)] for rows, c in zip(united, cosines, strict=True)]
        every = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *missing]))
        if len(every):
            row_vectors = self.vectors(every)
            for vector, rows, known in zip(vectors, missing, cosines, strict=True):
                places = np.searchsorted(every, rows)
                known[np.isnan(known)] = row_vectors[places] @ vector
        similarities = ngrams.similarity(texts, united)
        return list(zip(united, cosines, similarities, strict=True))

    def resolve(self, filter: Filter) -> FilterResult | None:
        """Return what a filter leaves; None if it cannot leave out anything."""
        if not self.foreign_origins(filter.document_language):
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
        with_parents = options.broader or "coherence" in options.tie_evidence
        return ConceptInfo(
            types={cui: types for cui, (types, _) in data.items()},
            codes={c: choose_codes(own, options.codes) for c, (_, own) in data.items()},
            parents=self.store.parents(cuis) if with_parents else {},
            sources=self.store.origins("source") if options.source_rank else {},
        )

    def link_broader(
        self, linked: Linked, ranked: Ranked, info: ConceptInfo, filter: Filter
    ) -> Linked:
        """Link a mention that is below the threshold to a parent of its candidates.

        Args:
            ranked: The candidates, of which `BROADER_CANDIDATES` count for any k.

        Returns:
            The link, unchanged if no candidate has a parent that is in the knowledge
            base and left by the filter.
        """
        if linked.note != "below_threshold":
            return linked
        candidates = ranked[:BROADER_CANDIDATES]
        scores = {found.entry.cui: round_score(found.score) for found in candidates}
        for parent in rank_parents(scores, info.parents):
            # The parent may be missing, or retired for another concept.
            concept = self.store.concept(parent)
            if concept is None:
                continue
            filtered = self.resolve(filter)
            if filtered is not None:
                entries = self.store.entries_of(concept.cui)
                if not any(map(filtered.matches, entries)):
                    continue
            return Linked(linked.candidates, BROADER, concept.cui)
        return linked

    def related(self, cui: str, *, k: int) -> list[RelatedConcept]:
        """Find the concepts nearest to a concept; see `KnowledgeBase.related`."""
        rows = sorted({entry.row for entry in self.store.entries_of(cui)})
        if not rows:
            return []
        vectors = self.vectors(np.array(rows, dtype=np.int64))
        # One more than k, since each name is nearest to its own concept.
        texts = [""] * len(rows)
        found, _ = self.rank(texts, vectors, Filter(), DEFAULT_OPTIONS, k=k + 1)
        nearest: dict[str, RankedEntry] = {}
        for near in chain.from_iterable(found):
            best = nearest.get(near.entry.cui)
            if best is None or near.score > best.score:
                nearest[near.entry.cui] = near
        nearest.pop(cui, None)
        scores = {other: round_score(near.score) for other, near in nearest.items()}
        cuis = sorted(nearest, key=lambda other: (-scores[other], other))[:k]
        relations = self.relate(cui, cuis)
        return [
            RelatedConcept(other, nearest[other].entry.name, scores[other], relation)
            for other, relation in zip(cuis, relations, strict=True)
        ]

    def relate(self, cui: str, others: Sequence[str]) -> list[str | None]:
        """Return the relation of each of the other concepts to a concept."""
        parents = self.store.parents([cui, *others])
        own = {*parents.get(cui, ())}
        relations: list[str | None] = []
        for other in others:
            theirs = {*parents.get(other, ())}
            holds = (other in own, cui in theirs, not own.isdisjoint(theirs))
            names = (name for name, does in zip(RELATIONS, holds, strict=True) if does)
            relations.append(next(names, None))
        return relations


def add_concepts(known: Ranked, ranked: Iterable[RankedEntry], *, k: int) -> Ranked:
    """Return the concepts found before, then others that a larger search found."""
    others = rank_concepts(ranked, k=k)
    if not known:
        return others
    cuis, last = {found.entry.cui for found in known}, known[-1].order
    new = (found for found in others if found.entry.cui not in cuis)
    # Fused, or by an index that is not exact, one may have a higher sort key.
    capped = (found._replace(order=min(found.order, last)) for found in new)
    return rank_concepts([*known, *capped], k=k)
