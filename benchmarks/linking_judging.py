"""What a side of `benchmarks.linking` answered → how much of it is right."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.linking_inputs import Corpus
from spacy_sapbert.evaluation.accuracy import SCORE_DIGITS, Answer
from spacy_sapbert.evaluation.gold_mentions import Lookup
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, score_mentions


def rank_answers(
    found: Sequence[tuple[str, float]], aliases: dict[str, str], *, ties: bool
) -> list[Answer]:
    """Write down what a side answered for judging, the best first.

    found (Sequence[tuple[str, float]]): Ids and scores, in the order of the side.
    aliases (dict[str, str]): Ids that another one stands for.
    ties (bool): Whether equal scores are a tie; else the order counts.
    RETURNS (list[Answer]): With scores of the order: sides measure in their own ways.
    """
    answers: list[Answer] = []
    rank, last = 0, None
    for place, (cui, score) in enumerate(found):
        rounded = round(score, SCORE_DIGITS)
        rank += not ties or rounded != last
        last = rounded
        answers.append(Answer(place, aliases.get(cui, cui), -float(rank)))
    return answers


def judge_side(
    corpus: Corpus,
    answers: Sequence[Sequence[Any]],
    lookup: Lookup,
    aliases: dict[str, str],
) -> dict[str, Any]:
    """Judge what a side answered, by concepts.

    corpus (Corpus): The documents.
    answers (Sequence[Sequence[Any]]): To each entity of each document.
    lookup (Lookup): An id to the concept of the dictionary that has it.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (dict[str, Any]): The figures that are no measurements; coverage, and how
        many mentions were judged.
    """
    # By their numbers, since the answer to one text may differ between documents.
    golds = {
        str(number): gold._replace(mention=str(number))
        for number, gold in enumerate(gold for doc in corpus.golds for gold in doc)
    }
    flat = [found for doc in answers for found in doc]
    chosen = [gold for gold in golds.values() if gold.parts]
    settings = EvaluationSettings(ks=(1, 5))
    ranked = {
        ties: dict(
            zip(golds, (rank_answers(f, aliases, ties=ties) for f in flat), strict=True)
        )
        for ties in (True, False)
    }
    strict, answered = (
        score_mentions(chosen, ranked[ties], lookup, aliases, settings)
        for ties in (True, False)
    )
    tied = [
        len({answer.cui for answer in found if answer.score == -1}) > 1
        for found in ranked[True].values()
    ]
    return {
        "strict": strict["accuracy"]["all"]["concepts"]["acc@1"]["strict"],
        "answered": answered["accuracy"]["all"]["concepts"]["acc@1"]["strict"],
        "answered@5": answered["accuracy"]["all"]["concepts"]["acc@5"]["strict"],
        "tied": float(np.mean(tied)),
        "linked": float(np.mean([bool(found) for found in flat])),
        "coverage": strict["coverage"],
        "judged": strict["judged"],
    }
