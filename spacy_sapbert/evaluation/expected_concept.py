"""Where the concept stands that a mention should have had."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..linking.candidates import SCORE_DIGITS
from ..pipeline.annotations import NIL
from .trace import ExactSearch, Lookup, rejecting_fields

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase
    from ..kb.store import Entry
    from ..vocabularies.concepts import Concept

MOST_NEARER = 10_000  # names before the expected one of which the concepts are counted
SLACK = 2e-6  # by which cosines of equal vectors differ
# What may have become of the expected concept.
STATES = {
    "found": "it is what was found",
    "nil": "it is the best candidate, which does not count",
    "tied": "it is as near as what was found",
    "behind": "another is nearer",
    "missed": "the index does not find it, an exact search does",
    "filtered": "it is left out",
    "removed": "it was removed from the knowledge base",
    "unknown": "the knowledge base has no such concept",
    "unreadable": "the encoder can read none of its names",
    "not_looked_up": "there is nothing to look up",
}


class Nearest(NamedTuple):
    """The name of a concept that is nearest to a mention.

    score (float): Its cosine.
    entry (Entry): The name.
    by (list[str]): The fields of the filter that leave it out.
    """

    score: float
    entry: "Entry"
    by: list[str]


def locate_expected(
    lookup: Lookup,
    cui: str,
    searched: ExactSearch | None,
    *,
    missed: set[str],
) -> dict[str, Any]:
    """Find where the expected concept stands.

    lookup (Lookup): The answer.
    cui (str): Its id, maybe a retired one; "NIL" for no concept.
    searched (ExactSearch | None): Compares all names; None = not asked for.
    missed (set[str]): Concepts that the index did not find.
    RETURNS (dict[str, Any]): `asked`, the id; `cui`, which has its place now; `state`,
        of `STATES`; `name`, `types`; `rank` among the candidates; its nearest name
        that may be found, `alias`, with `score` and by how much it falls behind the
        first, `margin`; how many names (`names_nearer`) and concepts, by their
        best names (`exact_rank`), are nearer than that; the fields that leave it out
        (`filtered_by`); its nearest name that was removed (`removed_alias`); how what
        was found stands to it (`relation`).
    """
    concept = None if cui == NIL else lookup.kb.concept(cui)
    built = None if cui == NIL else lookup.kb.layers[0].store.concept(cui)
    known = concept or built
    located: dict[str, Any] = {
        "asked": cui,
        "cui": known.cui if known else None,
        "state": "unknown",
        "name": known.name if known else None,
        "types": list(known.types) if known else [],
        "rank": None,
        "alias": None,
        "score": None,
        "margin": None,
        "names_nearer": None,
        "exact_rank": None,
        "filtered_by": [],
        "removed_alias": None,
        "relation": None,
    }
    if cui == NIL:
        located["state"] = "behind" if lookup.cui else "found"
        return located
    if known is None or lookup.vector is None:
        located["state"] = "unknown" if known is None else "not_looked_up"
        return located
    located["removed_alias"] = nearest_removed(lookup, built)
    if concept is None:
        located["state"] = "removed"
        return located
    nearest = nearest_name(lookup, concept)
    if nearest is None:
        located["state"] = "found" if lookup.cui == concept.cui else "unreadable"
        return located
    candidates = lookup.linked.candidates
    ranks = {candidate["cui"]: candidate["rank"] for candidate in candidates}
    located.update(
        rank=ranks.get(concept.cui),
        alias=nearest.entry.alias,
        score=nearest.score,
        filtered_by=nearest.by,
        state=tell_state(lookup, concept.cui, nearest, missed),
    )
    if searched is not None and not nearest.by:
        located.update(count_nearer(lookup, searched, nearest))
    if candidates:
        located["margin"] = round(candidates[0]["score"] - nearest.score, SCORE_DIGITS)
        found = lookup.cui or candidates[0]["cui"]
        located["relation"] = relate(lookup.kb, found, concept.cui)
    return located


def tell_state(lookup: Lookup, cui: str, nearest: Nearest, missed: set[str]) -> str:
    """Tell what became of a concept that has names; see `STATES`."""
    best = lookup.best
    if lookup.cui == cui:
        return "found"
    if best is not None and best["cui"] == cui:
        return "nil"
    if nearest.by:
        return "filtered"
    orders = {hit.entry.cui: hit.order for hit in lookup.hits}
    if best is not None and orders.get(cui) == orders[best["cui"]]:
        return "tied"
    return "missed" if cui in missed else "behind"


def nearest_name(lookup: Lookup, concept: "Concept") -> Nearest | None:
    """Find the name of a concept that is nearest to the mention.

    lookup (Lookup): The answer.
    concept (Concept): The concept.
    RETURNS (Nearest | None): Of those that may be found, or else of all; None if the
        encoder can read none.
    """
    assert lookup.vector is not None
    entries = lookup.kb.store.entries_of(concept.cui)
    if not entries:
        return None
    vectors = lookup.kb.vectors(np.array([entry.row for entry in entries]))
    names = [
        Nearest(
            round(float(score), SCORE_DIGITS),
            entry,
            rejecting_fields(lookup.kb, lookup.wanted, entry),
        )
        for score, entry in zip(vectors @ lookup.vector, entries, strict=True)
    ]
    return min(
        names,
        key=lambda name: (
            bool(name.by),
            -name.score,
            not name.entry.preferred,
            name.entry.alias,
        ),
    )


def nearest_removed(lookup: Lookup, built: "Concept | None") -> str | None:
    """Find the removed name of a concept that is nearest to the mention."""
    if lookup.vector is None or built is None:
        return None
    removed = lookup.kb.layers[0].is_removed
    gone = [alias for alias in built.aliases if removed(built.cui, alias)]
    if not gone:
        return None
    scores = lookup.kb.encode(gone) @ lookup.vector
    return gone[int(np.argmax(scores))]


def count_nearer(
    lookup: Lookup, searched: ExactSearch, nearest: Nearest
) -> dict[str, int | None]:
    """Count what is nearer to the mention than the expected concept.

    lookup (Lookup): The answer.
    searched (ExactSearch): Compares all names.
    nearest (Nearest): The name of the expected concept.
    RETURNS (dict[str, int | None]): `names_nearer` that may be found, and
        `exact_rank` of the concept; None if the names are too many.
    """
    assert lookup.vector is not None
    wanted = lookup.wanted
    admitted = lookup.kb.contents.admitted(wanted) if wanted else None
    cosines = searched.cosines(lookup.vector)
    rows = np.flatnonzero(cosines > nearest.score + SLACK)
    if admitted is not None:
        rows = np.intersect1d(rows, admitted.rows, assume_unique=True)
    if len(rows) > MOST_NEARER:
        return {"names_nearer": len(rows), "exact_rank": None}
    entries = lookup.kb.entries(rows)
    if admitted is not None:
        entries = admitted.keep(entries)
    nearer = {entry.cui for some in entries.values() for entry in some}
    return {"names_nearer": len(entries), "exact_rank": len(nearer) + 1}


def relate(kb: "KnowledgeBase", found: str, expected: str) -> str | None:
    """Tell how two concepts stand in the hierarchy.

    kb (KnowledgeBase): The knowledge base.
    found (str): What was found.
    expected (str): What was expected.
    RETURNS (str | None): "narrower" if the found one is below the expected,
        "broader" if it is above, "sibling" if they share a parent; else None.
    """
    if found == expected:
        return None
    above, parents = climb(kb, found)
    others, their_parents = climb(kb, expected)
    if expected in above or found in others:
        return "narrower" if expected in above else "broader"
    return "sibling" if parents & their_parents else None


def climb(kb: "KnowledgeBase", cui: str) -> tuple[set[str], set[str]]:
    """Collect everything above a concept.

    kb (KnowledgeBase): The knowledge base.
    cui (str): The concept.
    RETURNS (tuple[set[str], set[str]]): All ids above, and those one step up.
    """
    seen: set[str] = set()
    first: set[str] | None = None
    pending = [cui]
    while pending:
        found = kb.store.parents(pending)
        parents = {parent for some in found.values() for parent in some}
        first = parents if first is None else first
        pending = sorted(parents - seen)
        seen |= parents
    return seen, first or set()
