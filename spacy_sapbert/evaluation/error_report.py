"""Wrong answers with their causes, as a table."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.gold import GoldMention
from ..io.tables.files import JSONL, find_kind, write_table
from ..io.tables.spreadsheets import Cell
from ..io.writing import write_atomically
from ..kb.knowledge_base import KnowledgeBase
from .accuracy import Answer, combine_parts, list_concepts
from .diagnose import CAUSES, find_cause, info_finder
from .gold_mentions import make_resolver
from .rankers import embed_mentions, exact_search, kb_lookup
from .score_mentions import EvaluationSettings

# Of the table; `rank` is that of the right concept.
COLUMNS = (
    *("cause", "mention", "gold", "gold_names", "cui", "name", "alias", "score"),
    *("rank", "file", "line"),
)
TOLERANCE = 2e-6  # by which cosines of one row may differ


@dataclass(frozen=True)
class ScoredAnswer:
    """An answer to a mention, with its rank and whether it is right."""

    rank: int
    cui: str
    name: str
    alias: str
    score: float
    right: bool


@dataclass(frozen=True)
class LinkingError:
    """A gold mention whose first answer is wrong.

    Attributes:
        gold: For each part the ids of its concepts, or else those given.
        rank: Rank of the first right answer.
        answers: The first k and the first right one.
    """

    file: str
    line: int
    mention: str
    cause: str
    gold: list[list[str]]
    gold_names: list[str]
    rank: int | None
    answers: list[ScoredAnswer]


def find_missed_concepts(
    kb: KnowledgeBase, mentions: Sequence[str], aliases: dict[str, str]
) -> dict[str, frozenset[str]]:
    """Find the concepts of the nearest row, where the index finds only others."""
    if not mentions or kb.manifest.index.backend == "exact":
        return {}
    numbers, vectors = embed_mentions(kb, mentions)
    rows, cosines = exact_search(kb, vectors, 1)
    _, found = kb.search(vectors, 1)
    missed = (cosines > found + TOLERANCE)[:, 0]
    entries = kb.entries(np.unique(rows[missed]).tolist())
    return {
        mentions[number]: frozenset(
            aliases.get(entry.cui, entry.cui) for entry in entries.get(row, ())
        )
        for number, row in zip(
            numbers[missed].tolist(), rows[missed, 0].tolist(), strict=True
        )
    }


def find_errors(
    kb: KnowledgeBase,
    golds: Iterable[tuple[str, GoldMention]],
    answers: dict[str, list[Answer]],
    aliases: dict[str, str],
    settings: EvaluationSettings,
) -> list[LinkingError]:
    """Find all wrong first answers and their causes, in the order of the mentions.

    `answers` has the best ones first. The last of `ks` is the depth of a near miss.
    """
    k = settings.ks[-1]
    info, resolve = info_finder(kb, aliases), make_resolver(kb_lookup(kb), aliases)

    rankings = {text: list_concepts(found) for text, found in answers.items()}

    @cache  # corpora repeat mentions
    def classify(mention: str, parts: Any, nearest: frozenset[str]) -> str | None:
        ranking = rankings[mention]
        return find_cause(mention, parts, ranking, info, k=k, nearest=nearest)

    wrong: list[tuple[str, GoldMention, Any]] = []
    for file, gold in golds:
        parts = tuple(combine_parts(resolve(gold), settings.composite))
        if classify(gold.mention, parts, frozenset()):
            wrong.append((file, gold, parts))
    texts = sorted({gold.mention for _, gold, _ in wrong})
    missed = find_missed_concepts(kb, [t for t in texts if answers[t]], aliases)
    errors: list[LinkingError] = []
    for file, gold, parts in wrong:
        nearest = missed.get(gold.mention, frozenset())
        cause = classify(gold.mention, parts, nearest) or ""
        right = frozenset().union(*parts)
        listed = describe_answers(kb, answers[gold.mention], right, aliases, k)
        rank = next((answer.rank for answer in listed if answer.right), None)
        ids = [
            sorted({c for cui in found for c in info(cui).cuis} or given)
            for found, given in zip(resolve(gold), gold.parts, strict=True)
        ]
        names = [info(cui).name for part in ids for cui in part]
        case = file, gold.line, gold.mention, cause
        errors.append(LinkingError(*case, ids, names, rank, listed))
    return errors


def describe_answers(
    kb: KnowledgeBase,
    answers: Sequence[Answer],
    right: frozenset[str],
    aliases: dict[str, str],
    k: int,
) -> list[ScoredAnswer]:
    """Return the k best concepts and the first right one."""
    best = {answer.cui: answer for answer in reversed(answers)}
    ranking = [cui for _, cui in list_concepts(answers)]
    first = next((rank for rank, cui in enumerate(ranking) if cui in right), 0)
    described: list[ScoredAnswer] = []
    for rank in sorted({*range(min(k, len(ranking))), *([first] if ranking else [])}):
        row, cui, score, candidate = best[ranking[rank]]
        if candidate is not None:
            names = candidate["cui"], candidate["name"], candidate["alias"]
            score = candidate["score"]
        else:
            entries = [
                entry
                for entry in kb.entries([row])[row]
                if aliases.get(entry.cui, entry.cui) == cui
            ]
            # The linker shows the first one, too, of several names in a row.
            shown = min(entries, key=lambda e: (not e.preferred, e.cui, e.alias))
            names = shown.cui, shown.name, shown.alias
        described.append(ScoredAnswer(rank + 1, *names, score, cui in right))
    return described


def count_causes(errors: Iterable[LinkingError]) -> dict[str, int]:
    """Return the number of errors of each cause, in the order of `CAUSES`."""
    counts = Counter(error.cause for error in errors)
    return {name: counts[name] for name in CAUSES if not CAUSES[name].of_linker}


def write_errors(path: Path, errors: Iterable[LinkingError]) -> None:
    """Write a table of errors with their first answers, or JSON lines with all."""
    if find_kind(path) != JSONL:
        write_table(path, COLUMNS, map(list_cells, errors))
        return
    with write_atomically(path) as file:
        for error in errors:
            line = json.dumps(asdict(error), ensure_ascii=False)
            file.write(line.encode("utf8", "replace") + b"\n")


def list_cells(error: LinkingError) -> list[Cell]:
    """Return the cells of `COLUMNS`."""
    first = error.answers[0] if error.answers else None
    answer = (first.cui, first.name, first.alias, first.score) if first else [None] * 4
    gold = " + ".join("|".join(part) for part in error.gold)
    names = " + ".join(filter(None, error.gold_names))
    place = (error.file, error.line)
    return [error.cause, error.mention, gold, names, *answer, error.rank, *place]
