"""A concept → the concepts nearest to it, and how they are related."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..linking.candidates import RankedEntry
from ..linking.filters import Filter
from ..linking.scores import round_score
from .search import MentionSearch
from .store import Store


class RelatedConcept(NamedTuple):
    """A concept near another one, and its preferred name.

    Attributes:
        score: The highest cosine of a name of the one and a name of the other, −1 to 1.
        relation: "parent", "child" or "sibling", which shares a parent.
    """

    cui: str
    name: str
    score: float
    relation: str | None


def find_related(searcher: MentionSearch, cui: str, *, k: int) -> list[RelatedConcept]:
    """Find the concepts nearest to a concept; see `KnowledgeBase.related`."""
    rows = sorted({entry.row for entry in searcher.store.entries_of(cui)})
    if not rows:
        return []
    vectors = searcher.parts.index.vectors(np.array(rows, dtype=np.int64))
    # One more than k, since each name is nearest to its own concept.
    ranked = searcher.nearest.rank(vectors, Filter(), k=k + 1)
    nearest: dict[str, RankedEntry] = {}
    for near in chain.from_iterable(ranked):
        best = nearest.setdefault(near.entry.cui, near)
        if near.score > best.score:
            nearest[near.entry.cui] = near
    nearest.pop(cui, None)
    scores = {other: round_score(near.score) for other, near in nearest.items()}
    cuis = sorted(nearest, key=lambda other: (-scores[other], other))[:k]
    relations = relate(searcher.store, cui, cuis)
    return [
        RelatedConcept(other, nearest[other].entry.name, scores[other], relation)
        for other, relation in zip(cuis, relations, strict=True)
    ]


def relate(store: Store, cui: str, others: Sequence[str]) -> list[str | None]:
    """Return the relation of each of the other concepts to a concept."""
    parents = store.parents([cui, *others])
    parents_of_cui = {*parents.get(cui, ())}
    relations: list[str | None] = []
    for other in others:
        parents_of_other = {*parents.get(other, ())}
        if other in parents_of_cui:
            relations.append("parent")
        elif cui in parents_of_other:
            relations.append("child")
        else:
            is_sibling = not parents_of_cui.isdisjoint(parents_of_other)
            relations.append("sibling" if is_sibling else None)
    return relations
