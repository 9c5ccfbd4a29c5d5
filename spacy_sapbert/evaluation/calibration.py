"""How likely a link is right, given its cosine; and what a threshold rests on."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import Errors, SapbertError
from ..linking.probability import DIGITS
from .thresholds import (
    MEASURES,
    Criterion,
    Judged,
    bootstrap_threshold,
    choose_threshold,
    list_thresholds,
    measure_thresholds,
)

FEWEST_MENTIONS = 50
MOST_STEPS = 100
CURVE_POINTS = 50
BINS = 10
FOLDS = 10


class Logistic(NamedTuple):
    """Cosine → probability: 1 / (1 + exp(−(slope · cosine + intercept))).

    slope (float): Per unit of cosine.
    intercept (float): At cosine 0.
    """

    slope: float
    intercept: float


def compute_probabilities(logistic: Logistic, scores: np.ndarray) -> np.ndarray:
    """Do what `score_probability` does, for many cosines. Shape: (n,)."""
    probabilities: np.ndarray = 0.5 + 0.5 * np.tanh(
        (logistic.slope * scores + logistic.intercept) / 2
    )
    return probabilities


def fit_logistic(scores: np.ndarray, right: np.ndarray) -> Logistic:
    """Fit the probability of being right to cosines.

    scores (np.ndarray): Finite cosines. Shape: (n,).
    right (np.ndarray): Which are right, bool. Shape: (n,).
    RETURNS (Logistic): Of the largest likelihood under Platt's smoothed targets, so
        that it is finite also where a cosine parts right from wrong.
    SOURCE: Platt (1999), with the Newton steps of Lin, Lin and Weng (2007).
    """
    hits, misses = int(right.sum()), int((~right).sum())
    targets = np.where(right, (hits + 1) / (hits + 2), 1 / (misses + 2))
    centre = scores.mean()
    inputs = np.stack([scores - centre, np.ones_like(scores)], axis=1)  # (n, 2)
    weights = np.array([0.0, math.log((hits + 1) / (misses + 1))])

    def loss(trial: np.ndarray) -> float:
        logits = inputs @ trial
        return float((np.logaddexp(0, logits) - targets * logits).sum())

    for _ in range(MOST_STEPS):
        probabilities = 0.5 + 0.5 * np.tanh(inputs @ weights / 2)
        gradient = inputs.T @ (probabilities - targets)
        spread = probabilities * (1 - probabilities)
        hessian = (inputs * spread[:, None]).T @ inputs + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        before = loss(weights)
        while loss(weights - step) > before and np.abs(step).max() > 1e-10:
            step /= 2
        weights = weights - step
        if np.abs(step).max() <= 1e-10:
            break
    return Logistic(float(weights[0]), float(weights[1] - weights[0] * centre))


def cross_validate(judged: Judged, *, folds: int = FOLDS, seed: int = 0) -> np.ndarray:
    """Return each answer the probability that the answers to other documents suggest.

    judged (Judged): Answers only, each with a finite cosine.
    folds (int): Into how many parts the documents are parted.
    seed (int): Of chance.
    RETURNS (np.ndarray): Probabilities; NaN where the other documents have only right
        or only wrong answers. Shape: (n,).
    """
    documents, numbers = np.unique(judged.groups, return_inverse=True)
    parts = np.random.default_rng(seed).permutation(len(documents)) % folds
    fold = parts[numbers]  # (n,)
    probabilities = np.full(len(judged.scores), np.nan)
    for number in range(folds):
        own, others = fold == number, fold != number
        right = judged.right[others]
        if own.any() and right.any() and not right.all():
            logistic = fit_logistic(judged.scores[others], right)
            probabilities[own] = compute_probabilities(logistic, judged.scores[own])
    return probabilities


def compare_probabilities(
    probabilities: np.ndarray,
    right: np.ndarray,
    *,
    binned_by: np.ndarray | None = None,
    bins: int = BINS,
) -> tuple[list[dict[str, Any]], float | None]:
    """Hold probabilities against what is right.

    probabilities (np.ndarray): NaN is left out. Shape: (n,).
    right (np.ndarray): Bool. Shape: (n,).
    binned_by (np.ndarray | None): Probabilities that say who is in which bin, where
        the others differ a little for one cosine; None = the others. Shape: (n,).
    bins (int): Of equal width, from 0 to 1.
    RETURNS (tuple[list[dict[str, Any]], float | None]): For each bin that is not
        empty its mentions, their mean probability and the share of right ones; and
        the expected calibration error, None without any.
    SOURCE: Naeini, Cooper and Hauskrecht (2015).
    """
    usable = ~np.isnan(probabilities)
    values, hits = probabilities[usable], right[usable]
    order = values if binned_by is None else binned_by[usable]
    places = np.minimum((order * bins).astype(np.int64), bins - 1)
    table = [
        {
            "mentions": int(chosen.sum()),
            "probability": round(float(values[chosen].mean()), DIGITS),
            "right": round(float(hits[chosen].mean()), DIGITS),
        }
        for chosen in (places == place for place in range(bins))
        if chosen.any()
    ]
    if not table:
        return [], None
    gaps = [
        each["mentions"] * abs(each["probability"] - each["right"]) for each in table
    ]
    return table, round(sum(gaps) / len(values), DIGITS)


def keep_answered(judged: Judged) -> Judged:
    """Leave those mentions out that have no answer."""
    return Judged(*(each[np.isfinite(judged.scores)] for each in judged))


def list_values(curves: dict[str, np.ndarray], place: int) -> dict[str, Any]:
    """Return the measures of one threshold in plain JSON types, None for NaN."""
    values = {name: float(curves[name][place]) for name in MEASURES}
    return {
        name: None if math.isnan(value) else round(value, DIGITS)
        for name, value in values.items()
    }


def sample_curve(judged: Judged, points: int = CURVE_POINTS) -> list[dict[str, Any]]:
    """Measure thresholds between the lowest and the highest cosine.

    judged (Judged): The first answers.
    points (int): How many thresholds, at equal distances.
    RETURNS (list[dict[str, Any]]): The threshold and the measures of each.
    """
    known = list_thresholds(judged)
    thresholds = np.linspace(known[0], known[-1], points)
    curves = measure_thresholds(judged, thresholds)
    return [
        {"threshold": round(float(threshold), DIGITS), **list_values(curves, place)}
        for place, threshold in enumerate(thresholds)
    ]


def measure_threshold(judged: Judged, threshold: float) -> dict[str, Any]:
    """Count the answers, and measure one threshold.

    judged (Judged): The first answers.
    threshold (float): A cosine.
    RETURNS (dict[str, Any]): The threshold, counts and measures.
    """
    return {
        "threshold": round(threshold, DIGITS),
        "mentions": len(judged.scores),
        "answered": int(np.isfinite(judged.scores).sum()),
        "right": int(judged.right.sum()),
        "nil": int((~judged.known).sum()),
        "linked": int((judged.scores >= threshold).sum()),
        **list_values(measure_thresholds(judged, np.array([threshold])), 0),
    }


def check_judged(judged: Judged, *, fewest: int = FEWEST_MENTIONS) -> None:
    """Check that answers can say anything about a threshold.

    judged (Judged): The first answers.
    fewest (int): How many there have to be.
    RAISES (SapbertError): If they are fewer, or only right or only wrong ones.
    """
    answered = int(np.isfinite(judged.scores).sum())
    if answered < fewest:
        raise SapbertError(Errors.E582.format(fewest=fewest, got=answered))
    hits = int(judged.right.sum())
    if hits in (0, answered):
        which = "right" if hits else "wrong"
        raise SapbertError(Errors.E583.format(mentions=answered, which=which))


def calibrate_answers(
    judged: Judged,
    criterion: Criterion,
    *,
    fewest: int = FEWEST_MENTIONS,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Choose the threshold of a knowledge base, and say how good it is.

    judged (Judged): The first answers to annotated mentions.
    criterion (Criterion): By what the threshold is chosen.
    fewest (int): Fewer answers are refused.
    samples (int): See `bootstrap_threshold`, also for those that follow.
    confidence (float): See above.
    seed (int): See above, and of `cross_validate`.
    RETURNS (dict[str, Any]): Plain JSON types: the threshold, counts, measures at it,
        intervals, probability, curve and reliability.
    RAISES (SapbertError): If the answers are too few or too much alike, or no
        threshold reaches the precision.
    """
    check_judged(judged, fewest=fewest)
    answered = keep_answered(judged)
    thresholds = list_thresholds(judged)
    logistic = fit_logistic(answered.scores, answered.right)
    if len(thresholds) == 1 or logistic.slope <= 0:
        raise SapbertError(Errors.E584)
    curves = measure_thresholds(judged, thresholds)
    place = choose_threshold(curves, criterion)
    if place is None:
        best = float(np.nanmax(curves["precision"]))
        raise SapbertError(Errors.E585.format(level=criterion.level, best=best))
    threshold = float(thresholds[place])
    # folds differ in the probability of a cosine, and many mentions have the cosine 1
    reliability, error = compare_probabilities(
        cross_validate(answered, seed=seed),
        answered.right,
        binned_by=compute_probabilities(logistic, answered.scores),
    )
    return {
        **measure_threshold(judged, threshold),
        "interval": bootstrap_threshold(
            judged,
            criterion,
            threshold,
            samples=samples,
            confidence=confidence,
            seed=seed,
        ),
        "logistic": logistic._asdict(),
        "calibration_error": error,
        "reliability": reliability,
        "curve": sample_curve(judged),
    }


def measure_calibration(
    judged: Judged,
    calibration: Mapping[str, Any],
    *,
    fewest: int = FEWEST_MENTIONS,
) -> dict[str, Any]:
    """Say how good a threshold and its probabilities are on other mentions.

    judged (Judged): The first answers to them.
    calibration (Mapping[str, Any]): What meta.json has under `calibration`.
    fewest (int): Fewer answers are refused.
    RETURNS (dict[str, Any]): As `calibrate_answers`, with no interval.
    RAISES (SapbertError): If the answers are too few or too much alike.
    """
    check_judged(judged, fewest=fewest)
    answered = keep_answered(judged)
    logistic = Logistic(**calibration["logistic"])
    reliability, error = compare_probabilities(
        compute_probabilities(logistic, answered.scores), answered.right
    )
    return {
        **measure_threshold(judged, calibration["threshold"]),
        "interval": None,
        "logistic": logistic._asdict(),
        "calibration_error": error,
        "reliability": reliability,
        "curve": sample_curve(judged),
    }
