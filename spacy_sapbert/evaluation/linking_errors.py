"""A knowledge base, gold mentions and answers → every wrong answer with its cause."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import (
    NamedTuple,
)

import numpy as np

from spacy_sapbert.evaluation.accuracy import (
    Answer,
    Parts,
    Scored,
    combine_parts,
    list_concepts,
)
from spacy_sapbert.evaluation.error_causes import (
    PLAIN_CAUSES,
    ConceptFacts,
    Facts,
    name_cause,
)
from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    Lookup,
    Resolve,
    group_aliases,
)
from spacy_sapbert.evaluation.kb_ranker import embed_mentions, iterate_blocks
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.linking.surface_forms import name_form
from spacy_sapbert.vocabularies.concepts import Concept

QUERIES_AT_ONCE = 256  # so that their cosines with one block stay small
# Scores are rounded to six digits, so that two of one row may differ by half of the
# last one, and by what float32 sums differ.
TOLERANCE = 2e-6

FindConcepts = Callable[[str], list[Concept]]
# For each part of a mention the ids of its concepts, or else what the file says.
Gold = tuple[tuple[str, ...], ...]


class Mistake(NamedTuple):
    """One gold mention whose first answer is not right for certain.

    file (str): Name of the file.
    line (int): Its line there.
    mention (str): The text.
    gold (Gold): What it means.
    parts (tuple[frozenset[str], ...]): What would have been right, from
        `combine_parts`.
    cause (str): One of `CAUSES`.
    """

    file: str
    line: int
    mention: str
    gold: Gold
    parts: tuple[frozenset[str], ...]
    cause: str


def make_concept_finder(kb: KnowledgeBase, aliases: dict[str, str]) -> FindConcepts:
    """Make the function that gives the concepts that an id stands for.

    kb (KnowledgeBase): The knowledge base.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (FindConcepts): Mostly gives one; several if ids of the knowledge base are
        aliases of each other; none for an id that it does not have.
    """
    groups = group_aliases(aliases)

    @cache
    def find(cui: str) -> list[Concept]:
        members = sorted({cui, *groups.get(cui, ())})
        found = ((member, kb.concept(member)) for member in members)
        # A retired id gives a concept that goes by another id.
        return [concept for cui, concept in found if concept and concept.cui == cui]

    return find


def make_facts(find: FindConcepts, lookup: Lookup, aliases: dict[str, str]) -> Facts:
    """Make the function that gives what causes are read from.

    find (FindConcepts): From `make_concept_finder`.
    lookup (Lookup): Gives the concept that has an id or had it once.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (Facts): Gives the facts of each concept.
    """

    def live_id(cui: str) -> str:
        live = lookup(cui) or cui
        return aliases.get(live, live)

    @cache
    def facts(cui: str) -> ConceptFacts:
        concepts = find(cui)
        return ConceptFacts(
            frozenset(name_form(alias) for c in concepts for alias in c.aliases),
            frozenset(kind for c in concepts for kind in c.types),
            frozenset(live_id(parent) for c in concepts for parent in c.parents),
        )

    return facts


def find_nearest_rows(
    kb: KnowledgeBase, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest row by comparing with every vector.

    kb (KnowledgeBase): The knowledge base.
    queries (np.ndarray): Unit vectors. Shape: (n, width).
    RETURNS (tuple[np.ndarray, np.ndarray]): Rows and cosines. Shape: (n,) each.
    """
    rows = np.zeros(len(queries), dtype=np.int64)
    best = np.full(len(queries), -np.inf, dtype=np.float32)
    first = 0
    for block in iterate_blocks(kb):
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            part = slice(start, start + QUERIES_AT_ONCE)
            cosines = queries[part] @ block.T  # (up to QUERIES_AT_ONCE, block)
            places = cosines.argmax(axis=1)
            highest = cosines[np.arange(len(cosines)), places]
            better = highest > best[part]
            best[part][better] = highest[better]
            rows[part][better] = first + places[better]
        first += len(block)
    return rows, best


