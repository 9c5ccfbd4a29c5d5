"""The concepts nearest to a concept, and their place in the hierarchy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..linking.candidates import RankedEntry
from ..linking.filters import Filter
from ..linking.options import LinkOptions
from ..linking.ranking import SCORE_DIGITS
from .mention_search import rank_vectors

if TYPE_CHECKING:
    from .knowledge_base import KnowledgeBase

RELATIONS = ("parent", "child", "sibling")


class RelatedConcept(NamedTuple):
    """A concept near another one.

    cui (str): Its id.
    name (str): Its preferred name.
    score (float): The highest cosine of a name of the one and a name of the other,
        −1 to 1.
    relation (str | None): The first of `RELATIONS` that holds; siblings share a parent.
    """

    cui: str
    name: str
    score: float
    relation: str | None


def find_related(kb: "KnowledgeBase", cui: str, *, k: int) -> list[RelatedConcept]:
    """Find the concepts nearest to a concept; see `KnowledgeBase.related`."""
    rows = sorted({entry.row for entry in kb.store.entries_of(cui)})
    if not rows:
        return []
    vectors = kb.vectors(np.array(rows, dtype=np.int64))
    nearest: dict[str, RankedEntry] = {}
    # One more than k, since each name is nearest to its own concept.
    texts = [""] * len(rows)
    for ranked in rank_vectors(kb, texts, vectors, LinkOptions(), Filter(), k=k + 1):
        for found in ranked:
            best = nearest.get(found.entry.cui)
            if best is None or found.score > best.score:
                nearest[found.entry.cui] = found
    nearest.pop(cui, None)
    scores = {own: round(found.score, SCORE_DIGITS) for own, found in nearest.items()}
    cuis = sorted(nearest, key=lambda own: (-scores[own], own))[:k]
    relations = relate_concepts(kb, cui, cuis)
    return [
        RelatedConcept(own, nearest[own].entry.name, scores[own], relation)
        for own, relation in zip(cuis, relations, strict=True)
    ]


def relate_concepts(
    kb: "KnowledgeBase", cui: str, others: Sequence[str]
) -> list[str | None]:
    """Return the relation of each of the other concepts to a concept."""
    parents = kb.store.parents([cui, *others])
    own = {*parents.get(cui, ())}
    relations: list[str | None] = []
    for other in others:
        theirs = {*parents.get(other, ())}
        holds = (other in own, cui in theirs, not own.isdisjoint(theirs))
        found = (name for name, does in zip(RELATIONS, holds, strict=True) if does)
        relations.append(next(found, None))
    return relations
