"""The broader concept of a mention that has none of its own."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .candidates import SCORE_DIGITS, Candidate
from .filters import Filter
from .searched import Searched

# Cosine by which a candidate falls behind to weigh a third (1/e) of the best; chosen by
# `python -m benchmarks.broader`.
SOFTNESS = 0.1


def rank_parents(
    scores: Mapping[str, float],
    parents: Mapping[str, Sequence[str]],
    *,
    softness: float = SOFTNESS,
) -> list[str]:
    """Order the parents of candidates by how much speaks for each.

    Each candidate weighs exp((score − best score) / `softness`), and gives its weight
    to all its parents; one that is a parent of another gives it to itself too.

    scores (Mapping[str, float]): Cosine of each candidate, by its id.
    parents (Mapping[str, Sequence[str]]): The ids one step up of each that has any.
    softness (float): How slowly the weight falls, above 0.
    RETURNS (list[str]): The one with the most weight first; of equal ones that with
        the best child, then the one that is itself the best candidate, then by id.
    """
    best = max(scores.values(), default=0.0)
    weights: dict[str, float] = defaultdict(float)
    nearest: dict[str, float] = {}
    for cui, score in scores.items():
        for parent in parents.get(cui, ()):
            weights[parent] += math.exp((score - best) / softness)
            nearest[parent] = max(score, nearest.get(parent, -1.0))
    for cui, score in scores.items():
        if cui in weights:
            weights[cui] += math.exp((score - best) / softness)

    def order(parent: str) -> tuple[float, float, float, str]:
        weight = round(weights[parent], SCORE_DIGITS)
        return -weight, -nearest[parent], -scores.get(parent, -1.0), parent

    return sorted(weights, key=order)


def find_broader(
    kb: Searched,
    candidates: Sequence[Candidate],
    parents: Mapping[str, Sequence[str]],
    wanted: Filter,
) -> str | None:
    """Choose the concept that a mention is linked to, since no candidate counts.

    kb (Searched): Where.
    candidates (Sequence[Candidate]): Of the mention.
    parents (Mapping[str, Sequence[str]]): The ids one step up of each that has any.
    wanted (Filter): What the mention may find.
    RETURNS (str | None): Id of the concept; None if no candidate has a parent that
        is in the knowledge base and may be found.
    """
    scores = {candidate["cui"]: candidate["score"] for candidate in candidates}
    for parent in rank_parents(scores, parents):
        # It may be no concept here, or have been retired for another.
        concept = kb.store.concept(parent)
        if concept is not None and may_be_found(kb, concept.cui, wanted):
            return concept.cui
    return None


def may_be_found(kb: Searched, cui: str, wanted: Filter) -> bool:
    """Return whether a filter leaves a name of a concept.

    kb (Searched): Where.
    cui (str): The concept.
    wanted (Filter): The filter.
    RETURNS (bool): Whether it does.
    """
    if not wanted:
        return True
    names = {entry.row: [entry] for entry in kb.store.entries_of(cui)}
    return bool(kb.admitted(wanted).keep(names))
