"""Candidates: concepts proposed for a mention, and how their scores are rounded."""

from typing import NamedTuple

from typing_extensions import TypedDict

SORT_DIGITS = 6  # to sort by: float32 sums differ after these digits with the batch
SCORE_DIGITS = 4  # of scores that are compared with a threshold, and written

CANDIDATES = 3  # of a mention, that files of links have


def round_score(score: float) -> float:
    """Return a score as it is written; nothing else rounds one."""
    return round(float(score), SCORE_DIGITS)


class Entry(NamedTuple):
    """One alias of one concept on a row of the index.

    Attributes:
        cui: Id of the concept.
        name: Preferred name of the concept.
        preferred: 1 = the alias is the preferred name, else 0.
        concept: Number of the concept in concepts.db.
        origin: Number of the languages and sources of the alias in concepts.db.
    """

    row: int
    cui: str
    name: str
    alias: str
    preferred: int
    concept: int = -1
    origin: int = -1


class RankedEntry(NamedTuple):
    """An entry that a search found.

    Attributes:
        score: Cosine of the mention and the alias, −1 to 1.
        key: The sort key: the score, or that of a learned order.
    """

    score: float
    entry: Entry
    key: float


class Candidate(TypedDict):
    """A concept proposed for a mention; plain JSON types, so that Docs can be saved.

    Attributes:
        alias: The name of the concept that is nearest to the mention.
        score: Cosine of mention and alias, four digits.
        rank: From 1.
        tie: The evidence that ordered concepts of equal score, or "id"; None = no other
            concept has this score. "decided" = people decided on the first candidate.
        probability: That the first candidate is right; None for the others.
    """

    cui: str
    name: str
    alias: str
    score: float
    rank: int
    types: list[str]
    codes: dict[str, list[str]]
    tie: str | None
    probability: float | None
