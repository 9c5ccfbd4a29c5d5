"""The scorer of the component: links of given mentions, and end to end."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import PRFScore, Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..formats.gold import NIL

Place = tuple[int, int]  # start and end in characters


def score_links(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the links of entities.

    `nel_micro_*` count only entities that both documents have: they measure the linker
    alone. `nel_e2e_*` count all: missed and spurious entities are wrong. An entity
    without a concept on both sides is not counted, and neither is one to which the
    reference gives no id: the annotators gave none, or several.
    """
    judged = [leave_out_unknown(example) for example in examples]
    scores = Scorer.score_links(judged, negative_labels=[NIL], **kwargs)
    end_to_end = PRFScore()
    for example in judged:
        links = list_links(example.predicted).items()
        right = list_links(example.reference).items()
        end_to_end.score_set(
            {(place, cui) for place, cui in links if cui != NIL},
            {(place, cui) for place, cui in right if cui != NIL},
        )
    return {
        **scores,
        "nel_e2e_p": end_to_end.precision,
        "nel_e2e_r": end_to_end.recall,
        "nel_e2e_f": end_to_end.fscore,
    }


def leave_out_unknown(example: Example) -> Example:
    """Return an example without the entities of which the reference says nothing.

    Other entities without an id are NIL.
    """
    links = list_links(example.reference).items()
    unknown = {place for place, cui in links if not cui}
    reference = keep_entities(example.reference, unknown)
    return Example(keep_entities(example.predicted, unknown), reference)


def keep_entities(doc: Doc, unknown: set[Place]) -> Doc:
    """Return a Doc with the entities that are not at some places, and nothing else."""
    words, spaces = [t.text for t in doc], [bool(t.whitespace_) for t in doc]
    copy = Doc(doc.vocab, words=words, spaces=spaces)
    copy.ents = [
        Span(copy, ent.start, ent.end, ent.label, kb_id=ent.kb_id_ or NIL)
        for ent in doc.ents
        if (ent.start_char, ent.end_char) not in unknown
    ]
    return copy


def list_links(doc: Doc) -> dict[Place, str]:
    """Return the ids of the entities of a Doc by offsets in characters."""
    return {(ent.start_char, ent.end_char): ent.kb_id_ for ent in doc.ents}


def make_linker_scorer() -> Callable[..., dict[str, Any]]:
    return score_links
