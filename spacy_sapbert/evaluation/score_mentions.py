"""Gold mentions and the answers of a linker → coverage and accuracy."""

from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterable,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
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

    ks (Tuple[int, ...]): How many answers count.
    composite (str): See `combine_parts`.
    bars_join_parts (bool): See `split_ids`.
    distinct (bool): Count each pair of a mention and its ids once.
    limit (int): Judge the first mentions of a file only; 0 = all.
    """

    ks: Tuple[int, ...] = (1, 5)
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
) -> Tuple[List[GoldMention], Dict[str, int]]:
    """Read those gold mentions that are judged, and count the others.

    path (Path): The file.
    settings (EvaluationSettings): How answers are judged.
    RETURNS (Tuple[List[GoldMention], Dict[str, int]]): The mentions; how many there
        were, how many without an id, and how many that were there before.
    RAISES (SapbertError): If none is left.
    """
    counts = {"mentions": 0, "without_id": 0, "repeated": 0}
    chosen: List[GoldMention] = []
    known: Set[Tuple[str, str]] = set()
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
) -> Dict[str, List[Answer]]:
    """Ask a linker, for each distinct text once.

    rank (Rank): The linker.
    mentions (Iterable[str]): The texts.
    progress (bool): Show a bar.
    RETURNS (Dict[str, List[Answer]]): The answers to each text.
    """
    texts = list(dict.fromkeys(mentions))
    answers: Dict[str, List[Answer]] = {}
    with tqdm(total=len(texts), unit=" mentions", disable=not progress) as bar:
        for start in range(0, len(texts), MENTIONS_AT_ONCE):
            batch = texts[start : start + MENTIONS_AT_ONCE]
            answers.update(zip(batch, rank(batch), strict=True))
            bar.update(len(batch))
    return answers


def judge_mentions(
    golds: Sequence[GoldMention],
    answers: Dict[str, List[Answer]],
    lookup: Lookup,
    aliases: Dict[str, str],
    settings: EvaluationSettings,
    *,
    seen: Optional[Set[Pair]] = None,
) -> Dict[str, Any]:
    """Compute accuracy and coverage of a linker on gold mentions.

    golds (Sequence[GoldMention]): Each with an id.
    answers (Dict[str, List[Answer]]): To the text of each, the best first.
    lookup (Lookup): Gives the concept of the dictionary with an id or retired id.
    aliases (Dict[str, str]): From `read_aliases`.
    settings (EvaluationSettings): How answers are judged.
    seen (Optional[Set[Pair]]): What was in training; None = not asked.
    RETURNS (Dict[str, Any]): Coverage, and accuracy by group of mentions.
    """
    resolve = make_resolver(lookup, aliases)
    judgements: List[np.ndarray] = []
    covered: List[bool] = []
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
    file: str, golds: Sequence[GoldMention], answers: Dict[str, List[Answer]], k: int
) -> List[Dict[str, Any]]:
    """Write down what was answered, by line and without the text.

    file (str): Name of the file.
    golds (Sequence[GoldMention]): Its mentions.
    answers (Dict[str, List[Answer]]): To the text of each.
    k (int): How many concepts.
    RETURNS (List[Dict[str, Any]]): One for each mention.
    """
    rows: List[Dict[str, Any]] = []
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
