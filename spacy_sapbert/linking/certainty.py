"""How far a link can be trusted: one answer for notes, columns, files and protocols."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .difference import compare_texts

Certainty = Literal["sure", "unsure", "tied", "none"]
SURE = 0.8  # least probability of a sure link
# People decided for this mention: a note if it has no concept, else what breaks ties.
DECIDED = "decided"
AMBIGUOUS = "ambiguous"  # note: one of some concepts is meant, but which is unknown
# Evidence about this mention. Other evidence orders ties by a custom of vocabularies.
DECISIVE = ("label", "annotated", DECIDED)


def judge_link(
    text: str,
    cui: str | None,
    candidates: Sequence[Mapping[str, Any]],
    *,
    note: str | None = None,
    proposed: bool = False,
) -> Certainty:
    """Return how far the link of a mention can be trusted.

    The first rule that fits holds:

    1. *tied*: the note is `AMBIGUOUS`.
    2. *none*: no concept is linked.
    3. *tied*: another concept has the score of the first, and neither the label of the
       mention nor annotations say which is meant. No probability counts then.
    4. *sure*: the mention is the preferred name of the concept.
    5. *sure* from a probability of `SURE` on, else *unsure*. A file may have links
       without a probability: nobody knows how far they can be trusted.

    Args:
        candidates: Of the link, `Candidate`s; score and probability may be None.
        note: Of the link.
        proposed: A file says that it is `cui`: it is sure unless another concept has a
            higher score.
    """
    if note == AMBIGUOUS:
        return "tied"
    if cui is None:
        return "none"
    first = next((one for one in candidates if one["cui"] == cui), None)
    if first is None:
        return "unsure"
    others = [one.get("score") for one in candidates if one is not first]
    score, tie = first.get("score"), first.get("tie")
    if proposed:
        highest = max((other for other in others if other is not None), default=-1.0)
        return "sure" if highest <= (-1.0 if score is None else score) else "unsure"
    is_tie = tie is not None or (score is not None and score in others)
    if is_tie and tie not in DECISIVE:
        return "tied"
    if compare_texts(text, first.get("name") or "").same:
        return "sure"
    return "sure" if (first.get("probability") or 0) >= SURE else "unsure"
