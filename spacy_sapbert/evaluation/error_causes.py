"""A wrong answer → its cause: the first in a fixed order that applies."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ..linking.surface_forms import is_abbreviation, name_form
from .accuracy import Parts, Scored, score_ranking

SHORTEST_SHORT_FORM, LONGEST_SHORT_FORM = 2, 10  # characters, e.g. "MI", "SARS-CoV-2"

# In order of precedence: what no encoder can solve; errors of the search; then names,
# hierarchy and types, from the most to the least certain; then the rank.
CAUSES: dict[str, str] = {
    "not covered": "The knowledge base has no concept of a gold id. Add the concept, "
    "or map the id with --aliases.",
    "composite": "The mention means several concepts, and one answer is one concept. "
    "Split such mentions before linking.",
    "no answer": "The mention has no letter or digit, or the encoder cannot read it.",
    "tie": "A gold concept has the same score as the first answer, mostly for the same "
    "name. Only the context can decide.",
    "index miss": "Exact search ranks a gold concept first, but the index did not find "
    "it. Increase ef, or build the index with more connections.",
    "equal name elsewhere": "The mention is a name of the answer and not of the gold "
    "concept. Add the name to the gold concept, or check the annotation.",
    "abbreviation": "The mention is a short form and not a name of the gold concept. "
    "Expand abbreviations from the document, or add the short form.",
    "too general": "The answer is an ancestor of the gold concept.",
    "too specific": "The answer is a descendant of the gold concept.",
    "wrong type": "The answer and the gold concept share no semantic type.",
    "near miss": "A gold concept is among the first answers, but not the first. Train "
    "the encoder on such pairs, or rerank.",
    "synonym missing": "No gold concept is among the first answers. Add synonyms.",
}
STEPS = 3  # the longest distance in the hierarchy


class ConceptInfo(NamedTuple):
    """What causes are derived from; empty for an id without a concept.

    Attributes:
        cuis: The id, or those of the vocabulary that it stands for.
        name: The preferred name of the first.
        forms: All names, as `name_form` returns them.
    """

    cuis: tuple[str, ...] = ()
    name: str = ""
    forms: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    parents: frozenset[str] = frozenset()


FindInfo = Callable[[str], ConceptInfo]


def is_short_form(mention: str) -> bool:
    """Return whether a mention looks like an abbreviation: "MI", "NIDDM", "COVID-19".

    That is a text of 2 to 10 characters for which `is_abbreviation` is true, or a word
    with at least two capitals that are at least half of its letters.
    """
    if not SHORTEST_SHORT_FORM <= len(mention) <= LONGEST_SHORT_FORM:
        return False
    letters = sum(character.isalpha() for character in mention)
    capitals = sum(character.isupper() for character in mention)
    one_word = len(mention.split()) == 1
    return is_abbreviation(mention) or (
        one_word and capitals >= 2 and 2 * capitals >= letters
    )


def find_ancestors(cuis: Collection[str], info: FindInfo) -> set[str]:
    """Find the concepts that are up to `STEPS` steps above some concepts."""
    ancestors: set[str] = set()
    level = set(cuis)
    for _ in range(STEPS):
        level = {parent for cui in level for parent in info(cui).parents} - ancestors
        ancestors |= level
    return ancestors


def classify_error(
    mention: str,
    parts: Parts,
    ranking: Sequence[Scored],
    info: FindInfo,
    *,
    k: int = 5,
    nearest: frozenset[str] = frozenset(),
) -> str | None:
    """Return the cause of a wrong first answer.

    An answer is wrong if it does not count for Acc@1 strict by concepts.

    Args:
        parts: From `combine_parts`.
        ranking: From `list_concepts`.
        k: Answers that make a near miss.
        nearest: The concepts of the row that exact search ranks first, if its score is
            above that of the first answer.

    Returns:
        One of `CAUSES`; None if the answer is right.
    """
    lenient, _, strict = score_ranking(ranking, parts, 1)
    if strict:
        return None
    if not all(parts):
        return "not covered"
    if len(parts) > 1:
        return "composite"
    if not ranking:
        return "no answer"
    if lenient:
        return "tie"
    (gold,), (_, answer) = parts, ranking[0]
    if nearest & gold:
        return "index miss"
    form = name_form(mention)
    if not any(form in info(cui).forms for cui in gold):
        if form in info(answer).forms:
            return "equal name elsewhere"
        if is_short_form(mention):
            return "abbreviation"
    if answer in find_ancestors(gold, info):
        return "too general"
    if not gold.isdisjoint(find_ancestors([answer], info)):
        return "too specific"
    types = frozenset().union(*(info(cui).types for cui in gold))
    if types and info(answer).types and types.isdisjoint(info(answer).types):
        return "wrong type"
    near, _, _ = score_ranking(ranking, parts, k)
    return "near miss" if near else "synonym missing"
