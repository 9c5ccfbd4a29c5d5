"""Candidates in the order that was learned from annotated mentions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..linking.candidates import Entry, RankedEntry
from ..linking.features import Provenance, compute_features, pool_concepts
from ..linking.ranker import Ranker
from ..linking.surface_forms import name_form
from ..vocabularies.concepts import ANNOTATED

if TYPE_CHECKING:
    from .knowledge_base import KnowledgeBase
    from .store import Store

VOCABULARY_NAME = Provenance(vocabulary=True, annotated=False)


def read_provenance(store: "Store") -> dict[int, Provenance]:
    """Return for each origin of annotated mentions where its names are from."""
    return {
        number: Provenance(vocabulary=values != [ANNOTATED], annotated=True)
        for number, values in store.origins("source").items()
        if ANNOTATED in values
    }


def read_counts(store: "Store", mentions: Sequence[str]) -> list[Mapping[str, int]]:
    """Return how often each mention was annotated with each concept; "" = with none."""
    forms = [name_form(mention) for mention in mentions]
    found: dict[str, dict[str, int]] = {}
    if store.database.overlay is not None:
        sql = "SELECT form, cui, count FROM annotated WHERE form IN ({})"
        for form, cui, count in store.query_many(sql, forms, columns="tti"):
            found.setdefault(form, {})[cui] = count
    return [found.get(form, {}) for form in forms]


def read_concept_counts(store: "Store", cuis: Iterable[str]) -> dict[str, int]:
    """Return how often each concept was annotated, if ever."""
    if store.database.overlay is None:
        return {}
    sql = "SELECT cui, sum(count) FROM annotated WHERE cui IN ({}) GROUP BY cui"
    return dict(store.query_many(sql, cuis, columns="ti"))


def rerank(
    kb: "KnowledgeBase",
    ranker: Ranker,
    mentions: Sequence[str],
    names: Sequence[Sequence[RankedEntry]],
    ranked: Sequence[Sequence[RankedEntry]],
    counts: Sequence[Mapping[str, int]],
) -> list[tuple[list[RankedEntry], float]]:
    """Order the nearest concepts of mentions anew.

    names (Sequence[Sequence[RankedEntry]]): The names nearest to each mention, the
        nearest first, as when the order was learned.
    ranked (Sequence[Sequence[RankedEntry]]): The concepts found for each mention, in
        the order that they have otherwise.
    counts (Sequence[Mapping[str, int]]): From `read_counts`.
    RETURNS (list[tuple[list[RankedEntry], float]]): For each mention all its concepts,
        with the score of the ranker as sort key, and the probability that the first is
        right, 0 without concepts. Concepts that are not among the nearest follow in the
        order of `ranked`.
    """

    def find_provenance(entry: Entry) -> Provenance:
        return kb.provenance.get(entry.origin, VOCABULARY_NAME)

    pools = [pool_concepts(found, find_provenance) for found in names]
    cuis = {found.entry.cui for pool, _ in pools for found in pool}
    concept_counts = read_concept_counts(kb.store, cuis)
    results: list[tuple[list[RankedEntry], float]] = []
    for mention, others, (pool, near), own in zip(
        mentions, ranked, pools, counts, strict=True
    ):
        if not pool:
            results.append(([], 0.0))
            continue
        features = compute_features(mention, pool, near, own, concept_counts)
        scores = ranker.scores(features)
        ordered = [
            pool[place]._replace(order=float(scores[place]))
            for place in np.argsort(-scores, kind="stable")
        ]
        known = {one.entry.cui for one in pool}
        last = ordered[-1].order
        # Sort keys are in −1 … 1, so that these come after the pool.
        ordered += [
            one._replace(order=last - 2 + one.order)
            for one in others
            if one.entry.cui not in known
        ]
        results.append((ordered, ranker.probability(features, scores)))
    return results
