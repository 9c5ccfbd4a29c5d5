"""Gold mentions and the answers of a linker → coverage and accuracy."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
)

import numpy as np
from tqdm import tqdm

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import (
    COMPOSITES,
    Answer,
    Rank,
    combine_parts,
    judge_answers,
    list_concepts,
    summarise_judgements,
)
from spacy_sapbert.evaluation.gold_mentions import (
    GoldMention,
    Lookup,
    fold_text,
    make_resolver,
    read_mentions,
)
from spacy_sapbert.evaluation.seen_mentions import Pair, is_seen

MENTIONS_AT_ONCE = 256


class EvaluationSettings(NamedTuple):
    """How answers are judged.

    ks (tuple[int, ...]): How many answers count.
    composite (str): See `combine_parts`.
    bars_join_parts (bool): See `split_ids`.
    distinct (bool): Count each pair of a mention and its ids once.
    limit (int): Judge the first mentions of a file only; 0 = all.
    """

    ks: tuple[int, ...] = (1, 5)
    composite: str = "parts"
    bars_join_parts: bool = False
    distinct: bool = False
    limit: int = 0


def make_evaluation_settings(
    k: int,
    *,
    composite: str = "parts",
    bars_join_parts: bool = False,
    distinct: bool = False,
    limit: int = 0,
) -> EvaluationSettings:
    """Make settings of what stands on a command line.

    k (int): How many answers count, besides the first.
    composite (str): See `EvaluationSettings`, also for those that follow.
    bars_join_parts (bool): See above.
    distinct (bool): See above.
    limit (int): See above.
    RETURNS (EvaluationSettings): The settings.
    RAISES (SapbertError): If `composite` is unknown.
    """
    if composite not in COMPOSITES:
        raise SapbertError(
            Errors.E605.format(setting="composite", known=COMPOSITES, value=composite)
        )
    ks = tuple(dict.fromkeys((1, k)))
    return EvaluationSettings(ks, composite, bars_join_parts, distinct, limit)


def choose_mentions(
    path: Path, settings: EvaluationSettings
) -> tuple[list[GoldMention], dict[str, int]]:
    """Read those gold mentions that are judged, and count the others.

    path (Path): The file.
    settings (EvaluationSettings): How answers are judged.
    RETURNS (tuple[list[GoldMention], dict[str, int]]): The mentions; how many there
        were, how many without an id, and how many that were there before.
    RAISES (SapbertError): If none is left.
    """
    counts = {"mentions": 0, "without_id": 0, "repeated": 0}
    chosen: list[GoldMention] = []
    known: set[tuple[str, str]] = set()
    for gold in read_mentions(path, bars_join_parts=settings.bars_join_parts):
        if settings.limit and counts["mentions"] == settings.limit:
            break
        counts["mentions"] += 1
        key = fold_text(gold.mention), repr(sorted(map(sorted, gold.parts)))
        if not gold.parts:
            counts["without_id"] += 1
        elif settings.distinct and key in known:
            counts["repeated"] += 1
        else:
            known.add(key)
            chosen.append(gold)
    if not chosen:
        raise SapbertError(Errors.E708.format(path=path, mentions=counts["mentions"]))
    return chosen, counts


def answer_mentions(
    rank: Rank, mentions: Iterable[str], *, progress: bool = False
) -> dict[str, list[Answer]]:
    """Ask a linker, for each distinct text once.

    rank (Rank): The linker.
    mentions (Iterable[str]): The texts.
    progress (bool): Show a bar.
    RETURNS (dict[str, list[Answer]]): The answers to each text.
    """
    texts = list(dict.fromkeys(mentions))
    answers: dict[str, list[Answer]] = {}
    with tqdm(total=len(texts), unit=" mentions", disable=not progress) as bar:
        for start in range(0, len(texts), MENTIONS_AT_ONCE):
            batch = texts[start : start + MENTIONS_AT_ONCE]
            answers.update(zip(batch, rank(batch), strict=True))
            bar.update(len(batch))
    return answers


def judge_mentions(
    golds: Sequence[GoldMention],
    answers: dict[str, list[Answer]],
    lookup: Lookup,
    aliases: dict[str, str],
    settings: EvaluationSettings,
    *,
    seen: set[Pair] | None = None,
) -> dict[str, Any]:
    """Compute accuracy and coverage of a linker on gold mentions.

    golds (Sequence[GoldMention]): Each with an id.
    answers (dict[str, list[Answer]]): To the text of each, the best first.
    lookup (Lookup): Gives the concept of the dictionary with an id or retired id.
    aliases (dict[str, str]): From `read_aliases`.
    settings (EvaluationSettings): How answers are judged.
    seen (set[Pair] | None): What was in training; None = not asked.
    RETURNS (dict[str, Any]): Coverage, and accuracy by group of mentions.
    """
    resolve = make_resolver(lookup, aliases)
    judgements: list[np.ndarray] = []
    covered: list[bool] = []
    for gold in golds:
        parts = combine_parts(resolve(gold), settings.composite)
        covered.append(all(parts))
        judgements.append(judge_answers(answers[gold.mention], parts, settings.ks))
    chosen = {"all": np.ones(len(golds), dtype=bool), "covered": np.array(covered)}
    if seen is not None:
        chosen["seen"] = np.array([is_seen(gold, seen, aliases) for gold in golds])
        chosen["unseen"] = ~chosen["seen"]
    stacked = np.stack(judgements)  # (n, levels, ks, ties)
    return {
        "judged": len(golds),
        "coverage": round(float(np.mean(covered)), 6),
        "accuracy": {
            name: summarise_judgements(stacked, mask, settings.ks)
            for name, mask in chosen.items()
        },
    }


def list_predictions(
    file: str, golds: Sequence[GoldMention], answers: dict[str, list[Answer]], k: int
) -> list[dict[str, Any]]:
    """Write down what was answered, by line and without the text.

    file (str): Name of the file.
    golds (Sequence[GoldMention]): Its mentions.
    answers (dict[str, list[Answer]]): To the text of each.
    k (int): How many concepts.
    RETURNS (list[dict[str, Any]]): One for each mention.
    """
    rows: list[dict[str, Any]] = []
    for gold in golds:
        best = list_concepts(answers[gold.mention])[:k]
        rows.append(
            {
                "file": file,
                "line": gold.line,
                "cuis": [cui for _, cui in best],
                "scores": [score for score, _ in best],
            }
        )
    return rows
