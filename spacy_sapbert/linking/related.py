"""The concepts nearest to a concept, and what the hierarchy says of each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .candidates import Hit
from .filters import Filter
from .options import LinkOptions
from .ranking import rank_vectors
from .searched import Searched

RELATIONS = ("parent", "child", "sibling")


class RelatedConcept(NamedTuple):
    """A concept that is near to another.

    cui (str): Its id.
    name (str): Its preferred name.
    score (float): The highest cosine of a name of the one and a name of the other,
        −1 to 1.
    relation (str | None): What it is to the other: one of `RELATIONS`, the first
        that holds; siblings share a parent. None = the hierarchy says nothing.
    """

    cui: str
    name: str
    score: float
    relation: str | None


def find_related(kb: Searched, cui: str, *, k: int) -> list[RelatedConcept]:
    """Find the concepts nearest to a concept; see `KnowledgeBase.related`.

    kb (Searched): Where.
    cui (str): The concept.
    k (int): How many.
    RETURNS (list[RelatedConcept]): The nearest first, equal ones by id; none if the
        encoder can read no name of it.
    """
    rows = sorted({entry.row for entry in kb.store.entries_of(cui)})
    if not rows:
        return []
    vectors = kb.vectors(np.array(rows, dtype=np.int64))
    # One more than wanted, since each name is nearest to its own concept.
    options = LinkOptions(k=k + 1)
    nearest: dict[str, Hit] = {}
    for hits in rank_vectors(kb, [""] * len(rows), vectors, options, Filter()):
        for hit in hits:
            best = nearest.get(hit.entry.cui)
            if best is None or hit.score > best.score:
                nearest[hit.entry.cui] = hit
    nearest.pop(cui, None)
    ranked = sorted(nearest.values(), key=lambda hit: (-hit.score, hit.entry.cui))[:k]
    relations = relate_concepts(kb, cui, [hit.entry.cui for hit in ranked])
    return [
        RelatedConcept(hit.entry.cui, hit.entry.name, hit.score, relation)
        for hit, relation in zip(ranked, relations, strict=True)
    ]


def relate_concepts(kb: Searched, cui: str, others: Sequence[str]) -> list[str | None]:
    """Tell what concepts are to another, one step up, down or aside.

    kb (Searched): Where.
    cui (str): The other.
    others (Sequence[str]): The concepts.
    RETURNS (list[str | None]): For each one of `RELATIONS`, or None.
    """
    parents = kb.store.parents([cui, *others])
    own = {*parents.get(cui, ())}
    relations: list[str | None] = []
    for other in others:
        theirs = {*parents.get(other, ())}
        holds = (other in own, cui in theirs, not own.isdisjoint(theirs))
        found = (name for name, does in zip(RELATIONS, holds, strict=True) if does)
        relations.append(next(found, None))
    return relations
