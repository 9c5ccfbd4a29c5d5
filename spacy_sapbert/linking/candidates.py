"""Rows of the index → ranked concepts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import (
    Any,
    NamedTuple,
)

from ..kb.store import Entry

# cui, name, alias, score, rank, types, codes, tie, probability: plain JSON types only,
# so that Docs can be saved.
Candidate = dict[str, Any]
# What orders concepts with equal scores: its name, and a value of an entry, the
# smallest first.
Evidence = Sequence[tuple[str, Callable[[Entry], Any]]]

SCORE_DIGITS = 6  # float32 sums differ behind that with the size of a batch
BY_ID = "id"  # the tie was decided by nothing but the order of the ids


class Hit(NamedTuple):
    """An alias that a search found.

    score (float): Cosine of the mention and the alias, −1 to 1.
    entry (Entry): The alias.
    order (float): What hits are ordered by: the score, or what it was fused to.
    """

    score: float
    entry: Entry
    order: float


def iterate_hits(
    rows: Sequence[int],
    scores: Sequence[float],
    entries: dict[int, list[Entry]],
    *,
    orders: Sequence[float] | None = None,
) -> Iterator[Hit]:
    """Order the aliases of some rows, the best first, so that no tie is left to chance.

    rows (Sequence[int]): Rows of the index. Shape: (n,).
    scores (Sequence[float]): Their cosines. Shape: (n,).
    entries (dict[int, list[Entry]]): The aliases on each row.
    orders (Sequence[float] | None): What to order them by; None = the cosines.
        Shape: (n,).
    YIELDS (Hit): In that order; among equal ones by cosine, then preferred names before
        other aliases, then by smaller CUI, then by alias.
    """
    ranked = sorted(
        (
            (round(float(order), SCORE_DIGITS), int(row), float(score))
            for row, score, order in zip(rows, scores, orders or scores, strict=True)
            if int(row) in entries
        ),
        key=lambda item: -item[0],
    )
    for order, same in groupby(ranked, key=lambda item: item[0]):
        hits = [
            Hit(round(score, SCORE_DIGITS), entry, order)
            for _, row, score in same
            for entry in entries[row]
        ]
        if len(hits) > 1:
            hits.sort(
                key=lambda hit: (
                    -hit.score,
                    not hit.entry.preferred,
                    hit.entry.cui,
                    hit.entry.alias,
                )
            )
        yield from hits


def rank_concepts(ranked: Iterable[Hit], *, k: int | None = None) -> list[Hit]:
    """Keep the best alias of each concept.

    ranked (Iterable[Hit]): From `iterate_hits`; looked at no farther than needed.
    k (int | None): How many concepts, and all that equal the last of them; None =
        all.
    RETURNS (list[Hit]): The first hit of each concept, in the same order.
    """
    best: dict[str, Hit] = {}
    last: float | None = None
    for hit in ranked:
        if last is not None and hit.order < last:
            break
        best.setdefault(hit.entry.cui, hit)
        if len(best) == k:
            last = hit.order
    return list(best.values())


def settle_ties(
    hits: Sequence[Hit], evidence: Evidence
) -> list[tuple[Hit, str | None]]:
    """Order concepts with equal scores by what speaks for each.

    hits (Sequence[Hit]): From `rank_concepts`.
    evidence (Evidence): What counts, the most important first.
    RETURNS (list[tuple[Hit, str | None]]): In the new order, and for each what put
        it before the next, or for the last after the one before: the name of the
        evidence, or "id"; None for a concept whose score no other has.
    """
    settled: list[tuple[Hit, str | None]] = []
    # Fused, two may share their order and not their cosine, which then decides.
    for _, group in groupby(hits, key=lambda hit: (hit.order, hit.score)):
        tied = [
            ([value(hit.entry) for _, value in evidence], hit.entry.cui, hit)
            for hit in group
        ]
        tied.sort(key=lambda item: item[:2])
        for place, (values, _, hit) in enumerate(tied):
            if len(tied) == 1:
                settled.append((hit, None))
                continue
            other = tied[place + 1 if place + 1 < len(tied) else place - 1][0]
            differing = (
                name
                for (name, _), mine, its in zip(evidence, values, other, strict=True)
                if mine != its
            )
            settled.append((hit, next(differing, BY_ID)))
    return settled


def make_candidate(
    rank: int,
    hit: Hit,
    *,
    types: list[str],
    codes: dict[str, list[str]],
    tie: str | None = None,
    probability: float | None = None,
) -> Candidate:
    """Write a concept down as a candidate.

    rank (int): Its place, from 1.
    hit (Hit): The concept, and the alias that matched.
    types (list[str]): Its semantic types.
    codes (dict[str, list[str]]): Its codes, by source.
    tie (str | None): See `settle_ties`.
    probability (float | None): That it is right, if somebody knows.
    RETURNS (Candidate): Plain JSON types.
    """
    return {
        "cui": hit.entry.cui,
        "name": hit.entry.name,
        "alias": hit.entry.alias,
        "score": hit.score,
        "rank": rank,
        "types": types,
        "codes": codes,
        "tie": tie,
        "probability": probability,
    }


def has_text(text: str) -> bool:
    """Return whether a mention can be looked up.

    text (str): The mention.
    RETURNS (bool): Whether it has a letter or digit.
    """
    return any(character.isalnum() for character in text)
