"""Mentions → links, one stage after the other: the page to read first.

    text      mentions without signs around them               linking.text
    embed     their vectors                                    .embedding
    nearest   the names that they are, and those near them     .naming, .nearest
    veto      numerals, opposites and letters that disagree    .agreement
    order     by cosine, or as learned; a probability          .ordering
    decide    one threshold, one reason for no concept         .decision
    links     ties broken by evidence, candidates written      linking.link

The result of a mention depends on the mention, the options and the version of the
knowledge base, and on nothing else.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..io.cache import LruCache
from ..linking.filters import Filter
from ..linking.link import (
    TRUNCATED,
    ConceptInfo,
    Linked,
    MentionQuery,
    SearchResult,
    link_results,
    make_queries,
)
from ..linking.options import LinkOptions
from ..linking.ranking import has_text
from ..linking.text import read_mention
from .agreement import Agreement
from .decision import choose_threshold, decide
from .embedding import embed_texts
from .filters import check_sources_of_codes, choose_codes
from .naming import NameFinder
from .nearest import FILTER_CACHE, Mentions, Nearest
from .ordering import Ordering
from .parts import Parts
from .store import Store

MENTIONS_AT_ONCE = 256  # searched together: limits memory, does not change results
SEARCH_CACHE = 5_000  # mentions, about 5 KB each
CONCEPT_CACHE = 20_000  # concepts, about 1 KB each


class MentionSearch:
    """Finds the concepts of mentions, and caches what it found."""

    def __init__(self, store: Store, parts: Parts) -> None:
        self.store = store
        self.parts = parts
        self.results: LruCache[Any, SearchResult] = LruCache(SEARCH_CACHE)
        self.concepts: LruCache[str, Any] = LruCache(CONCEPT_CACHE)
        self.names = NameFinder(store)
        self.nearest = Nearest(store, parts, self.names)
        self.agreement = Agreement(store, parts)
        self.ordering = Ordering(store, parts, self.nearest, self.agreement)
        self.check_codes = cache(lambda codes: check_sources_of_codes(store, codes))

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
        self.nearest.filters.size = max(FILTER_CACHE, 2 * len(options.label_types))
        queries = make_queries(mentions, labels, options)
        results = self.find(queries, options)
        info = self.load_info(results.values(), options)
        calibrated, logistic = self.parts.manifest.calibration, None
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
                mentions = self.nearest.name(
                    [read[n] for n in batch], embedded.vectors[batch], filter
                )
                # A name may have signs that the encoder cannot read in the mention.
                findable = mentions.named | embedded.usable[batch]
                kept = np.flatnonzero(findable).tolist()
                noted = self.decide_mentions(mentions.take(kept), filter, options)
                for place, result in zip(kept, noted, strict=True):
                    number = batch[place]
                    if embedded.truncated[number] and result.note is None:
                        result = result._replace(note=TRUNCATED)
                    results.update(dict.fromkeys(some[number], result))
        return results

    def decide_mentions(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Order the concepts of mentions, and note why some are not linked.

        "filtered" = without the filter, the mention would be linked, or it is a name of
        concepts that the filter excludes.
        """
        threshold = choose_threshold(self.parts.manifest, options)
        results = self.ordering.order(mentions, filter, options)
        notes = [
            decide(result, threshold, barred=barred)
            for result, barred in zip(results, mentions.barred.tolist(), strict=True)
        ]
        # That a mention has no concept in the language of the document is no reason.
        wider = Filter(document_language=filter.document_language)
        below = [n for n, note in enumerate(notes) if note not in (None, "filtered")]
        if below and filter != wider:
            free = self.ordering.order(mentions.take(below), wider, options)
            for number, result in zip(below, free, strict=True):
                if decide(result, threshold) is None:
                    notes[number] = "filtered"
        return [
            result._replace(note=note)
            for result, note in zip(results, notes, strict=True)
        ]

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
