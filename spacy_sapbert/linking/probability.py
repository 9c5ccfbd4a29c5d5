"""The probability that a link is right, from its score."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

DIGITS = 6
MAX_STEPS = 100
LEAST_SPREAD = 1e-4  # standard deviation; a value that differs less says nothing


class Logistic(Protocol):
    """A logistic curve from score to probability."""

    @property
    def slope(self) -> float: ...

    @property
    def intercept(self) -> float: ...


@dataclass(frozen=True)
class Curve:
    """A fitted `Logistic`."""

    slope: float
    intercept: float

    def score_at(self, probability: float) -> float:
        """Return the score of a probability; see `log_odds`."""
        return (log_odds(probability) - self.intercept) / self.slope


def log_odds(probability: float) -> float:
    """Return log(p / (1 − p)), bounded as probabilities are rounded to six digits."""
    least = 10**-DIGITS
    probability = min(max(probability, least), 1 - least)
    return math.log(probability / (1 - probability))


def score_probability(logistic: Logistic, scores: float | np.ndarray) -> np.ndarray:
    """Return the probability that the best candidate of a mention is right.

    Args:
        scores: Score of the best candidate, or many of any shape.

    Returns:
        0 to 1, rounded to six digits. Shape: as `scores`.
    """
    logits = logistic.slope * scores + logistic.intercept
    # The hyperbolic tangent does not overflow as exp does.
    probabilities: np.ndarray = 0.5 + 0.5 * np.tanh(logits / 2)
    return probabilities.round(DIGITS)


def fit_logistic(scores: np.ndarray, right: np.ndarray) -> Curve:
    """Fit the probability of a right link, from one score; see `fit_logistics`.

    Args:
        scores: Finite. Shape: (n,).
        right: Bool. Shape: (n,).
    """
    slopes, intercept = fit_logistics(scores[:, None], right)
    return Curve(float(slopes[0]), intercept)


def fit_logistics(values: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit the probability of a right link by maximum likelihood.

    Platt's smoothed targets keep it finite if a score separates right from wrong. The
    slope of a value that is nearly constant is 0.

    Args:
        values: Finite. Shape: (n, d).
        right: Bool. Shape: (n,).

    Returns:
        A slope for each value, and the intercept. Shape: (d,).

    Source: Platt (1999), with the Newton steps of Lin, Lin and Weng (2007).
    """
    hits, misses = int(right.sum()), int((~right).sum())
    targets = np.where(right, (hits + 1) / (hits + 2), 1 / (misses + 2))
    centre = values.mean(axis=0)
    ones = np.ones((len(values), 1))
    spreads = values.std(axis=0) >= LEAST_SPREAD
    inputs = np.concatenate([(values - centre) * spreads, ones], axis=1)  # (n, d + 1)
    size = inputs.shape[1]
    weights = np.zeros(size)
    weights[-1] = math.log((hits + 1) / (misses + 1))

    def loss(trial: np.ndarray) -> float:
        logits = inputs @ trial
        return float((np.logaddexp(0, logits) - targets * logits).sum())

    for _ in range(MAX_STEPS):
        probabilities = 0.5 + 0.5 * np.tanh(inputs @ weights / 2)
        spread = probabilities * (1 - probabilities)
        hessian = (inputs * spread[:, None]).T @ inputs + 1e-12 * np.eye(size)
        step = np.linalg.solve(hessian, inputs.T @ (probabilities - targets))
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-10:
            step /= 2
        weights = weights - step
        if np.abs(step).max() <= 1e-10:
            break
    slopes, intercept = weights[:-1], weights[-1]
    return slopes, float(intercept - slopes @ centre)
