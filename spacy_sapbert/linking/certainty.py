"""How far a link can be trusted: one answer for notes, columns, files and protocols."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .candidates import round_score
from .text import is_same_name

Certainty = Literal["sure", "unsure", "tied", "none"]
SURE = 0.8  # least probability of a sure link
CLEAR_MARGIN = 0.1  # of two scores, from which the first is clear
# Evidence about this mention. Other evidence orders ties by a custom of vocabularies.
DECISIVE = ("label", "annotated")


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

    1. *none*: no concept is linked.
    2. *tied*: another concept has the score of the first, and neither the label of the
       mention nor annotations say which is meant. No probability counts then.
    3. *sure*: the mention is the preferred name of the concept.
    4. *sure* from a probability of `SURE` on, else *unsure*.
    5. Without probabilities: *sure* if the score is 1, or if there are other candidates
       and none is near. With one candidate it is not known how near others are.

    Args:
        candidates: Of the link, `Candidate`s; the score may be None.
        note: Of the link: one that was cut is never sure without a probability.
        proposed: A file says that it is `cui`: it is sure unless another concept has a
            higher score.
    """
    first = next((one for one in candidates if one["cui"] == cui), None)
    if cui is None:
        return "none"
    if first is None:
        return "unsure"
    others = [one.get("score") for one in candidates if one is not first]
    score, tie = first.get("score"), first.get("tie")
    margin = (-1.0 if score is None else score) - max(
        (-1.0 if one is None else one for one in others), default=-1.0
    )
    if proposed:
        return "sure" if margin >= 0 else "unsure"
    is_tie = tie is not None or (score is not None and score in others)
    if is_tie and tie not in DECISIVE:
        return "tied"
    if is_same_name(text, first.get("name") or ""):
        return "sure"
    if (probability := first.get("probability")) is not None:
        return "sure" if probability >= SURE else "unsure"
    clear = score == 1 or (bool(others) and round_score(margin) >= CLEAR_MARGIN)
    return "sure" if clear and not note else "unsure"
