"""Wrong answers → plain data, by cause and by concept, the most frequent first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.error_causes import CAUSES, Facts
from spacy_sapbert.evaluation.linking_errors import FindConcepts, Gold, Mistake
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.vocabularies.concepts import Concept

Describe = Callable[[Mistake], dict[str, Any]]


class Limits(NamedTuple):
    """How much is shown; the rest is counted. 0 = all.

    groups (int): Gold concepts of each cause, and of all.
    mentions (int): Different mentions of each gold concept.
    names (int): Names of each gold concept.
    lines (int): Lines in which a mention stands.
    """

    groups: int = 200
    mentions: int = 20
    names: int = 20
    lines: int = 5


class Sources(NamedTuple):
    """Where concepts and answers are looked up.

    kb (KnowledgeBase): The knowledge base.
    find (FindConcepts): Gives the concepts that an id stands for.
    facts (Facts): Gives what is known of a concept.
    answers (dict[str, list[Answer]]): To the text of each mention, best first.
    aliases (dict[str, str]): Ids that another one stands for.
    """

    kb: KnowledgeBase
    find: FindConcepts
    facts: Facts
    answers: dict[str, list[Answer]]
    aliases: dict[str, str]


def describe_concept(concept: Concept, most: int) -> dict[str, Any]:
    """Write a gold concept down.

    concept (Concept): The concept.
    most (int): Names at the most; 0 = all.
    RETURNS (dict[str, Any]): Plain JSON types.
    """
    names = concept.aliases[: most or None]
    return {
        "cui": concept.cui,
        "name": concept.name,
        "types": concept.types,
        "names": names,
        "more_names": len(concept.aliases) - len(names),
    }


def describe_gold(gold: Gold, find: FindConcepts, most: int) -> list[Any]:
    """Write down what a mention means.

    gold (Gold): The ids of each part.
    find (FindConcepts): Gives the concepts that an id stands for.
    most (int): Names of each concept at the most; 0 = all.
    RETURNS (list[list[dict[str, Any]]]): For each part the concepts of which one is to
        be found; of an id without a concept the `cui` alone.
    """
    parts: list[Any] = []
    for part in gold:
        found = [(cui, find(cui)) for cui in part]
        parts.append(
            [
                described
                for cui, concepts in found
                for described in (
                    [describe_concept(concept, most) for concept in concepts]
                    or [{"cui": cui}]
                )
            ]
        )
    return parts


def list_candidates(mistake: Mistake, k: int, sources: Sources) -> list[dict[str, Any]]:
    """Write down what was answered.

    mistake (Mistake): A wrong answer.
    k (int): How many answers; one more if the first right one comes later.
    sources (Sources): Where things are looked up.
    RETURNS (list[dict[str, Any]]): The best first, as the candidates of the linker,
        with their `place` from 1, and whether they are `right`.
    """
    right = frozenset().union(*mistake.parts)
    best: dict[str, Answer] = {}
    for answer in sources.answers[mistake.mention]:
        best.setdefault(answer.cui, answer)
    places = {cui: place for place, cui in enumerate(best, 1)}
    first_right = min((places[cui] for cui in right & set(places)), default=0)
    chosen = [a for a in best.values() if places[a.cui] <= k]
    chosen += [a for a in best.values() if places[a.cui] == first_right > k]
    entries = sources.kb.entries(answer.row for answer in chosen)
    candidates: list[dict[str, Any]] = []
    for answer in chosen:
        # Of several names on the row the one that the linker would show.
        entry = min(
            (
                entry
                for entry in entries[answer.row]
                if sources.aliases.get(entry.cui, entry.cui) == answer.cui
            ),
            key=lambda entry: (not entry.preferred, entry.cui, entry.alias),
        )
        candidates.append(
            {
                "place": places[answer.cui],
                "cui": entry.cui,
                "name": entry.name,
                "alias": entry.alias,
                "score": answer.score,
                "types": sorted(sources.facts(answer.cui).types),
                "right": answer.cui in right,
            }
        )
    return candidates


def split_by_meaning(mistakes: Iterable[Mistake]) -> list[tuple[Gold, list[Mistake]]]:
    """Sort mistakes out by what the mentions mean.

    mistakes (Iterable[Mistake]): Any.
    RETURNS (list[tuple[Gold, list[Mistake]]]): Those most often missed first.
    """
    found: dict[Gold, list[Mistake]] = defaultdict(list)
    for mistake in mistakes:
        found[mistake.gold].append(mistake)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def describe_mentions(
    mistakes: Iterable[Mistake], describe: Describe, limits: Limits
) -> dict[str, Any]:
    """Write down the mentions of one gold concept.

    mistakes (Iterable[Mistake]): All of one meaning.
    describe (Describe): Gives what else is said of a mention.
    limits (Limits): How much is shown.
    RETURNS (dict[str, Any]): The `mentions`, the most frequent first, and how many are
        `left_out`.
    """
    same: dict[str, list[Mistake]] = defaultdict(list)
    for mistake in mistakes:
        same[mistake.mention].append(mistake)
    ordered = sorted(same.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = limits.mentions or len(ordered)
    mentions = [
        {
            "mention": mention,
            "count": len(found),
            "lines": [f"{m.file}:{m.line}" for m in found[: limits.lines or None]],
            **describe(found[0]),
        }
        for mention, found in ordered[:shown]
    ]
    left_out = sum(len(found) for _, found in ordered[shown:])
    return {"mentions": mentions, "left_out": left_out}


def group_by_cause(
    mistakes: Sequence[Mistake], k: int, sources: Sources, limits: Limits
) -> list[dict[str, Any]]:
    """Write mistakes down by cause, and under each by gold concept.

    mistakes (Sequence[Mistake]): All of them.
    k (int): How many answers are shown.
    sources (Sources): Where things are looked up.
    limits (Limits): How much is shown.
    RETURNS (list[dict[str, Any]]): One for each of `CAUSES`, also those without any.
    """

    def describe(mistake: Mistake) -> dict[str, Any]:
        return {"candidates": list_candidates(mistake, k, sources)}

    causes: list[dict[str, Any]] = []
    for cause, about in CAUSES.items():
        found = [mistake for mistake in mistakes if mistake.cause == cause]
        groups = split_by_meaning(found)
        shown = limits.groups or len(groups)
        causes.append(
            {
                "cause": cause,
                "about": about,
                "count": len(found),
                "share": round(len(found) / len(mistakes), 6) if mistakes else 0.0,
                "concepts": [
                    {
                        "gold": describe_gold(gold, sources.find, limits.names),
                        "count": len(members),
                        **describe_mentions(members, describe, limits),
                    }
                    for gold, members in groups[:shown]
                ],
                "concepts_left_out": len(groups[shown:]),
                "left_out": sum(len(members) for _, members in groups[shown:]),
            }
        )
    return causes


def group_by_concept(
    mistakes: Sequence[Mistake],
    judged: dict[Gold, int],
    sources: Sources,
    limits: Limits,
) -> dict[str, Any]:
    """Write mistakes down by gold concept.

    mistakes (Sequence[Mistake]): All of them.
    judged (dict[Gold, int]): How often each meaning was judged.
    sources (Sources): Where things are looked up.
    limits (Limits): How much is shown.
    RETURNS (dict[str, Any]): The `concepts`, those most often missed first, and how
        many are left out, with how many mentions.
    """

    def describe(mistake: Mistake) -> dict[str, Any]:
        first = list_candidates(mistake, 1, sources)[:1]
        return {"cause": mistake.cause, "answer": first[0] if first else None}

    groups = split_by_meaning(mistakes)
    shown = limits.groups or len(groups)
    concepts: list[dict[str, Any]] = []
    for gold, members in groups[:shown]:
        causes = Counter(mistake.cause for mistake in members)
        concepts.append(
            {
                "gold": describe_gold(gold, sources.find, limits.names),
                "count": len(members),
                "judged": judged[gold],
                "causes": {cause: causes[cause] for cause in CAUSES if causes[cause]},
                **describe_mentions(members, describe, limits),
            }
        )
    return {
        "concepts": concepts,
        "concepts_left_out": len(groups[shown:]),
        "left_out": sum(len(members) for _, members in groups[shown:]),
    }
