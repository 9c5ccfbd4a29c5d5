"""Rows of the index → concepts in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from .candidates import Entry, RankedEntry
from .scores import SORT_DIGITS

# Evidence that breaks ties: its name, and a value of an entry; smaller values first.
Evidence = Sequence[tuple[str, Callable[[Entry], Any]]]

BY_ID = "id"  # no evidence broke the tie, only the order of the ids


def has_text(text: str) -> bool:
    """Return whether a mention has a letter or digit, so that it can be linked."""
    return any(character.isalnum() for character in text)


def order_entries(
    rows: Sequence[int],
    scores: Sequence[float],
    entries: Mapping[int, list[Entry]],
    *,
    orders: Sequence[float] | None = None,
) -> Iterator[RankedEntry]:
    """Yield the entries of rows in a fixed order, the best first.

    Args:
        rows: Rows of the index; rows without entries are left out. Shape: (n,).
        scores: Their cosines. Shape: (n,).
        entries: The aliases on each row.
        orders: Sort keys; None = the cosines. Shape: (n,).

    Yields:
        By sort key, then by cosine, preferred names before other aliases, CUI and
        alias.
    """
    ranked = sorted(
        (
            (round(float(order), SORT_DIGITS), int(row), float(score))
            for row, score, order in zip(rows, scores, orders or scores, strict=True)
            if int(row) in entries
        ),
        key=lambda item: -item[0],
    )
    for order, same in groupby(ranked, key=lambda item: item[0]):
        group = [
            RankedEntry(round(score, SORT_DIGITS), entry, order)
            for _, row, score in same
            for entry in entries[row]
        ]
        if len(group) > 1:
            group.sort(
                key=lambda found: (
                    -found.score,
                    not found.entry.preferred,
                    found.entry.cui,
                    found.entry.alias,
                )
            )
        yield from group


def rank_concepts(
    ranked: Iterable[RankedEntry], *, k: int | None = None
) -> list[RankedEntry]:
    """Return the best entry of each concept.

    Args:
        ranked: From `order_entries`; read only as far as needed.
        k: Number of concepts; concepts that equal the last one are added. None = all.

    Returns:
        In the same order.
    """
    best: dict[str, RankedEntry] = {}
    last: float | None = None
    for found in ranked:
        if last is not None and found.order < last:
            break
        best.setdefault(found.entry.cui, found)
        if len(best) == k:
            last = found.order
    return list(best.values())


def break_ties(
    ranked: Sequence[RankedEntry], evidence: Evidence
) -> list[tuple[RankedEntry, str | None]]:
    """Order concepts with equal scores by evidence.

    Args:
        ranked: From `rank_concepts`.
        evidence: The most important first.

    Returns:
        In the new order. For each concept the evidence that puts it before the next one
        (for the last one: after the one before), or "id"; None if no other concept has
        its score.
    """
    result: list[tuple[RankedEntry, str | None]] = []
    # Fused, two concepts may share the sort key but not the cosine.
    for _, group in groupby(ranked, key=lambda found: (found.order, found.score)):
        tied = [
            ([value(found.entry) for _, value in evidence], found.entry.cui, found)
            for found in group
        ]
        tied.sort(key=lambda item: item[:2])
        for place, (values, _, found) in enumerate(tied):
            if len(tied) == 1:
                result.append((found, None))
                continue
            other = tied[place + 1 if place + 1 < len(tied) else place - 1][0]
            differing = (
                name
                for (name, _), mine, its in zip(evidence, values, other, strict=True)
                if mine != its
            )
            result.append((found, next(differing, BY_ID)))
    return result
