"""Why a link is wrong: one list of causes, and the one that explains a mention.

`evaluate --errors`, `explain --expected` and the quality of the service read it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ..kb.knowledge_base import KnowledgeBase
from ..linking.candidates import Candidate
from ..linking.difference import compare_texts
from ..linking.text import is_abbreviation
from .accuracy import Parts, Scored, score_ranking
from .gold_mentions import group_aliases
from .rankers import kb_lookup

SHORTEST_SHORT_FORM, LONGEST_SHORT_FORM = 2, 10  # characters, e.g. "MI", "SARS-CoV-2"


@dataclass(frozen=True)
class Cause:
    """A cause of a wrong link; the right concept is that of the annotation.

    Attributes:
        detail: What to do with one mention: a format of the values of `suggest`.
        of_linker: Whether it needs the settings of a linker. `evaluate` has none.
    """

    name: str
    meaning: str
    advice: str
    detail: str = ""
    of_linker: bool = False

    @property
    def text(self) -> str:
        """What it means and what to do."""
        return f"{self.meaning} {self.advice}"


# In order of precedence: what no encoder can solve; settings and errors of the search;
# then names, hierarchy and types, from the most to the least certain; then the rank.
CAUSES: dict[str, Cause] = {
    cause.name: cause
    for cause in (
        Cause(
            "spurious",
            "The mention means no concept, but it is linked.",
            "Set a higher threshold, or deny the concept.",
            of_linker=True,
        ),
        Cause(
            "removed",
            "The right concept was removed from the knowledge base.",
            "Add it again with all its names.",
            "{add}",
            of_linker=True,
        ),
        Cause(
            "not covered",
            "The knowledge base does not have the right concept.",
            "Check the id, map it with --aliases, or add the concept with all its "
            "names.",
            "{add}",
        ),
        Cause(
            "composite",
            "The mention means several concepts, and one answer is one concept.",
            "Split such mentions before linking.",
        ),
        Cause(
            "no answer",
            "The mention has no letter or digit, or the encoder cannot read it.",
            "Mark another text.",
        ),
        Cause(
            "unreadable",
            "The encoder cannot read any name of the right concept.",
            "Add a name that the encoder can read.",
            "{add}",
            of_linker=True,
        ),
        Cause(
            "filtered",
            "The filter removes the right concept.",
            "Change the filter.",
            "Fields that remove it: {fields}. Its types are {types}.",
            of_linker=True,
        ),
        Cause(
            "not accepted",
            "The right concept is the first, but it is not linked.",
            "Lower the `threshold` or `least_cosine`, or set `ambiguous = "
            '"link"`, as the note says. That adds wrong links elsewhere.',
            "The note is {note}: its probability is {probability}, the `threshold` is "
            "{threshold}{cosines}.",
            of_linker=True,
        ),
        Cause(
            "excluded",
            "The right concept is the first, but it differs from the mention in what "
            "is never linked: a number, quantity, letter, sign, case, order, negation "
            "or opposite, or another word or part of a word.",
            "Check the annotation, or add the mention as a name.",
            "{add}",
            of_linker=True,
        ),
        Cause(
            "decided",
            "People decided that the mention means something else.",
            "Teach the mention again, as a term of a table with the right id.",
            of_linker=True,
        ),
        Cause(
            "tie",
            "The right concept has the same score as the first, mostly for the same "
            "name.",
            "Only the context can decide.",
        ),
        Cause(
            "index miss",
            "Exact search ranks the right concept first, but the index did not find "
            "it.",
            "Set a larger ef or `k`, or build the index with more connections or with "
            "`--backend exact`.",
        ),
        Cause(
            "equal name elsewhere",
            "The mention is a name of the first concept and not of the right one.",
            "Add the name to the right concept, or check the annotation.",
        ),
        Cause(
            "abbreviation",
            "The mention is a short form and not a name of the right concept.",
            "Expand abbreviations from the document, or add the short form.",
        ),
        Cause(
            "too general",
            "The first concept is an ancestor of the right one.",
            "Train the encoder with the hierarchy.",
        ),
        Cause(
            "too specific",
            "The first concept is a descendant of the right one.",
            "Train the encoder with the hierarchy.",
        ),
        Cause(
            "wrong type",
            "The first and the right concept share no semantic type.",
            "Set `label_types`, or filter by type.",
        ),
        Cause(
            "near miss",
            "The right concept is among the first concepts, but not the first.",
            "Train the encoder on such pairs, or teach the order.",
        ),
        Cause(
            "synonym missing",
            "The right concept is not among the first concepts.",
            "Add synonyms.",
        ),
    )
}
STEPS = 3  # the longest distance in the hierarchy


class KnownConcept(NamedTuple):
    """What causes are derived from; empty for an id without a concept.

    `cuis` are the id, or those of the vocabulary that it stands for; `name` is of the
    first.
    """

    cuis: tuple[str, ...] = ()
    name: str = ""
    names: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    parents: frozenset[str] = frozenset()

    def has_name(self, mention: str) -> bool:
        """Return whether a mention is a way to write one of the names."""
        return any(compare_texts(mention, name).same for name in self.names)


FindInfo = Callable[[str], KnownConcept]


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


def info_finder(kb: KnowledgeBase, aliases: dict[str, str]) -> FindInfo:
    """Return the function that finds what is known of an id, see `KnownConcept`."""
    groups, lookup = group_aliases(aliases), kb_lookup(kb)

    def live_id(cui: str) -> str:
        live = lookup(cui) or cui
        return aliases.get(live, live)

    @cache
    def info(cui: str) -> KnownConcept:
        members = sorted({cui, *groups.get(cui, ())})
        found = [(member, kb.concept(member)) for member in members]
        # The concept of a retired id has another id.
        concepts = [concept for cui, concept in found if concept and concept.cui == cui]
        return KnownConcept(
            tuple(concept.cui for concept in concepts),
            concepts[0].name if concepts else "",
            frozenset(alias for c in concepts for alias in c.aliases),
            frozenset(kind for c in concepts for kind in c.types),
            frozenset(live_id(parent) for c in concepts for parent in c.parents),
        )

    return info


def score_candidates(candidates: Sequence[Candidate]) -> list[Scored]:
    """Return ranks as scores, since a learned order is not that of the cosines."""
    ranking: list[Scored] = []
    for candidate in candidates:
        first = candidates[0]
        tied = first["tie"] and candidate["score"] == first["score"]
        rank = 1 if tied else candidate["rank"]
        ranking.append((-float(rank), candidate["cui"]))
    return ranking


def find_cause(
    mention: str,
    parts: Parts,
    ranking: Sequence[Scored],
    info: FindInfo,
    *,
    k: int = 5,
    nearest: frozenset[str] = frozenset(),
) -> str | None:
    """Return the cause of a wrong first answer by Acc@1 strict; None if it is right.

    Args:
        parts: From `combine_parts`.
        ranking: From `list_concepts` or `score_candidates`.
        k: Answers that make a near miss.
        nearest: The concepts of the nearest row, if the index does not find it.
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
    if not any(info(cui).has_name(mention) for cui in gold):
        if info(answer).has_name(mention):
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
