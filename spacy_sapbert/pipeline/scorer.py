"""The scorer of the component."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import Scorer
from spacy.training import Example

from .annotations import NIL


def score_links(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score links; an entity without a concept in both documents is not counted.

    examples (Iterable[Example]): Predicted and gold documents.
    RETURNS (dict[str, Any]): `nel_micro_p`, `nel_micro_r`, `nel_micro_f` and others.
    SOURCE: spaCy's Scorer.score_links, which by default counts "" against "".
    """
    return Scorer.score_links(examples, negative_labels=[NIL, ""], **kwargs)


def make_linker_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of the component."""
    return score_links
