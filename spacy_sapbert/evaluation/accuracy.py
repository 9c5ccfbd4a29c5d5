"""Ranked answers → accuracy, by concepts or rows, with ties counted in three ways."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import comb, sqrt
from typing import Any, NamedTuple, TypedDict

import numpy as np

from ..linking.candidates import Candidate

LEVELS = ("concepts", "rows")
TIES = ("lenient", "expected", "strict")

Scored = tuple[float, str]  # score, cui
Parts = Sequence[frozenset[str]]  # the right cuis of each part of a mention
# By "acc@k" and by way of ties: a float, or None for a group without mentions.
AccuracyAtK = dict[str, dict[str, Any]]


class Answer(NamedTuple):
    """A row of the index with one concept; a name of two concepts makes two answers.

    Under a learned order it is a candidate, with its place in place of the row.
    """

    row: int
    cui: str
    score: float
    candidate: Candidate | None = None


Ranker = Callable[[Sequence[str]], list[list[Answer]]]  # mentions → answers, best first


class GroupAccuracy(TypedDict):
    """The accuracy of a group of mentions; None if the group has no mention."""

    mentions: int
    concepts: AccuracyAtK
    rows: AccuracyAtK


def list_concepts(answers: Iterable[Answer]) -> list[Scored]:
    """Return each distinct concept with the score of its best name."""
    distinct: dict[str, float] = {}
    for _, cui, score, _ in answers:
        distinct.setdefault(cui, score)
    return [(score, cui) for cui, score in distinct.items()]


def list_rows(answers: Iterable[Answer]) -> list[Scored]:
    """Return each distinct row, with its number in place of a concept."""
    distinct: dict[int, float] = {}
    for row, _, score, _ in answers:
        distinct.setdefault(row, score)
    return [(score, str(row)) for row, score in distinct.items()]


def find_rows(answers: Iterable[Answer], concepts: frozenset[str]) -> frozenset[str]:
    """Return the rows that have one of some concepts; see `list_rows`."""
    return frozenset(str(row) for row, cui, _, _ in answers if cui in concepts)


def last_score(answers: Sequence[Answer], k: int) -> float | None:
    """Return the score of the k-th concept or row, whichever is lower."""
    rankings = (list_concepts(answers), list_rows(answers))
    if min(map(len, rankings)) < k:
        return None
    return min(ranking[k - 1][0] for ranking in rankings)


def is_complete(answers: Sequence[Answer], k: int) -> bool:
    last = last_score(answers, k)
    return last is not None and answers[-1].score < last


def trim_answers(answers: Sequence[Answer], k: int) -> list[Answer]:
    """Return the k best concepts and rows, and all answers that tie with the last."""
    last = last_score(answers, k)
    return [each for each in answers if last is None or each.score >= last]


def cut_ranking(ranking: Sequence[Scored], k: int) -> tuple[list[str], list[str], int]:
    """Return the concepts above the k-th place, and those that tie with it.

    The number is how many of the tied fit into the first k.
    """
    if len(ranking) <= k:
        return [cui for _, cui in ranking], [], 0
    last = ranking[k - 1][0]
    above = [cui for score, cui in ranking if score > last]
    tied = [cui for score, cui in ranking if score == last]
    return above, tied, k - len(above)


def score_ranking(ranking: Sequence[Scored], parts: Parts, k: int) -> list[float]:
    """Compute whether all parts of a mention are among the k best answers, 0 to 1.

    If scores tie at the k-th place, the order of the tied is random. `lenient` counts a
    part if one of the tied is right. `expected` is the probability that all parts are
    hit if every order of the tied is equally likely. `strict` counts a hit only if
    every order hits. The scores must be rounded.
    """
    above, tied, places = cut_ranking(ranking, k)
    missing = [part for part in parts if part.isdisjoint(above)]
    lenient = not any(part.isdisjoint(tied) for part in missing)
    if not missing or not lenient:
        return [float(lenient)] * len(TIES)
    most = sorted((sum(cui in part for part in missing) for cui in tied), reverse=True)
    if sum(most[:places]) < len(missing):  # no order hits all; there may be many orders
        return [1.0, 0.0, 0.0]
    # Inclusion and exclusion over the parts that no chosen concept belongs to. The sum
    # is of integers, so that a certain hit is exactly 1.
    orders = comb(len(tied), places)
    hits = 0
    for size in range(len(missing) + 1):
        for missed in combinations(missing, size):
            right = frozenset().union(*missed)
            others = sum(cui not in right for cui in tied)
            hits += (-1) ** size * comb(others, places)
    return [1.0, hits / orders, float(hits == orders)]


def combine_parts(parts: Parts, composite: str) -> Parts:
    """Return what must be found of a composite mention.

    That is each of its "parts", or as "released" any concept of any part, as SapBERT's
    evaluation checks it.

    Source: cambridgeltl/sapbert, evaluation/utils.py.
    """
    if composite == "released":
        return [frozenset().union(*parts)]
    return list(dict.fromkeys(parts))


def score_answers(
    answers: Sequence[Answer], parts: Parts, ks: Sequence[int]
) -> np.ndarray:
    """Return the scores of answers to a mention, 0 to 1. Shape: (levels, ks, ties).

    A row, a name, is right if one of its concepts is, as in SapBERT's evaluation.
    """
    by_row = [find_rows(answers, part) for part in parts]
    levels = ((list_concepts(answers), parts), (list_rows(answers), by_row))  # LEVELS
    return np.array(
        [[score_ranking(ranking, own, k) for k in ks] for ranking, own in levels]
    )


def compute_accuracy(scores: np.ndarray, ks: Sequence[int]) -> GroupAccuracy:
    """Compute the means of scores. Shape: (n, levels, ks, ties)."""
    means = scores.mean(axis=0) if len(scores) else None

    def summarise(level: int) -> AccuracyAtK:
        return {
            f"acc@{k}": {
                tie: None if means is None else round(float(means[level, i, j]), 6)
                for j, tie in enumerate(TIES)
            }
            for i, k in enumerate(ks)
        }

    return {"mentions": len(scores), "concepts": summarise(0), "rows": summarise(1)}


def wilson_interval(share: float, number: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of some mentions; 0 to 1 for none.

    Source: Wilson (1927).
    """
    if number == 0:
        return 0.0, 1.0
    z = 1.959964
    middle = share + z**2 / (2 * number)
    width = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    scale = 1 + z**2 / number
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)
