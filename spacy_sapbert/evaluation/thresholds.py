"""First answers that people judged → the cosine under which a mention is NIL."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import Errors, SapbertError

MEASURES = ("precision", "recall", "f1", "accuracy")
PRECISION = re.compile(r"precision=(1|1\.0+|0?\.\d+)")

Curves = dict[str, np.ndarray]  # by measure, one value for each threshold


class Judged(NamedTuple):
    """The first answer to each of some mentions, by ascending cosine.

    scores (np.ndarray): Its cosine, −inf for a mention without an answer.
    right (np.ndarray): Whether it is the right concept, bool.
    known (np.ndarray): Whether the knowledge base has a concept that the mention
        means, bool; the others are true NILs.
    groups (np.ndarray): Number of the document, int64; see `number_groups`.

    Shape of each: (n,).
    """

    scores: np.ndarray
    right: np.ndarray
    known: np.ndarray
    groups: np.ndarray


class Criterion(NamedTuple):
    """By what a threshold is chosen.

    name (str): One of "f1", "accuracy" and "precision".
    level (float): The precision to be reached; 0 for the others.
    """

    name: str
    level: float = 0.0


def parse_criterion(text: str) -> Criterion:
    """Read by what a threshold is to be chosen.

    text (str): "f1", "accuracy" or "precision=0.95".
    RETURNS (Criterion): The criterion.
    RAISES (SapbertError): If it is something else.
    """
    if text in ("f1", "accuracy"):
        return Criterion(text)
    match = PRECISION.fullmatch(text)
    if not match or not float(match.group(1)):
        raise SapbertError(Errors.E581.format(value=text))
    return Criterion("precision", float(match.group(1)))


def make_judged(
    scores: Sequence[float | None],
    right: Sequence[bool],
    known: Sequence[bool],
    groups: Sequence[int],
) -> Judged:
    """Put first answers in the order of their cosines.

    scores (Sequence[float | None]): None for a mention without an answer.
    right (Sequence[bool]): See `Judged`, also for those that follow.
    known (Sequence[bool]): See above.
    groups (Sequence[int]): See above.
    RETURNS (Judged): The same as arrays, by ascending cosine.
    """
    values = np.array([-np.inf if s is None else s for s in scores], dtype=np.float64)
    order = np.argsort(values, kind="stable")
    return Judged(
        values[order],
        np.asarray(right, dtype=bool)[order],
        np.asarray(known, dtype=bool)[order],
        np.asarray(groups, dtype=np.int64)[order],
    )


def list_thresholds(judged: Judged) -> np.ndarray:
    """Return the thresholds that make a difference, ascending: each distinct cosine."""
    return np.unique(judged.scores[np.isfinite(judged.scores)])


def measure_thresholds(
    judged: Judged, thresholds: np.ndarray, weights: np.ndarray | None = None
) -> Curves:
    """Say how good the links are that each threshold leaves.

    A mention is linked if its cosine reaches the threshold. Precision is the share of
    right ones among the linked, recall among the mentions that the knowledge base has
    a concept for. Accuracy counts right links and true NILs that are not linked.

    judged (Judged): The first answers.
    thresholds (np.ndarray): Shape: (thresholds,).
    weights (np.ndarray | None): How often each mention counts; None = once.
        Shape: (n,).
    RETURNS (Curves): Each of `MEASURES`; NaN where it is 0 of 0.
        Shape: (thresholds,) each.
    """
    counts = np.ones(len(judged.scores)) if weights is None else weights
    first = np.searchsorted(judged.scores, thresholds, side="left")

    def sum_below(which: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(counts * which)])

    every, right = sum_below(np.ones_like(judged.right)), sum_below(judged.right)
    known, nil = sum_below(judged.known)[-1], sum_below(~judged.known)
    linked = every[-1] - every[first]
    hits = right[-1] - right[first]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "precision": hits / linked,
            "recall": hits / known,
            "f1": 2 * hits / (linked + known),
            "accuracy": (hits + nil[first]) / every[-1],
        }


def choose_threshold(curves: Curves, criterion: Criterion) -> int | None:
    """Choose among thresholds; of those that are as good the lowest.

    curves (Curves): From `measure_thresholds`, of ascending thresholds.
    criterion (Criterion): The highest F1 or accuracy, or the lowest threshold that
        reaches a precision.
    RETURNS (int | None): Its number; None if none reaches the precision.
    """
    values = np.nan_to_num(curves[criterion.name], nan=-1.0)
    if criterion.name != "precision":
        return int(np.argmax(values))
    enough = np.flatnonzero(values >= criterion.level)
    return int(enough[0]) if len(enough) else None


def number_groups(documents: Sequence[Any | None]) -> list[int]:
    """Number the documents; a mention of an unknown one is a document of its own.

    documents (Sequence[Any | None]): The document of each mention, None if unknown.
    RETURNS (list[int]): Numbers from 0, without a gap.
    """
    numbers: dict[Any, int] = {}
    found: list[int] = []
    for place, document in enumerate(documents):
        key = (document, place if document is None else None)
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def bound_quantiles(values: np.ndarray, confidence: float) -> list[float | None] | None:
    """Return the interval that holds most of some values.

    values (np.ndarray): NaN is left out. Shape: (samples,).
    confidence (float): What share it holds.
    RETURNS (list[float | None] | None): Its ends, None for one that is infinite;
        None without values.
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    tail = (1 - confidence) / 2 * (len(known) - 1)
    ends = known[int(np.floor(tail))], known[len(known) - 1 - int(np.floor(tail))]
    return [round(float(end), 6) if np.isfinite(end) else None for end in ends]


def bootstrap_threshold(
    judged: Judged,
    criterion: Criterion,
    threshold: float,
    *,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Say how sure a threshold is, and what is measured at it.

    Documents are drawn with replacement, as many as there are. In each sample the
    threshold is chosen anew, and the one that was chosen is measured.

    judged (Judged): The first answers.
    criterion (Criterion): By what the threshold was chosen.
    threshold (float): The one that was chosen.
    samples (int): How many.
    confidence (float): What share of them the intervals hold.
    seed (int): Of chance.
    RETURNS (dict[str, Any]): Intervals of the threshold and of each measure; an end of
        the threshold is None if no threshold of that sample reaches the precision.
    SOURCE: Efron and Tibshirani (1993), the percentile method, by clusters.
    """
    chance = np.random.default_rng(seed)
    thresholds = list_thresholds(judged)
    total = int(judged.groups.max()) + 1
    found = {name: np.full(samples, np.nan) for name in ("threshold", *MEASURES)}
    place = int(np.searchsorted(thresholds, threshold))
    for sample in range(samples):
        drawn = np.bincount(chance.integers(0, total, total), minlength=total)
        curves = measure_thresholds(judged, thresholds, drawn[judged.groups])
        chosen = choose_threshold(curves, criterion)
        found["threshold"][sample] = np.inf if chosen is None else thresholds[chosen]
        for name in MEASURES:
            found[name][sample] = curves[name][place]
    bounds = {name: bound_quantiles(each, confidence) for name, each in found.items()}
    return {"confidence": confidence, "samples": samples, **bounds}
