"""Mentions → ranked concepts: embed, search, read entries, rank."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..linking.broader import rank_parents
from ..linking.candidates import RankedEntry
from ..linking.features import POOL_ROWS
from ..linking.filters import Filter
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
from ..linking.options import LinkOptions
from ..linking.ranking import SCORE_DIGITS, has_text, order_entries, rank_concepts
from .filtering import FilterResult, choose_codes
from .fused_search import fuse
from .reranking import read_counts, rerank

if TYPE_CHECKING:
    from .knowledge_base import KnowledgeBase

FIRST_ROWS = 40  # rows searched for at first, for any k
MORE_ROWS = 4  # times as many are searched for if they have too few concepts
MAX_ROWS = 4096  # rows searched for at most, without a filter
BROADER_CANDIDATES = 10  # whose parents are considered
MENTIONS_AT_ONCE = 256  # searched together: limits memory, does not change results

Ranked = list[RankedEntry]


def link_mentions(
    kb: "KnowledgeBase",
    mentions: Sequence[str],
    *,
    labels: Sequence[str],
    documents: Sequence[int],
    options: LinkOptions,
) -> list[Linked]:
    """Link mentions to concepts; see `KnowledgeBase.link`."""
    if options.codes:
        kb.check_codes(options.codes)
    queries = make_queries(mentions, labels, options)
    most = max(options.k, BROADER_CANDIDATES) if options.broader else options.k
    results = search_mentions(kb, queries, replace(options, k=most))
    info = load_concept_info(kb, [*results.values()], options)
    # A calibration is for cosines, not for fused scores.
    calibrated = kb.manifest.calibration if options.fusion is None else None
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
            link_broader(kb, linked, results[query].ranked, info, query.filter)
            for query, linked in zip(queries, links, strict=True)
        ]
    return links


def search_mentions(
    kb: "KnowledgeBase", queries: Sequence[MentionQuery], options: LinkOptions
) -> dict[MentionQuery, SearchResult]:
    """Find the concepts of mentions; equal queries and cached ones cost nothing."""
    key = options.search_key()
    distinct = dict.fromkeys(queries)
    cached = kb.search_cache.get_many((query, key) for query in distinct)
    results = {query: result for (query, _), result in cached.items()}
    if new := [query for query in distinct if query not in results]:
        for english in (True, False):
            some = [q for q in new if q.filter.may_be_english == english]
            found = search_uncached(kb, some, options, variants=english)
            kb.search_cache.put_many({(q, key): result for q, result in found.items()})
            results.update(found)
    return results


def search_uncached(
    kb: "KnowledgeBase",
    queries: Sequence[MentionQuery],
    options: LinkOptions,
    *,
    variants: bool,
) -> dict[MentionQuery, SearchResult]:
    """Find the concepts of distinct mentions.

    variants (bool): See `KnowledgeBase.embed`.
    """
    results = {query: SearchResult([], "empty") for query in queries}
    texts = [text for text in dict.fromkeys(q.text for q in queries) if has_text(text)]
    if not texts:
        return results
    vectors, truncated, readable = kb.embed(texts, variants=variants)
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    place = {text: number for number, text in enumerate(texts)}
    by_filter: dict[Filter, list[int]] = {}
    for query in queries:
        number = place.get(query.text)
        if number is not None and readable[number]:
            results[query] = SearchResult([], "no_vector")
            if usable[number]:
                by_filter.setdefault(query.filter, []).append(number)
    threshold = options.threshold
    if threshold is None and kb.ranker is None:
        threshold = kb.manifest.threshold
    for filter, all_numbers in by_filter.items():
        for start in range(0, len(all_numbers), MENTIONS_AT_ONCE):
            numbers = all_numbers[start : start + MENTIONS_AT_ONCE]
            some = [texts[number] for number in numbers]
            searched = rank_mentions(kb, some, vectors[numbers], options, filter)
            below: list[int] = []
            for number, text, result in zip(numbers, some, searched, strict=True):
                note = TRUNCATED if truncated[number] else None
                if not is_linked(kb, result, threshold):
                    note = "below_threshold"
                    below.append(number)
                if options.fusion is not None:  # a probability is for cosines
                    result = result._replace(probability=None)
                results[MentionQuery(text, filter)] = result._replace(note=note)
            # Would the mention have a concept without the filter? That it has none in
            # the language of the document is no reason.
            wider = Filter(document_language=filter.document_language)
            if filter == wider or not below:
                continue
            some = [texts[number] for number in below]
            free = rank_mentions(kb, some, vectors[below], replace(options, k=1), wider)
            for text, found in zip(some, free, strict=True):
                if is_linked(kb, found, threshold):
                    query = MentionQuery(text, filter)
                    results[query] = results[query]._replace(note="filtered")
    return results


def is_linked(
    kb: "KnowledgeBase", found: SearchResult, threshold: float | None
) -> bool:
    """Return whether a mention is linked to the first concept that was found.

    threshold (float | None): The cosine that it must reach; None = the probability that
        a learned order demands, if there is one.
    """
    if not found.ranked:
        return False
    if threshold is not None:
        return round(found.ranked[0].score, SCORE_DIGITS) >= threshold
    return kb.ranker is None or (found.probability or 0) >= kb.ranker.threshold


def rank_mentions(
    kb: "KnowledgeBase",
    texts: Sequence[str],
    vectors: np.ndarray,
    options: LinkOptions,
    filter: Filter,
) -> list[SearchResult]:
    """Find the best concepts of mentions, in the learned order if there is one."""
    names: list[list[RankedEntry]] | None = None
    if kb.ranker is not None:
        names = [[] for _ in texts]
    ranked = rank_vectors(kb, texts, vectors, options, filter, names=names)
    if kb.manifest.taught is None:
        return [SearchResult(found, None) for found in ranked]
    counts = read_counts(kb.store, texts)
    if kb.ranker is None or names is None:
        pairs = zip(ranked, counts, strict=True)
        return [SearchResult(found, None, own) for found, own in pairs]
    ordered = rerank(kb, kb.ranker, texts, names, ranked, counts)
    return [
        SearchResult(rank_concepts(found, k=options.k), None, own, probability)
        for (found, probability), own in zip(ordered, counts, strict=True)
    ]


def rank_vectors(
    kb: "KnowledgeBase",
    texts: Sequence[str],
    vectors: np.ndarray,
    options: LinkOptions,
    filter: Filter,
    *,
    k: int | None = None,
    names: list[list[RankedEntry]] | None = None,
) -> list[Ranked]:
    """Find the k best concepts of each vector that a filter leaves.

    Several rows may belong to one concept, so more rows are searched for the vectors
    that still lack concepts. They only add concepts: which come first does not depend
    on k.

    kb (KnowledgeBase): The knowledge base.
    texts (Sequence[str]): The mentions, for the similarity of characters.
    vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
    options (LinkOptions): `k` and the fusion.
    filter (Filter): The filter.
    k (int | None): Number of concepts; None = that of the options.
    names (list[list[RankedEntry]] | None): Filled with the nearest names, the nearest
        first, without those that only the fusion finds. Shape: (n,).
    RETURNS (list[Ranked]): See `rank_concepts`.
    """
    k = k or options.k
    filtered = resolve(kb, filter)
    most = min(kb.rows, MAX_ROWS) if filtered is None else len(filtered.rows)
    results: list[Ranked] = [[] for _ in vectors]
    pending = np.arange(len(vectors))
    count = min(FIRST_ROWS if names is None else POOL_ROWS, most)
    while len(pending) and most:
        allowed = None if filtered is None else filtered.rows
        rows, scores = kb.search(vectors[pending], count, rows=allowed)
        complete = count >= most or (filtered is None and rows.shape[1] < count)
        near = rows, scores
        orders = scores
        if options.fusion is not None:
            some = [texts[int(number)] for number in pending]
            rows, scores, orders = fuse(
                kb, some, vectors[pending], near, filtered, options
            )
        entries = kb.entries(np.unique(rows[rows >= 0]))
        if filtered is not None:
            entries = filtered.filter_entries(entries)
        for place, number in enumerate(pending):
            if names is not None and not names[number]:
                own = near[0][place].tolist(), near[1][place].tolist()
                names[number] = list(order_entries(*own, entries))
            ranked = order_entries(
                rows[place].tolist(),
                scores[place].tolist(),
                entries,
                orders=orders[place].tolist(),
            )
            results[number] = add_concepts(results[number], ranked, k=k)
        if complete:
            break
        pending = np.array([i for i in pending if len(results[i]) < k], int)
        count = min(count * MORE_ROWS, most)
    return results


def resolve(kb: "KnowledgeBase", filter: Filter) -> "FilterResult | None":
    """Return what a filter leaves; None if it cannot leave out anything."""
    if not kb.foreign_origins(filter.document_language):
        filter = replace(filter, document_language="")
    return kb.resolve_filter(filter) if filter else None


def add_concepts(found: Ranked, ranked: Iterable[RankedEntry], *, k: int) -> Ranked:
    """Return the concepts found before, then others that a larger search found."""
    others = rank_concepts(ranked, k=k)
    if not found:
        return others
    known, last = {one.entry.cui for one in found}, found[-1].order
    new = (one for one in others if one.entry.cui not in known)
    # Fused, or by an index that is not exact, one may have a higher sort key.
    capped = (one._replace(order=min(one.order, last)) for one in new)
    return rank_concepts([*found, *capped], k=k)


def load_concept_info(
    kb: "KnowledgeBase",
    results: Sequence[SearchResult],
    options: LinkOptions,
) -> ConceptInfo:
    """Read the data of the concepts in search results, as far as options need it."""
    cuis = list({found.entry.cui: None for one in results for found in one.ranked})
    data = kb.concept_cache.get_many(cuis)
    if new := [cui for cui in cuis if cui not in data]:
        types, codes = kb.store.types(new), kb.store.codes(new)
        read = {cui: (types.get(cui, []), codes.get(cui, {})) for cui in new}
        kb.concept_cache.put_many(read)
        data.update(read)
    with_parents = options.broader or "coherence" in options.tie_evidence
    return ConceptInfo(
        types={cui: types for cui, (types, _) in data.items()},
        codes={cui: choose_codes(own, options.codes) for cui, (_, own) in data.items()},
        parents=kb.store.parents(cuis) if with_parents else {},
        sources=kb.store.origins("source") if options.source_rank else {},
    )


def link_broader(
    kb: "KnowledgeBase",
    linked: Linked,
    ranked: Ranked,
    info: ConceptInfo,
    filter: Filter,
) -> Linked:
    """Link a mention that is below the threshold to a parent of its candidates.

    ranked (Ranked): The candidates, of which `BROADER_CANDIDATES` count for any k.
    RETURNS (Linked): Unchanged if no candidate has a parent that is in the knowledge
        base and left by the filter.
    """
    if linked.note != "below_threshold":
        return linked
    scores = {
        found.entry.cui: round(found.score, SCORE_DIGITS)
        for found in ranked[:BROADER_CANDIDATES]
    }
    for parent in rank_parents(scores, info.parents):
        # The parent may be missing, or retired for another concept.
        concept = kb.concept(parent)
        if concept is None:
            continue
        filtered = resolve(kb, filter)
        if filtered is not None:
            entries = kb.store.entries_of(concept.cui)
            if not any(map(filtered.matches, entries)):
                continue
        return Linked(linked.candidates, BROADER, concept.cui)
    return linked
