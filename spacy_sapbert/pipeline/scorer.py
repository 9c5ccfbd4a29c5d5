"""The scorer of the component: links of given mentions, and end to end."""

from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import PRFScore, Scorer
from spacy.tokens import Doc
from spacy.training import Example

from ..formats.gold import NIL


def score_links(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Score the links of entities.

    `nel_micro_*` count only entities that both documents have: they measure the linker
    alone. `nel_e2e_*` count all: missed and spurious entities are wrong. An entity
    without a concept on both sides is not counted.

    Source: spaCy's Scorer.score_links, which by default counts "" against "".
    """
    examples = list(examples)
    scores = Scorer.score_links(examples, negative_labels=[NIL, ""], **kwargs)
    end_to_end = PRFScore()
    for example in examples:
        gold = list_links(example.reference)
        # "" = the annotators gave no id, or several: nothing can be said of these.
        unknown = {place for place, cui in gold.items() if cui == ""}
        predicted = list_links(example.predicted)
        right = {(p, cui) for p, cui in gold.items() if cui not in (NIL, "")}
        links = {(p, cui) for p, cui in predicted.items() if cui not in (NIL, "")}
        links = {(p, cui) for p, cui in links if p not in unknown}
        end_to_end.score_set(links, right)
    return {
        **scores,
        "nel_e2e_p": end_to_end.precision,
        "nel_e2e_r": end_to_end.recall,
        "nel_e2e_f": end_to_end.fscore,
    }


def list_links(doc: Doc) -> dict[tuple[int, int], str]:
    """Return the ids of the entities of a Doc by offsets in characters."""
    return {(ent.start_char, ent.end_char): ent.kb_id_ for ent in doc.ents}


def make_linker_scorer() -> Callable[..., dict[str, Any]]:
    return score_links
