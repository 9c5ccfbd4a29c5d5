"""Rows of the index → concepts in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from .candidates import SORT_DIGITS, Entry, RankedEntry

# Evidence that breaks ties: its name, and a value of an entry; smaller values first.
TieKeys = Sequence[tuple[str, Callable[[Entry], Any]]]

BY_ID = "id"  # no evidence broke the tie, only the order of the ids


def has_text(text: str) -> bool:
    """Return whether a mention has a letter or digit, so that it can be linked."""
    return any(character.isalnum() for character in text)


def sort_entries(
    rows: Sequence[int],
    scores: Sequence[float],
    entries: Mapping[int, list[Entry]],
) -> Iterator[RankedEntry]:
    """Yield the entries of rows by cosine, which is also their sort key.

    Of equal cosines, preferred names come first, then they are sorted by CUI and alias.
    Rows without entries are left out.
    """
    ranked = [
        (-round(score, SORT_DIGITS), not entry.preferred, entry.cui, entry.alias, entry)
        for row, score in zip(rows, scores, strict=True)
        for entry in entries.get(row, ())
    ]
    ranked.sort()
    for key, *_, entry in ranked:
        yield RankedEntry(-key, entry, -key)


def rank_concepts(
    ranked: Iterable[RankedEntry], *, k: int | None = None
) -> list[RankedEntry]:
    """Return the best entry of each concept, in the order of `ranked`.

    `ranked` is read only as far as needed for `k` concepts and all that equal the last
    one.
    """
    best: dict[str, RankedEntry] = {}
    last: float | None = None
    for candidate in ranked:
        if last is not None and candidate.key < last:
            break
        best.setdefault(candidate.entry.cui, candidate)
        if len(best) == k:
            last = candidate.key
    return list(best.values())


def break_ties(
    ranked: Sequence[RankedEntry], evidence: TieKeys
) -> list[tuple[RankedEntry, str | None]]:
    """Order concepts with equal scores by evidence, the most important first.

    Returns for each concept the evidence that puts it before the next one (for the last
    one: after the one before), or "id"; None if no other concept has its score.
    """
    result: list[tuple[RankedEntry, str | None]] = []
    # In a learned order, two may share the sort key but not the cosine.
    for _, group in groupby(
        ranked, key=lambda candidate: (candidate.key, candidate.score)
    ):
        same = [*group]
        if len(same) == 1:
            result.append((same[0], None))
            continue
        tied = [
            ([value(one.entry) for _, value in evidence], one.entry.cui, one)
            for one in same
        ]
        tied.sort(key=lambda item: item[:2])
        for index, (values, _, candidate) in enumerate(tied):
            other = tied[index + 1 if index + 1 < len(tied) else index - 1][0]
            differing = (
                name
                for (name, _), mine, its in zip(evidence, values, other, strict=True)
                if mine != its
            )
            result.append((candidate, next(differing, BY_ID)))
    return result
