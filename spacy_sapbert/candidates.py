"""Rows of the index → ranked concepts."""

from typing import Dict, List, Optional, Sequence, Tuple, Union

from .store import Entry

# cui, name, alias, score, types: plain JSON types only, so that Docs can be saved.
Candidate = Dict[str, Union[str, float, List[str]]]

SCORE_DIGITS = 6  # float32 sums differ behind that with the size of a batch


def rank_entries(
    rows: Sequence[int], scores: Sequence[float], entries: Dict[int, List[Entry]]
) -> List[Tuple[float, Entry]]:
    """Order all aliases of some rows, the best first, so that no tie is left to chance.

    rows (Sequence[int]): Rows of the index. Shape: (n,).
    scores (Sequence[float]): Their cosines. Shape: (n,).
    entries (Dict[int, List[Entry]]): The aliases on each row.
    RETURNS (List[Tuple[float, Entry]]): By score; among equal scores preferred names
        before other aliases, then by smaller CUI, then by alias.
    """
    ranked = [
        (round(float(score), SCORE_DIGITS), entry)
        for row, score in zip(rows, scores, strict=True)
        for entry in entries.get(int(row), ())
    ]
    ranked.sort(
        key=lambda pair: (-pair[0], not pair[1].preferred, pair[1].cui, pair[1].alias)
    )
    return ranked


def rank_concepts(
    rows: Sequence[int],
    scores: Sequence[float],
    entries: Dict[int, List[Entry]],
    *,
    k: Optional[int] = None,
) -> List[Tuple[float, Entry]]:
    """Order the concepts of some rows, each by its best alias.

    rows (Sequence[int]): Rows of the index. Shape: (n,).
    scores (Sequence[float]): Their cosines. Shape: (n,).
    entries (Dict[int, List[Entry]]): The aliases on each row.
    k (Optional[int]): How many concepts; None = all.
    RETURNS (List[Tuple[float, Entry]]): The first entry of each concept in the order
        of `rank_entries`.
    """
    best: Dict[str, Tuple[float, Entry]] = {}
    for score, entry in rank_entries(rows, scores, entries):
        best.setdefault(entry.cui, (score, entry))
        if len(best) == k:
            break
    return list(best.values())


def make_candidate(score: float, entry: Entry, types: List[str]) -> Candidate:
    """Write a concept down as a candidate.

    score (float): Cosine of the mention and the alias, −1 to 1.
    entry (Entry): The concept, and the alias that matched.
    types (List[str]): Its semantic types.
    RETURNS (Candidate): Plain JSON types.
    """
    return {
        "cui": entry.cui,
        "name": entry.name,
        "alias": entry.alias,
        "score": score,
        "types": types,
    }


def describe_text(text: str) -> Optional[str]:
    """Say why a mention needs no search.

    text (str): The mention.
    RETURNS (Optional[str]): "blank", "punctuation", or None for a letter or digit.
    """
    if not text.strip():
        return "blank"
    return None if any(character.isalnum() for character in text) else "punctuation"