def find_missed_concepts(
    kb: KnowledgeBase, scores: dict[str, float], aliases: dict[str, str]
) -> dict[str, frozenset[str]]:
    """Find what exact search puts before the first answer of the index.

    kb (KnowledgeBase): The knowledge base.
    scores (dict[str, float]): Of the first answer to each mention.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (dict[str, frozenset[str]]): The concepts of the nearest row, for those
        mentions for which it is nearer than the first answer.
    """
    if not scores or kb.meta["index"]["backend"] == "exact":
        return {}
    mentions = list(scores)
    numbers, queries = embed_mentions(kb, mentions)
    rows, cosines = find_nearest_rows(kb, queries)
    entries = kb.entries(np.unique(rows).tolist())
    return {
        mentions[number]: frozenset(
            aliases.get(entry.cui, entry.cui) for entry in entries.get(row, ())
        )
        for number, row, cosine in zip(
            numbers.tolist(), rows.tolist(), cosines.tolist(), strict=True
        )
        if cosine > scores[mentions[number]] + TOLERANCE
    }


def name_gold(gold: GoldMention, concepts: Parts, aliases: dict[str, str]) -> Gold:
    """Name what a mention means, so that equal meanings have equal names.

    gold (GoldMention): The mention.
    concepts (Parts): The concepts of each part, before they are combined.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (Gold): Sorted.
    """
    parts: set[tuple[str, ...]] = set()
    for found, ids in zip(concepts, gold.parts, strict=True):
        parts.add(tuple(sorted(found or {aliases.get(cui, cui) for cui in ids})))
    return tuple(sorted(parts))


def find_mistakes(
    golds: Iterable[tuple[str, GoldMention]],
    answers: dict[str, list[Answer]],
    resolve: Resolve,
    facts: Facts,
    search: Callable[[dict[str, float]], dict[str, frozenset[str]]],
    aliases: dict[str, str],
    settings: EvaluationSettings,
    *,
    steps: int = 3,
) -> tuple[list[Mistake], Counter]:
    """Find all wrong answers, and why they are wrong.

    golds (Iterable[tuple[str, GoldMention]]): Names of files, and mentions with an id.
    answers (dict[str, list[Answer]]): To the text of each, best first.
    resolve (Resolve): Gives the concepts of each part of a mention.
    facts (Facts): What is known of each concept.
    search (Callable): Gives for mentions, with the scores of their first answers, the
        concepts of rows that the index missed; see `find_missed_concepts`.
    aliases (dict[str, str]): Ids that another one stands for.
    settings (EvaluationSettings): How answers are judged; the last of `ks` is the
        number of answers that make a near miss.
    steps (int): See `name_cause`.
    RETURNS (tuple[list[Mistake], Counter]): The mistakes in the order of the mentions,
        and how often each meaning was judged.
    """
    judged: Counter = Counter()
    rankings: dict[str, list[Scored]] = {}
    found: list[Mistake] = []

    @cache  # the same mentions come again and again
    def cause_of(
        mention: str, parts: tuple[frozenset[str], ...], nearest: frozenset[str]
    ) -> str | None:
        ranking, k = rankings[mention], settings.ks[-1]
        return name_cause(
            mention, parts, ranking, facts, k=k, steps=steps, nearest=nearest
        )

    for file, gold in golds:
        concepts = resolve(gold)
        parts = tuple(combine_parts(concepts, settings.composite))
        meaning = name_gold(gold, concepts, aliases)
        judged[meaning] += 1
        rankings.setdefault(gold.mention, list_concepts(answers[gold.mention]))
        if cause := cause_of(gold.mention, parts, frozenset()):
            row = file, gold.line, gold.mention, meaning, parts, cause
            found.append(Mistake(*row))
    asked = {
        mistake.mention: rankings[mistake.mention][0][0]
        for mistake in found
        if mistake.cause not in PLAIN_CAUSES
    }
    missed = search(asked)
    for number, mistake in enumerate(found):
        nearest = missed.get(mistake.mention, frozenset())
        if nearest and mistake.cause not in PLAIN_CAUSES:
            cause = cause_of(mistake.mention, mistake.parts, nearest)
            found[number] = mistake._replace(cause=cause or mistake.cause)
    return found, judged
