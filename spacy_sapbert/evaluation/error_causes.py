"""A wrong answer → its cause, one of a few and the first that holds."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from spacy_sapbert.evaluation.accuracy import Parts, Scored, judge_ranking
from spacy_sapbert.linking.surface_forms import is_abbreviation, name_form

SHORTEST_SHORT_FORM, LONGEST_SHORT_FORM = 2, 10  # characters, e.g. "MI", "SARS-CoV-2"

# In order of precedence: first what no encoder could have put right, then what the
# search did wrong, then what is known of names, hierarchy and types, from the surest to
# the vaguest, and at last where the gold concept stands.
CAUSES: dict[str, str] = {
    "not covered": "The knowledge base has no concept of a gold id. Add the concept, "
    "or say with --aliases which id it goes by.",
    "composite": "The mention means several concepts, and one answer is one concept. "
    "Split such mentions before they are linked.",
    "no answer": "The mention has no letter or digit, or none that the encoder can "
    "read, so that nothing was searched for.",
    "tie": "A gold concept has the same score as the first answer, mostly for the same "
    "name. No encoder of names can tell them apart; only the context can.",
    "index miss": "Exact search over all rows puts a gold concept first, the index did "
    "not find it. Raise ef, or build the index with more connections.",
    "equal name elsewhere": "The mention is a name of the answer and none of the gold "
    "concept. Add the name to the gold concept, or look at the annotation.",
    "abbreviation": "The mention is a short form in capitals, and no name of the gold "
    "concept. Expand abbreviations from the document, or add the short form.",
    "too general": "The answer is an ancestor of the gold concept.",
    "too specific": "The answer is a descendant of the gold concept.",
    "wrong type": "The answer and the gold concept share no semantic type.",
    "near miss": "A gold concept is among the first answers, but not the first. The "
    "encoder has to order better: train on such pairs, or rank again.",
    "synonym missing": "No gold concept is among the first answers: the knowledge base "
    "has no name that is like the mention to this encoder. Add synonyms.",
}
# Those for which no concept is looked at.
PLAIN_CAUSES = ("not covered", "composite", "no answer", "tie")


class ConceptFacts(NamedTuple):
    """What causes are read from; all empty for an id that is no concept.

    forms (frozenset[str]): The names, as `name_form` gives them.
    types (frozenset[str]): The semantic types.
    parents (frozenset[str]): The concepts one step up.
    """

    forms: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    parents: frozenset[str] = frozenset()


Facts = Callable[[str], ConceptFacts]  # id of a concept → what is known of it


def is_short_form(mention: str) -> bool:
    """Return whether a mention looks like an abbreviation: "MI", "NIDDM", "COVID-19".

    mention (str): The mention.
    RETURNS (bool): Whether it is short, and `is_abbreviation` or one word of which at
        least half of the letters are capitals, and two of them.
    """
    if not SHORTEST_SHORT_FORM <= len(mention) <= LONGEST_SHORT_FORM:
        return False
    letters = sum(character.isalpha() for character in mention)
    capitals = sum(character.isupper() for character in mention)
    one_word = len(mention.split()) == 1
    return is_abbreviation(mention) or (
        one_word and capitals >= 2 and 2 * capitals >= letters
    )


def count_steps(
    starts: Collection[str], goals: Collection[str], facts: Facts, most: int
) -> int | None:
    """Count the steps up from some concepts to others.

    starts (Collection[str]): Where to begin.
    goals (Collection[str]): Where to get to.
    facts (Facts): Gives the parents of each concept; they may lead in circles.
    most (int): Steps to go at the most.
    RETURNS (int | None): The fewest steps, at least 1; None if no way is as short.
    """
    wanted, seen = set(goals), set(starts)
    level = set(starts)
    for steps in range(1, most + 1):
        level = {parent for cui in level for parent in facts(cui).parents} - seen
        if level & wanted:
            return steps
        if not level:
            break
        seen |= level
    return None


def name_relation(
    answer: str, gold: frozenset[str], facts: Facts, *, steps: int
) -> str | None:
    """Say what an answer is to the gold concepts, by the hierarchy.

    answer (str): The concept that was answered.
    gold (frozenset[str]): Those that would have been right.
    facts (Facts): What is known of each concept.
    steps (int): How far two concepts may be apart.
    RETURNS (str | None): "too general", "too specific" or None. In a circle the
        shorter way counts, and of equal ones the way up.
    """
    up = count_steps(gold, [answer], facts, steps)
    down = count_steps([answer], gold, facts, steps if up is None else up - 1)
    if down is not None:
        return "too specific"
    return None if up is None else "too general"


def name_cause(
    mention: str,
    parts: Parts,
    ranking: Sequence[Scored],
    facts: Facts,
    *,
    k: int = 5,
    steps: int = 3,
    nearest: frozenset[str] = frozenset(),
) -> str | None:
    """Say why the first answer to a mention is wrong.

    An answer is wrong if it is not right for certain, i.e. if it does not count for
    Acc@1 strict by concepts.

    mention (str): The text.
    parts (Parts): What is right, from `combine_parts`.
    ranking (Sequence[Scored]): The answers, from `list_concepts`.
    facts (Facts): What is known of each concept.
    k (int): How many answers make a near miss.
    steps (int): How far up or down the hierarchy counts.
    nearest (frozenset[str]): The concepts of the row that exact search puts first, if
        it is nearer than the first answer; empty if not, or not asked.
    RETURNS (str | None): One of `CAUSES`; None if the answer is right.
    """
    lenient, _, strict = judge_ranking(ranking, parts, 1)
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
    if not any(form in facts(cui).forms for cui in gold):
        if form in facts(answer).forms:
            return "equal name elsewhere"
        if is_short_form(mention):
            return "abbreviation"
    if relation := name_relation(answer, gold, facts, steps=steps):
        return relation
    types = frozenset().union(*(facts(cui).types for cui in gold))
    if types and facts(answer).types and types.isdisjoint(facts(answer).types):
        return "wrong type"
    near, _, _ = judge_ranking(ranking, parts, k)
    return "near miss" if near else "synonym missing"
