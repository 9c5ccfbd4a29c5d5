"""Mentions → links, one stage after the other: the page to read first.

text      mentions without signs around them               linking.text
embed     their vectors                                    .parts
nearest   the names that they are, and those near them     .naming, .nearest
compare   how they differ from names near them, the veto   .agreement, .contradiction
order     by cosine, or as learned; a probability          here
decide    what people decided, else one probability        here
links     ties broken by evidence, candidates written      linking.link
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache, partial
from sys import intern
from typing import Any

import numpy as np

from ..io.cache import LruCache
from ..io.short_work import pause_collection, use_one_thread
from ..linking.candidates import SORT_DIGITS, Entry, RankedEntry, round_score
from ..linking.certainty import DECIDED
from ..linking.decisions import Decision, find_decision, list_keys
from ..linking.features import (
    Pool,
    Provenance,
    Surroundings,
    all_excluded,
    pool_concepts,
)
from ..linking.filters import Filter
from ..linking.groups import Groups
from ..linking.link import (
    EXCLUDED,
    TRUNCATED,
    ConceptInfo,
    Limits,
    Linked,
    MentionQuery,
    SearchResult,
    link_results,
    make_queries,
)
from ..linking.options import LinkOptions
from ..linking.ranker import Ranker
from ..linking.ranking import has_text, rank_concepts
from ..linking.text import is_abbreviation, is_acronym, name_form, read_mention
from ..vocabularies.concepts import ANNOTATED
from .agreement import WordTable
from .contradiction import (
    ANOTHER_NUMBER,
    adds_number,
    find_contradiction,
    highest_probability,
)
from .filters import NamedValues, check_named, choose_codes
from .folder.records import Manifest
from .naming import NameFinder
from .nearest import FoundRows, Mentions, Nearest, bound
from .parts import EmbeddedTexts, Parts, embed_in_parts
from .store import make_entry

LEAST_PROBABILITY = 0.05  # of a first concept that is compared once more
LONGEST_BESIDE = 200  # letters of a mention that is compared beside others
NO_SCORES = (list[float](), 0.0, False)
SEARCH_CACHE = 5_000  # mentions, about 4 KB each
CHECKS_KEPT = 64  # of options
CONCEPT_CACHE = 20_000  # concepts, about 1 KB each
VOCABULARY_NAME = Provenance(vocabulary=True, annotated=False)


class MentionSearch:
    """Finds the concepts of mentions, and caches what it found.

    A result depends on mention, options and version of the knowledge base alone.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.store = parts.store
        self.results: LruCache[Any, SearchResult] = LruCache(SEARCH_CACHE)
        self.concepts: LruCache[str, Any] = LruCache(CONCEPT_CACHE)
        self.names = NameFinder(parts.store)
        self.nearest = Nearest(parts, self.names)
        self.check_named = lru_cache(CHECKS_KEPT)(partial(check_named, parts.store))
        self.provenance = {
            number: Provenance(vocabulary=values != [ANNOTATED], annotated=True)
            for number, values in parts.store.origins("source").items()
            if ANNOTATED in values
        }

    def link(
        self,
        mentions: Sequence[str],
        labels: Sequence[str],
        documents: Sequence[int],
        options: LinkOptions,
    ) -> list[Linked]:
        self.check(options)
        queries = make_queries(mentions, labels, options)
        with pause_collection():
            results = self.find(queries, options)
            limits = choose_limits(self.parts.manifest, options)
            return link_results(
                queries,
                results,
                self.load_info(results.values(), options),
                options,
                labels=labels,
                documents=documents,
                limits=limits,
            )

    def check(self, options: LinkOptions) -> None:
        """Raise an error if there are no types, sources, … that options name.

        Whichever mention comes first, and whether they count for it.
        """
        self.check_named(NamedValues.of(options))
        self.nearest.resolve(options.filter)

    @property
    def agreement(self) -> WordTable:
        return self.parts.words

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
        results = {query: SearchResult([], "empty") for query in queries}
        texts = {q.text: read_mention(q.text) for q in queries if has_text(q.text)}
        if not texts:
            return results
        by_filter: dict[Filter, dict[str, list[MentionQuery]]] = {}
        for query in queries:
            if query.text in texts:
                of_filter = by_filter.setdefault(query.filter, {})
                of_filter.setdefault(texts[query.text], []).append(query)
        every = {
            filter: self.nearest.find_rows([*of_filter], filter)
            for filter, of_filter in by_filter.items()
        }
        places = {f: {t: n for n, t in enumerate(every[f].texts)} for f in every}
        # The vector of a name is that of its row.
        unnamed = {
            text
            for found in every.values()
            for text, row in zip(found.texts, found.rows.tolist(), strict=True)
            if row < 0
        }
        distinct = [*dict.fromkeys(texts.values())]
        with closing(embed_in_parts(self.parts, distinct, needed=unnamed)) as embedded:
            for numbers, vectors in embedded:
                part = [distinct[number] for number in numbers]
                for filter, found in every.items():
                    here = [n for n, text in enumerate(part) if text in places[filter]]
                    some = found.take([places[filter][part[n]] for n in here])
                    batch = self.find_batch(some, vectors.take(here), filter, options)
                    with use_one_thread():
                        searched = dict(zip(some.texts, batch, strict=True))
                    for text, result in searched.items():
                        results.update(dict.fromkeys(by_filter[filter][text], result))
        return results

    def find_batch(
        self,
        found: FoundRows,
        embedded: EmbeddedTexts,
        filter: Filter,
        options: LinkOptions,
    ) -> Iterator[SearchResult]:
        mentions = self.nearest.set_vectors(found, embedded.vectors)
        # A name may have signs that the encoder cannot read in the mention.
        findable = mentions.named | embedded.usable
        searched = mentions.take(np.flatnonzero(findable).tolist())
        decided = iter(self.decide_mentions(searched, filter, options))
        for number, is_findable in enumerate(findable.tolist()):
            if not is_findable:
                note = "no_vector" if embedded.readable[number] else "empty"
                yield SearchResult([], note)
                continue
            result = next(decided)
            if embedded.truncated[number] and result.note is None:
                result = result._replace(note=TRUNCATED)
            yield result

    def decide_mentions(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Order the concepts of mentions, and note why some are not linked.

        "filtered" = linked without the filter, or a name of concepts that it excludes.
        """
        limits = choose_limits(self.parts.manifest, options)
        results = self.follow_decisions(mentions, filter, options)
        notes = [
            decide(result, limits, barred=barred)
            for result, barred in zip(results, mentions.barred.tolist(), strict=True)
        ]
        # That a mention has no concept in the language of the document is no reason.
        wider = Filter(document_language=filter.document_language)
        final = (None, "filtered", DECIDED)
        below = [number for number, note in enumerate(notes) if note not in final]
        if below and filter != wider:
            free = self.follow_decisions(mentions.take(below), wider, options)
            for number, result in zip(below, free, strict=True):
                if decide(result, limits) is None:
                    notes[number] = "filtered"
        return [
            result._replace(note=note, ranked=share_texts(result.ranked))
            for result, note in zip(results, notes, strict=True)
        ]

    def follow_decisions(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the best concepts of mentions, that which people decided on first.

        If the filter leaves no name of it, the mention means something else here.
        """
        results = self.order(mentions, filter, options)
        for number, decision in enumerate(self.find_decisions(mentions.texts)):
            if decision is None:
                continue
            ranked = results[number].ranked
            if decision.cui:
                vector = mentions.vectors[number]
                first = self.find_best(ranked, decision.cui, vector, filter)
                if first is None:
                    continue
                others = [one for one in ranked if one.entry.cui != decision.cui]
                # before all others, so that it ties with none
                key = max((one.key for one in others), default=0.0) + 1
                ranked = [first._replace(key=key), *others]
            results[number] = results[number]._replace(
                ranked=ranked,
                probability=decision.probability,
                excluded=False,
                decision=decision,
            )
        return results

    def find_best(
        self,
        ranked: Sequence[RankedEntry],
        cui: str,
        vector: np.ndarray,
        filter: Filter,
    ) -> RankedEntry | None:
        """Return the name of a concept nearest to a vector; None = no name is left.

        The concept may not be among those found: mentions need not be names.
        """
        for found in ranked:
            if found.entry.cui == cui:
                return found
        left = self.nearest.resolve(filter)
        names = [
            entry
            for entry in self.store.entries_of(cui)
            if left is None or left.matches(entry)
        ]
        if not names:
            return None
        rows = np.array([entry.row for entry in names], dtype=np.int64)
        cosines = bound(self.parts.index.vectors(rows) @ vector).round(SORT_DIGITS)
        pairs = zip(cosines.tolist(), names, strict=True)
        # as `sort_entries` does
        score, best = min(
            pairs, key=lambda pair: (-pair[0], not pair[1].preferred, pair[1].alias)
        )
        return RankedEntry(score, best, score)

    def find_decisions(self, texts: Sequence[str]) -> list[Decision | None]:
        """Return what people decided for each mention."""
        if self.parts.manifest.taught is None:
            return [None for _ in texts]
        votes = self.store.votes(key for text in texts for key in list_keys(text))
        return [find_decision(text, votes) for text in texts]

    def order(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the best concepts of mentions, in the learned order if there is one.

        An order that was learned from names is not for mentions that are names.
        """
        ranker = self.parts.ranker
        compared = ~mentions.named
        if ranker is not None and ranker.taught is not None:
            compared[:] = True
        results: dict[int, SearchResult] = {}
        for chosen, order in (
            (~compared, self.order_names),
            (compared, self.order_others),
        ):
            numbers = np.flatnonzero(chosen).tolist()
            if numbers:
                ordered = order(mentions.take(numbers), filter, options)
                results.update(zip(numbers, ordered, strict=True))
        return [results[number] for number in range(len(compared))]

    def order_names(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> Iterator[SearchResult]:
        """Order the concepts of mentions that are names, by cosine."""
        counts = self.count_annotations(mentions.texts)
        ranked = self.nearest.rank(mentions.vectors, filter, k=options.k)
        for number, concepts in enumerate(ranked):
            text = mentions.texts[number]
            short = is_abbreviation(text) or is_acronym(text)
            probability = self.parts.chance.of_name(short=short)
            equal = mentions.equal[number]
            yield SearchResult(concepts, None, counts[number], probability, equal=equal)

    def order_others(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> Iterator[SearchResult]:
        """Compare mentions with the concepts near them, and order these."""
        texts, counts = mentions.texts, self.count_annotations(mentions.texts)
        found = self.nearest.find_names(mentions, filter)
        pools = [pool_concepts(names, self.find_provenance) for names in found]
        more = [n for n, pool in enumerate(pools) if len(pool.near) < options.k]
        others = self.nearest.rank(mentions.vectors[more], filter, k=options.k)
        ranked: dict[int, list[RankedEntry]] = dict(zip(more, others, strict=True))
        near = [number for number, pool in enumerate(pools) if pool.near]
        around = self.nearest.surround(mentions.vectors)
        scored = self.score(mentions, near, pools, counts, around, filter)
        for number, pool in enumerate(pools):
            scores, probability, excluded = scored.get(number, NO_SCORES)
            ordered = order_pool(pool, scores, ranked.get(number, ()))
            best = rank_concepts(ordered, k=options.k)
            if probability >= LEAST_PROBABILITY and not mentions.named[number]:
                most, excluded = self.find_most(texts[number], best[0], filter)
                probability = min(probability, most)
            equal = mentions.equal[number]
            yield SearchResult(best, None, counts[number], probability, excluded, equal)

    def score(
        self,
        mentions: Mentions,
        numbers: Sequence[int],
        pools: Sequence[Pool],
        counts: Sequence[Mapping[str, int]],
        around: Sequence[Surroundings],
        filter: Filter,
    ) -> dict[int, tuple[list[float], float, bool]]:
        """Score the concepts near some mentions, by the numbers of these.

        Also returns the probability that the first is right, and whether all of them
        are excluded.
        """
        parts, taught = self.parts, self.parts.manifest.taught is not None
        cuis = {cui for number in numbers for cui in pools[number].near}
        totals = self.store.annotated_concepts(cuis) if taught else {}
        scored: dict[int, tuple[list[float], float, bool]] = {}
        for some in split_by_length(numbers, mentions.texts):
            features = self.agreement.features(
                [mentions.texts[number] for number in some],
                [pools[number] for number in some],
                filter,
                around=[around[number] for number in some],
                counts=[counts[number] for number in some] if taught else None,
                concept_counts=totals,
            )
            groups = Groups([len(pools[number].near) for number in some])
            scores = (parts.ranker or Ranker()).scores(features, groups)
            named = mentions.named[some]
            chances = parts.chance.probabilities(features, scores, groups, named)
            excluded = all_excluded(features, groups)
            values = zip(groups.split(scores), chances, excluded, strict=True)
            scored.update(zip(some, values, strict=True))
        return scored

    def find_most(
        self, text: str, first: RankedEntry, filter: Filter
    ) -> tuple[float, bool]:
        """Return the highest probability of a concept, and whether it is another thing.

        A mention contradicts that it means it, or has a number or letter more.
        """
        table, concept = self.agreement, first.entry.concept
        change = find_contradiction(table, text, concept, filter)
        if change is not None:
            return highest_probability(change), True
        adds = adds_number(table, text, concept, filter)
        return ANOTHER_NUMBER if adds else 1.0, False

    def count_annotations(self, texts: Sequence[str]) -> list[Mapping[str, int]]:
        """Return how often each mention was annotated with each concept."""
        if self.parts.manifest.taught is None:
            return [{} for _ in texts]
        forms = [name_form(text) for text in texts]
        known = self.store.annotated(forms)
        return [known.get(form, {}) for form in forms]

    def find_provenance(self, entry: Entry) -> Provenance:
        """Return whether a name is of the vocabulary, or an annotated mention."""
        return self.provenance.get(entry.origin, VOCABULARY_NAME)

    def load_info(
        self, results: Iterable[SearchResult], options: LinkOptions
    ) -> ConceptInfo:
        """Read the data of the concepts in results, as far as options need it."""
        found = {r.entry.cui: r.entry.concept for one in results for r in one.ranked}
        data = self.concepts.get_many(found)
        if new := {number: cui for cui, number in found.items() if cui not in data}:
            types, codes = self.store.types_of(new), self.store.codes_of(new)
            read = {
                cui: (types.get(number, []), codes.get(number, {}))
                for number, cui in new.items()
            }
            self.concepts.put_many(read)
            data.update(read)
        with_parents = "coherence" in options.tie_evidence
        return ConceptInfo(
            types={cui: types for cui, (types, _) in data.items()},
            codes={
                cui: choose_codes(codes, options.codes)
                for cui, (_, codes) in data.items()
            },
            parents=self.store.parents(found) if with_parents else {},
            sources=self.store.origins("source") if options.source_rank else {},
        )


def share_texts(ranked: Iterable[RankedEntry]) -> list[RankedEntry]:
    """Return candidates whose texts equal ones share: many results are kept."""
    return [
        RankedEntry(
            score,
            make_entry((row, intern(cui), intern(name), intern(alias), *rest)),
            key,
        )
        for score, (row, cui, name, alias, *rest), key in ranked
    ]


def split_by_length(
    numbers: Sequence[int], texts: Sequence[str]
) -> Iterator[list[int]]:
    """Yield the numbers of texts that are compared together; a long one is alone.

    The tables have as many columns as the text with the most words.
    """
    short = [number for number in numbers if len(texts[number]) <= LONGEST_BESIDE]
    if short:
        yield short
    for number in numbers:
        if len(texts[number]) > LONGEST_BESIDE:
            yield [number]


def order_pool(
    pool: Pool, scores: Sequence[float], others: Iterable[RankedEntry]
) -> Iterator[RankedEntry]:
    """Yield the concepts of a pool by their scores, then others in their order.

    A score is the sort key. Of an empty pool, there are no others.
    """
    near = [*pool.near.values()]
    for number in sorted(range(len(near)), key=lambda number: -scores[number]):
        names = near[number]
        yield RankedEntry(names.cosine, names.nearest, scores[number])
    # Sort keys are in −1 … 1, so that these come after the pool.
    for candidate in others if near else ():
        if candidate.entry.cui not in pool.near:
            yield candidate._replace(key=min(scores) - 2 + candidate.key)


def choose_threshold(manifest: Manifest, options: LinkOptions) -> float:
    """Return the probability that a link must have: of the options, else its own."""
    return manifest.threshold if options.threshold is None else options.threshold


def choose_limits(manifest: Manifest, options: LinkOptions) -> Limits:
    """Return what the first candidate must reach."""
    calibration = manifest.calibration
    return Limits(
        choose_threshold(manifest, options),
        options.least_cosine,
        None if calibration is None else calibration.correction,
    )


def decide(result: SearchResult, limits: Limits, *, barred: bool = False) -> str | None:
    """Return why a mention has no concept; None = it has. `barred` as in `Mentions`."""
    threshold, least = limits.threshold, limits.least_cosine
    if result.decision is not None and not result.decision.cui:
        return DECIDED
    if barred:
        return "filtered"
    if result.excluded:
        return EXCLUDED
    if not result.ranked:
        return "below_threshold"
    if least is not None and round_score(result.ranked[0].score) < least:
        return "below_threshold"
    reached = limits.correct(result) >= threshold
    return None if reached else "below_threshold"
