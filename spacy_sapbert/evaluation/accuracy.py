"""Ranked answers → how many are right, by concepts or rows, with ties in three ways."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb
from statistics import fmean, stdev
from typing import (
    Any,
    NamedTuple,
)

import numpy as np

LEVELS = ("concepts", "rows")
TIES = ("lenient", "expected", "strict")
COMPOSITES = ("parts", "released")
SCORE_DIGITS = 6  # scores that agree so far are a tie

Scored = tuple[float, str]  # score, cui
Parts = Sequence[frozenset[str]]  # for each part of a mention the cuis that are right


class Answer(NamedTuple):
    """One row of a dictionary that is proposed for a mention.

    row (int): Number of the distinct name.
    cui (str): The concept; one name of two concepts makes two answers.
    score (float): Higher is better.
    """

    row: int
    cui: str
    score: float


Rank = Callable[[Sequence[str]], list[list[Answer]]]  # mentions → answers, best first


def list_rows(answers: Iterable[Answer]) -> list[Scored]:
    """Count dictionary rows, as SapBERT's released evaluation does.

    answers (Iterable[Answer]): The best first.
    RETURNS (list[Scored]): One for each distinct name and concept.
    """
    distinct: dict[tuple[int, str], float] = {}
    for row, cui, score in answers:
        distinct.setdefault((row, cui), score)
    return [(score, cui) for (_, cui), score in distinct.items()]


def list_concepts(answers: Iterable[Answer]) -> list[Scored]:
    """Count concepts, each by its best name.

    answers (Iterable[Answer]): The best first.
    RETURNS (list[Scored]): One for each concept.
    """
    distinct: dict[str, float] = {}
    for _, cui, score in answers:
        distinct.setdefault(cui, score)
    return [(score, cui) for cui, score in distinct.items()]


def is_complete(answers: Sequence[Answer], k: int) -> bool:
    """Return whether more answers could change anything about the k best.

    answers (Sequence[Answer]): The best first.
    k (int): How many concepts are looked at.
    RETURNS (bool): Whether there are k concepts, and a lower score after them.
    """
    concepts = list_concepts(answers)
    return len(concepts) >= k and answers[-1].score < concepts[k - 1][0]


def keep_needed(answers: Sequence[Answer], k: int) -> list[Answer]:
    """Drop what cannot change anything about the k best.

    answers (Sequence[Answer]): The best first.
    k (int): How many concepts are looked at.
    RETURNS (list[Answer]): Up to the last one that ties with the k-th concept.
    """
    concepts = list_concepts(answers)
    if len(concepts) <= k:
        return list(answers)
    return [answer for answer in answers if answer.score >= concepts[k - 1][0]]


def cut_ranking(ranking: Sequence[Scored], k: int) -> tuple[list[str], list[str], int]:
    """Part a ranking into what is among the k best, and what may be.

    ranking (Sequence[Scored]): The best first.
    k (int): Where to cut.
    RETURNS (tuple[list[str], list[str], int]): The concepts that are above the score of
        the k-th for sure, those that tie with it, and how many of the latter fit in.
    """
    if len(ranking) <= k:
        return [cui for _, cui in ranking], [], 0
    last = ranking[k - 1][0]
    above = [cui for score, cui in ranking if score > last]
    tied = [cui for score, cui in ranking if score == last]
    return above, tied, k - len(above)


def judge_ranking(ranking: Sequence[Scored], parts: Parts, k: int) -> list[float]:
    """Say whether all parts of a mention are among the k best answers.

    Where scores tie at the cut, the order is left to chance; `lenient` counts a part
    if one of the tied is right, `expected` is the probability that all parts are hit
    when each order of the tied is as likely, `strict` asks that every order hits.

    ranking (Sequence[Scored]): The best first, scores rounded.
    parts (Parts): What is right.
    k (int): How many answers count.
    RETURNS (list[float]): 0 to 1 for each of `TIES`.
    """
    above, tied, room = cut_ranking(ranking, k)
    missing = [part for part in parts if part.isdisjoint(above)]
    lenient = not any(part.isdisjoint(tied) for part in missing)
    if not missing or not lenient:
        return [float(lenient)] * len(TIES)
    most = sorted((sum(cui in part for part in missing) for cui in tied), reverse=True)
    if sum(most[:room]) < len(missing):  # no order hits all, and there may be many
        return [1.0, 0.0, 0.0]
    # Inclusion and exclusion over the parts that none of the drawn ones belongs to.
    drawn = comb(len(tied), room)
    hits = 0
    for size in range(len(missing) + 1):
        for missed in combinations(missing, size):
            right = frozenset().union(*missed)
            others = sum(cui not in right for cui in tied)
            hits += (-1) ** size * comb(others, room)
    # In integers, so that "certain" is exactly 1.
    return [1.0, hits / drawn, float(hits == drawn)]


def combine_parts(parts: Parts, composite: str) -> Parts:
    """Say what has to be found of a composite mention.

    parts (Parts): What is right for each part.
    composite (str): "parts" = each part, "released" = any concept of any part, as
        SapBERT's released evaluation checks it.
    RETURNS (Parts): What is right.
    SOURCE: cambridgeltl/sapbert, evaluation/utils.py.
    """
    if composite == "released":
        return [frozenset().union(*parts)]
    return list(dict.fromkeys(parts))


def judge_answers(
    answers: Sequence[Answer], parts: Parts, ks: Sequence[int]
) -> np.ndarray:
    """Judge the answers to one mention in every way.

    answers (Sequence[Answer]): The best first.
    parts (Parts): From `combine_parts`.
    ks (Sequence[int]): How many answers count.
    RETURNS (np.ndarray): 0 to 1. Shape: (levels, ks, ties).
    """
    rankings = (list_concepts(answers), list_rows(answers))  # as LEVELS
    return np.array(
        [[judge_ranking(ranking, parts, k) for k in ks] for ranking in rankings]
    )


def summarise_judgements(
    judgements: np.ndarray, chosen: np.ndarray, ks: Sequence[int]
) -> dict[str, Any]:
    """Average over a group of mentions.

    judgements (np.ndarray): Shape: (n, levels, ks, ties).
    chosen (np.ndarray): Which mentions belong to the group, bool. Shape: (n,).
    ks (Sequence[int]): How many answers count.
    RETURNS (dict[str, Any]): The number of mentions, and for each level accuracy by k
        and by the way of ties; None without mentions.
    """
    group = judgements[chosen]
    summary: dict[str, Any] = {"mentions": len(group)}
    means = group.mean(axis=0) if len(group) else None
    for number, level in enumerate(LEVELS):
        summary[level] = {
            f"acc@{k}": {
                tie: None if means is None else round(float(means[number, i, j]), 6)
                for j, tie in enumerate(TIES)
            }
            for i, k in enumerate(ks)
        }
    return summary


def render_mean(values: Sequence[float | None], *, digits: int = 3) -> str:
    """Write the mean of some seeds or folds, and how far they lie apart.

    values (Sequence[float | None]): Of each; None where nothing was judged.
    digits (int): Behind the point.
    RETURNS (str): Mean ± sample standard deviation; of one value only the value.
    """
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    spread = f" ± {stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{fmean(known):.{digits}f}{spread}"
