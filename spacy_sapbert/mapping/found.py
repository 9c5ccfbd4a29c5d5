"""What was found for a term; imports neither spaCy nor torch."""

from typing import NamedTuple

from ..linking.candidates import Candidate

EXACT, LINKED, REVIEW, NONE = "exact", "linked", "review", "none"
STATUSES = {
    EXACT: "the term is a name of the concept",
    LINKED: "the score reaches the threshold",
    REVIEW: "below the threshold or ambiguous: choose a candidate, or NIL",
    NONE: "no candidate",
}


class Found(NamedTuple):
    """What was found for a term.

    Attributes:
        status: One of `STATUSES`.
        note: Why there is no concept; see `Linked`.
    """

    read_as: str
    status: str
    cui: str | None
    note: str | None
    candidates: list[Candidate]
