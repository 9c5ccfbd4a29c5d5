"""The probability that a link is right, from its score."""

import math
from typing import Protocol

DIGITS = 6


class Logistic(Protocol):
    """A logistic curve from score to probability."""

    slope: float
    intercept: float


def score_probability(logistic: Logistic, score: float) -> float:
    """Return the probability that the best candidate of a mention is right.

    logistic (Logistic): The calibrated curve.
    score (float): Score of the best candidate.
    RETURNS (float): 0 to 1, rounded to six digits.
    """
    logit = logistic.slope * score + logistic.intercept
    small = math.exp(-abs(logit))  # exp of a large number overflows
    return round((1 if logit >= 0 else small) / (1 + small), DIGITS)
