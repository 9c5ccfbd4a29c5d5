"""The probability that a link is right, from its score."""

from typing import Protocol

import numpy as np

DIGITS = 6


class Logistic(Protocol):
    """A logistic curve from score to probability."""

    slope: float
    intercept: float


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
