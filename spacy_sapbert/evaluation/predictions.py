"""predictions.jsonl, as `spacy_sapbert.evaluation.evaluate` writes it → how right each answer is."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import (
    Answer,
    combine_parts,
    judge_ranking,
    list_concepts,
)
from spacy_sapbert.evaluation.gold_mentions import GoldMention, Resolve, check_names
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, choose_mentions
from spacy_sapbert.system.reading import read_lines

Place = tuple[str, int]  # file, line


class Prediction(NamedTuple):
    """What was answered to one mention.

    number (int): Line in the file of predictions.
    answers (list[Answer]): The best first.
    """

    number: int
    answers: list[Answer]


def read_golds(
    paths: Sequence[Path], settings: EvaluationSettings
) -> dict[Place, GoldMention]:
    """Read the gold mentions that are judged.

    paths (Sequence[Path]): Files of gold mentions.
    settings (EvaluationSettings): How answers are judged.
    RETURNS (dict[Place, GoldMention]): By file and line.
    RAISES (SapbertError): If a file is not usable, or two have the same name.
    """
    check_names(paths)
    return {
        (path.name, gold.line): gold
        for path in paths
        for gold in choose_mentions(path, settings)[0]
    }


def parse_prediction(line: str) -> tuple[str, int, list[Answer]] | None:
    """Read one line of a file of predictions.

    line (str): The line.
    RETURNS (tuple[str, int, list[Answer]] | None): File, line in it and answers;
        None if it is something else.
    """
    try:
        row = json.loads(line)
        file, number = row["file"], row["line"]
        answers = [
            Answer(place, cui, float(score))
            for place, (cui, score) in enumerate(
                zip(row["cuis"], row["scores"], strict=True)
            )
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    ids = [answer.cui for answer in answers]
    if not all(isinstance(text, str) for text in (file, *ids)):
        return None
    return (file, number, answers) if isinstance(number, int) else None


def read_predictions(path: Path, aliases: dict[str, str]) -> dict[Place, Prediction]:
    """Read what `spacy_sapbert.evaluation.evaluate --predictions` wrote.

    path (Path): The file.
    aliases (dict[str, str]): Ids that another one stands for.
    RETURNS (dict[Place, Prediction]): By file and line of the mention.
    RAISES (SapbertError): With file and line, at the first bad line.
    """
    predictions: dict[Place, Prediction] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        parsed = parse_prediction(line)
        if parsed is None:
            expected = "`file`, `line`, `cuis` and as many `scores`"
            raise SapbertError(
                Errors.E741.format(path=path, line=number, expected=expected)
            )
        file, gold_line, answers = parsed
        if (file, gold_line) in predictions:
            raise SapbertError(
                Errors.E742.format(
                    path=path, line=number, file=file, gold_line=gold_line
                )
            )
        known = [a._replace(cui=aliases.get(a.cui, a.cui)) for a in answers]
        predictions[file, gold_line] = Prediction(number, known)
    return predictions


def check_predictions(
    path: Path,
    predictions: dict[Place, Prediction],
    golds: dict[Place, GoldMention],
    *,
    partial: bool,
) -> None:
    """Check that predictions belong to the gold mentions that are judged.

    path (Path): The file of predictions, for the error.
    predictions (dict[Place, Prediction]): From `read_predictions`.
    golds (dict[Place, GoldMention]): Those that are judged, by file and line.
    partial (bool): Whether there may be predictions for others in the same files.
    RAISES (SapbertError): If one is missing, or there is one too many.
    """
    files = {file for file, _ in golds}
    for (file, line), prediction in predictions.items():
        if (file, line) not in golds and not (partial and file in files):
            raise SapbertError(
                Errors.E743.format(
                    path=path, line=prediction.number, file=file, gold_line=line
                )
            )
    missing = [place for place in golds if place not in predictions]
    if missing:
        file, line = missing[0]
        counts = {"missing": f"{len(missing):,}", "mentions": f"{len(golds):,}"}
        raise SapbertError(
            Errors.E744.format(path=path, file=file, gold_line=line, **counts)
        )


def judge_predictions(
    predictions: dict[Place, Prediction],
    golds: dict[Place, GoldMention],
    resolve: Resolve,
    composite: str,
) -> np.ndarray:
    """Judge the first answer to each mention.

    predictions (dict[Place, Prediction]): By file and line, one for each gold mention.
    golds (dict[Place, GoldMention]): Those that are judged.
    resolve (Resolve): Gives the concepts of each part of a mention.
    composite (str): See `combine_parts`.
    RETURNS (np.ndarray): 0 to 1. Shape: (golds, ties).
    """
    return np.array(
        [
            judge_ranking(
                list_concepts(predictions[place].answers),
                combine_parts(resolve(gold), composite),
                1,
            )
            for place, gold in golds.items()
        ]
    )
