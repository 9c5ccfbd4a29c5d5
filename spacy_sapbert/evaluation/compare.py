"""Predictions of two linkers for the same gold mentions → which one is better."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ..errors import SapbertError
from ..formats.gold import GoldMention
from ..io.plugins import require
from ..io.reading import file_digest, read_lines
from .accuracy import TIES, Answer, combine_parts, list_concepts, score_ranking
from .gold_mentions import Lookup, Resolve, make_resolver
from .score_mentions import EvaluationSettings

RESAMPLES = 10_000
CONFIDENCE = 0.95
SEED = 0
BATCH_SIZE = 100  # resamples in memory at once

Place = tuple[str, int]  # file, line


class PredictionRow(BaseModel):
    """One line of predictions.jsonl: a place in a gold file, and its answers."""

    model_config = ConfigDict(strict=True)

    file: str
    line: int
    cuis: list[str]
    scores: list[float]

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        if len(self.cuis) != len(self.scores):
            raise ValueError
        return self


class Prediction(NamedTuple):
    """A line number of predictions.jsonl, and its answers, the best first."""

    number: int
    answers: list[Answer]


class Comparison(TypedDict):
    """Acc@1 by concepts of two linkers on the same mentions.

    Attributes:
        difference: Second minus first, with its bootstrap `interval`.
        only_first: Mentions that the first linker links better.
        p: Two-sided p-value of the `test`.
    """

    first: float
    second: float
    difference: float
    interval: list[float]
    only_first: int
    only_second: int
    test: str
    p: float


class FileComparison(TypedDict):
    file: str
    mentions: int
    ties: dict[str, Comparison]


def read_predictions(path: Path, aliases: dict[str, str]) -> dict[Place, Prediction]:
    """Read predictions.jsonl as `spacy sapbert evaluate --predictions` writes it."""
    predictions: dict[Place, Prediction] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        got = "something else"
        try:
            row = PredictionRow.model_validate_json(line)
        except ValidationError:
            row = None
        if row and (row.file, row.line) in predictions:
            got = f"a second one for line {row.line} of {row.file}"
            row = None
        if row is None:
            raise SapbertError(
                "E117",
                f"{path}:{number}: Expected a prediction for each mention, as JSON "
                f"with `file`, `line`, `cuis` and as many `scores`, but got {got}. "
                "Make the file again with `spacy sapbert evaluate … --predictions`.",
            )
        pairs = zip(row.cuis, row.scores, strict=True)
        answers = [Answer(n, aliases.get(c, c), s) for n, (c, s) in enumerate(pairs)]
        predictions[row.file, row.line] = Prediction(number, answers)
    return predictions


def check_predictions(
    path: Path,
    predictions: dict[Place, Prediction],
    golds: dict[Place, GoldMention],
    *,
    partial: bool,
) -> None:
    """Check that predictions belong to the gold mentions.

    With `partial` there may be others for other lines of the same files.
    """
    files = {file for file, _ in golds} if partial else set()
    others = [key for key in predictions if key not in golds and key[0] not in files]
    missing = [key for key in golds if key not in predictions]
    for what, keys in (("others too", others), ("none for some", missing)):
        if keys:
            file, line = keys[0]
            raise SapbertError(
                "E743",
                f"{path}: Expected a prediction for each mention that is judged, and "
                f"no other, but got {what}: {len(keys):,}, the first for line {line} "
                f"of {file}. Name the gold files, `--limit` and `--distinct` that the "
                "predictions were made with.",
            )


def score_predictions(
    predictions: dict[Place, Prediction],
    golds: dict[Place, GoldMention],
    resolve: Resolve,
    composite: str,
) -> np.ndarray:
    """Return the score, 0 to 1, of each first answer. Shape: (golds, ties)."""
    return np.array(
        [
            score_ranking(
                list_concepts(predictions[key].answers),
                combine_parts(resolve(gold), composite),
                1,
            )
            for key, gold in golds.items()
        ]
    )


def mcnemar_test(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test."""
    from scipy.stats import binomtest

    total = only_first + only_second
    return float(binomtest(only_first, total).pvalue) if total else 1.0


def randomisation_test(differences: np.ndarray) -> float:
    """Return the two-sided p-value of a paired test with random signs."""
    from scipy.stats import permutation_test

    differences = differences[differences != 0]
    if len(differences) < 2:
        return 1.0
    result = permutation_test(
        (differences,),
        lambda values, axis: np.abs(values.sum(axis=axis)),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=BATCH_SIZE,
        random_state=SEED,
    )
    return float(result.pvalue)


def bootstrap_interval(differences: np.ndarray) -> list[float]:
    """Return the percentile bootstrap interval of a mean difference."""
    from scipy.stats import bootstrap

    if len(differences) < 2:
        return [-1.0, 1.0]
    interval = bootstrap(
        (differences,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        batch=BATCH_SIZE,
        random_state=SEED,
    ).confidence_interval
    return [float(interval.low), float(interval.high)]


def compare_scores(first: np.ndarray, second: np.ndarray) -> dict[str, Comparison]:
    """Compare the scores of two linkers, by way of ties. Shape of each: (n, ties)."""
    require("scipy", "scipy")
    results: dict[str, Comparison] = {}
    for number, tie in enumerate(TIES):
        ours, other = first[:, number], second[:, number]
        differences = other - ours
        only_first = int((differences < 0).sum())
        only_second = int((differences > 0).sum())
        if tie == "expected":  # scores between 0 and 1, which McNemar cannot count
            test, p = "randomisation", randomisation_test(differences)
        else:
            test, p = "McNemar, exact", mcnemar_test(only_first, only_second)
        results[tie] = {
            "first": round(float(ours.mean()), 6),
            "second": round(float(other.mean()), 6),
            "difference": round(float(differences.mean()), 6),
            "interval": [round(end, 6) for end in bootstrap_interval(differences)],
            "only_first": only_first,
            "only_second": only_second,
            "test": test,
            "p": p,
        }
    return results


def compare_with_file(
    path: Path,
    golds: Sequence[tuple[str, GoldMention]],
    answers: dict[str, list[Answer]],
    lookup: Lookup,
    aliases: dict[str, str],
    settings: EvaluationSettings,
) -> dict[str, Any]:
    """Compare a linker with predictions.jsonl of another one, which is the first.

    The `results` have a `FileComparison` of each gold file, and of all.
    """
    by_place = {(file, gold.line): gold for file, gold in golds}
    other = read_predictions(path, aliases)
    partial = settings.distinct or bool(settings.limit)
    check_predictions(path, other, by_place, partial=partial)
    own = {key: Prediction(0, answers[gold.mention]) for key, gold in by_place.items()}
    # An id that is not in the knowledge base may be known to the other linker.
    resolve = make_resolver(lambda cui: lookup(cui) or cui, aliases)
    first, second = (
        score_predictions(predictions, by_place, resolve, settings.composite)
        for predictions in (other, own)
    )
    names = np.array([file for file, _ in by_place])
    masks = {file: names == file for file in dict.fromkeys(names.tolist())}
    if len(masks) > 1:
        masks[f"all {len(masks)} files"] = np.ones(len(names), dtype=bool)
    results: list[FileComparison] = [
        {
            "file": file,
            "mentions": int(mask.sum()),
            "ties": compare_scores(first[mask], second[mask]),
        }
        for file, mask in masks.items()
    ]
    return {
        "with": {"file": path.name, "sha256": file_digest(path)},
        "results": results,
    }
