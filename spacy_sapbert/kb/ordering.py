"""The concepts nearest to mentions → their order, and the first one's probability."""

from collections.abc import Mapping, Sequence

import numpy as np

from ..linking.candidates import Entry, RankedEntry
from ..linking.features import Features, Pool, Provenance, all_excluded, pool_concepts
from ..linking.filters import Filter
from ..linking.link import SearchResult
from ..linking.options import LinkOptions
from ..linking.ranker import Ranker
from ..linking.ranking import rank_concepts
from ..linking.text import name_form
from ..vocabularies.concepts import ANNOTATED
from .agreement import FEWEST_CONCEPTS, Agreement
from .nearest import Mentions, Nearest, Ranked
from .parts import Parts
from .store import Store

VOCABULARY_NAME = Provenance(vocabulary=True, annotated=False)


class Ordering:
    """Orders the candidates of mentions: by cosine, or as the version has learned."""

    def __init__(
        self, store: Store, parts: Parts, nearest: Nearest, agreement: Agreement
    ) -> None:
        self.store = store
        self.parts = parts
        self.nearest = nearest
        self.agreement = agreement
        self.provenance = {
            number: Provenance(vocabulary=values != [ANNOTATED], annotated=True)
            for number, values in store.origins("source").items()
            if ANNOTATED in values
        }

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
        ranked = self.nearest.rank(
            mentions.vectors, filter, k=max(options.k, FEWEST_CONCEPTS)
        )
        results: list[SearchResult] = []
        for number, concepts in enumerate(ranked):
            probability, excluded = None, False
            if ranker is not None and ranker.known is not None:
                cosines = np.array([c.score for c in concepts[:FEWEST_CONCEPTS]])
                probability = ranker.name_probability(cosines) if concepts else 0.0
            if not mentions.named[number]:
                concepts, excluded = self.agreement.put_excluded_last(
                    mentions.texts[number], concepts, filter
                )
            best = rank_concepts(concepts, k=options.k)
            results.append(
                SearchResult(best, None, counts[number], probability, excluded)
            )
        return results

    def order_by_ranker(
        self, mentions: Mentions, filter: Filter, options: LinkOptions
    ) -> list[SearchResult]:
        """Find the concepts of mentions in the learned order."""
        ranker = self.parts.ranker
        assert ranker is not None
        texts, counts = mentions.texts, self.count_annotations(mentions.texts)
        found = self.nearest.find_names(mentions, filter)
        pools = [pool_concepts(names, self.find_provenance) for names in found]
        more = [n for n, pool in enumerate(pools) if len(pool.near) < options.k]
        ranked: dict[int, Ranked] = {}
        if more:
            others = self.nearest.rank(mentions.vectors[more], filter, k=options.k)
            ranked = dict(zip(more, others, strict=True))
        taught = self.parts.manifest.taught is not None
        cuis = {cui for pool in pools for cui in pool.near}
        totals = self.store.annotated_concepts(cuis) if taught else {}
        results: list[SearchResult] = []
        for number, pool in enumerate(pools):
            features = self.agreement.features(
                texts[number],
                pool,
                filter,
                counts=counts[number] if taught else None,
                concept_counts=totals,
            )
            ordered, probability = order_pool(
                ranker, pool, features, ranked.get(number, ())
            )
            excluded = bool(ordered) and all_excluded(features)
            best = rank_concepts(ordered, k=options.k)
            results.append(
                SearchResult(best, None, counts[number], probability, excluded)
            )
        return results

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


def order_pool(
    ranker: Ranker, pool: Pool, features: Features, others: Sequence[RankedEntry]
) -> tuple[list[RankedEntry], float]:
    """Order the nearest concepts of a mention anew.

    Args:
        pool: The nearest concepts, from `pool_concepts`.
        features: Theirs, from `compute_features`.
        others: The concepts found, in the order that they have otherwise.

    Returns:
        All concepts, with the score of the ranker as sort key, and the probability that
        the first is right, 0 without concepts. Those that are not in the pool follow in
        the order of `others`.
    """
    if not pool.near:
        return [], 0.0
    scores = ranker.scores(features)
    near, keys = [*pool.near.values()], scores.tolist()
    ordered = [
        RankedEntry(near[number].cosine, near[number].nearest, keys[number])
        for number in np.argsort(-scores, kind="stable").tolist()
    ]
    last = ordered[-1].key
    # Sort keys are in −1 … 1, so that these come after the pool.
    ordered += [
        candidate._replace(key=last - 2 + candidate.key)
        for candidate in others
        if candidate.entry.cui not in pool.near
    ]
    return ordered, ranker.probability(features, scores)
