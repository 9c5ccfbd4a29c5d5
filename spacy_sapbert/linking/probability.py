"""The probability that a link is right, from its score."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

DIGITS = 6
MAX_STEPS = 100


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
        """Return the score of a probability, 0 to 1 exclusively."""
        logit = math.log(probability / (1 - probability))
        return (logit - self.intercept) / self.slope


def score_probability(logistic: Logistic, scores: float | np.ndarray) -> np.ndarray:
    """Return the probability that the best candidate of a mention is right.

    logistic (Logistic): The calibrated curve.
    scores (float | np.ndarray): Score of the best candidate, or many of any shape.
    RETURNS (np.ndarray): 0 to 1, rounded to six digits. Shape: as `scores`.
    """
    logits = logistic.slope * scores + logistic.intercept
    # The hyperbolic tangent does not overflow as exp does.
    probabilities: np.ndarray = 0.5 + 0.5 * np.tanh(logits / 2)
    return probabilities.round(DIGITS)


def fit_logistic(scores: np.ndarray, right: np.ndarray) -> Curve:
    """Fit the probability of a right link by maximum likelihood.

    Platt's smoothed targets keep it finite if a score separates right from wrong.

    scores (np.ndarray): Finite. Shape: (n,).
    right (np.ndarray): Bool. Shape: (n,).
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

    for _ in range(MAX_STEPS):
        probabilities = 0.5 + 0.5 * np.tanh(inputs @ weights / 2)
        spread = probabilities * (1 - probabilities)
        hessian = (inputs * spread[:, None]).T @ inputs + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, inputs.T @ (probabilities - targets))
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-10:
            step /= 2
        weights = weights - step
        if np.abs(step).max() <= 1e-10:
            break
    slope, intercept = weights
    return Curve(float(slope), float(intercept - slope * centre))
