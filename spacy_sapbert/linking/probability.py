"""The probability that a link is right, from its score."""

import math
from collections.abc import Mapping
from typing import Any

DIGITS = 6


def score_probability(calibration: Mapping[str, Any], score: float) -> float:
    """Return the probability that the best candidate of a mention is right.

    calibration (Mapping[str, Any]): The `calibration` of meta.json.
    score (float): Score of the best candidate.
    RETURNS (float): 0 to 1, rounded to six digits.
    """
    logistic = calibration["logistic"]
    logit = logistic["slope"] * score + logistic["intercept"]
    small = math.exp(-abs(logit))  # exp of a large number overflows
    return round((1 if logit >= 0 else small) / (1 + small), DIGITS)
