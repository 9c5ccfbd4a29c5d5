"""The probability that a link is right: its fit, its correction, its measures."""

import math
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

DEFAULT_THRESHOLD = 0.5  # a link is more likely right than wrong
MEASURED_THRESHOLDS = (0.3, DEFAULT_THRESHOLD, 0.8)  # `kb info` shows what they do
DIGITS = 6
MAX_STEPS = 100
RIDGE = 1e-9  # keeps a step finite if two values say the same
MEASURES = ("precision", "recall", "f1", "accuracy", "nil_precision", "nil_recall")
LEAST_SPREAD = 1e-4  # standard deviation; a value that differs less says nothing


class TopScores(NamedTuple):
    """The best candidate of each mention, by ascending score. Shape of each: (n,).

    Attributes:
        scores: Its probability; −inf for a mention without a candidate.
        right: Whether it is a right concept, bool.
        known: Whether the knowledge base has a right concept, bool; the other mentions
            are true NILs.
        shares: Of the first concept in the probability of those that tie with it.
    """

    scores: np.ndarray
    right: np.ndarray
    known: np.ndarray
    shares: np.ndarray

    @classmethod
    def sorted(
        cls,
        scores: np.ndarray,
        right: np.ndarray,
        known: np.ndarray,
        shares: np.ndarray | None = None,
    ) -> "TopScores":
        """Sort all by score; without `shares` there are no ties."""
        order = np.argsort(scores, kind="stable")
        shares = np.ones(len(scores)) if shares is None else shares
        return cls(scores[order], right[order], known[order], shares[order])


class Correction(BaseModel):
    """A correction of probabilities: their log-odds times `slope`, plus `intercept`."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    slope: Annotated[FiniteFloat, Field(gt=0)]
    intercept: FiniteFloat

    def correct(self, probability: float) -> float:
        """Return the corrected probability; 0, of what is excluded, stays 0."""
        if not probability:
            return 0.0
        return squash(self.slope * log_odds(probability) + self.intercept)

    def after(self, first: "Correction | None") -> "Correction":
        """Return the correction that does what `first` does, and then this one."""
        if first is None:
            return self
        return Correction(
            slope=round(self.slope * first.slope, DIGITS),
            intercept=round(self.slope * first.intercept + self.intercept, DIGITS),
        )


def log_odds(probability: float) -> float:
    """Return log(p / (1 − p)), bounded as probabilities are rounded to six digits."""
    least = 10**-DIGITS
    probability = min(max(probability, least), 1 - least)
    return math.log(probability / (1 - probability))


def fit_logistics(
    values: np.ndarray, right: np.ndarray, counts: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Fit the probability of a right link by maximum likelihood.

    Platt's smoothed targets keep it finite if a score separates right from wrong. The
    slope of a value that is nearly constant is 0. Values are finite, of shape (n, d),
    and `counts` says how much each row counts. Returns d slopes and the intercept.

    Source: Platt (1999), with the Newton steps of Lin, Lin and Weng (2007).
    """
    counts = np.ones(len(right)) if counts is None else counts
    hits, misses = float(counts[right].sum()), float(counts[~right].sum())
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
        return float(counts @ (np.logaddexp(0, logits) - targets * logits))

    for _ in range(MAX_STEPS):
        probabilities = 0.5 + 0.5 * np.tanh(inputs @ weights / 2)
        spread = counts * probabilities * (1 - probabilities)
        hessian = (inputs * spread[:, None]).T @ inputs + RIDGE * np.eye(size)
        step = np.linalg.solve(hessian, inputs.T @ (counts * (probabilities - targets)))
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-10:
            step /= 2
        weights = weights - step
        if np.abs(step).max() <= 1e-10:
            break
    slopes, intercept = weights[:-1], weights[-1]
    return slopes, float(intercept - slopes @ centre)


def compute_measures(top: TopScores, thresholds: np.ndarray) -> dict[str, np.ndarray]:
    """Compute each of `MEASURES` for each threshold; NaN for 0 of 0.

    A mention is linked if its score reaches the threshold. Precision is the share of
    right links. Recall counts the mentions that are no true NIL. Accuracy counts right
    links, and true NILs that are not linked. The last two are precision and recall of
    the mentions that are not linked, NaN without true NILs.
    """
    first = np.searchsorted(top.scores, thresholds, side="left")

    def sum_below(flags: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(flags)])

    right, nil = sum_below(top.right), sum_below(~top.known)
    known, total = top.known.sum(), len(top.scores)
    linked, hits = total - first, right[-1] - right[first]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "precision": hits / linked,
            "recall": hits / known,
            "f1": 2 * hits / (linked + known),
            "accuracy": (hits + nil[first]) / total,
            "nil_precision": np.where(nil[-1] > 0, nil[first] / first, np.nan),
            "nil_recall": nil[first] / (total - known),
        }


def squash(logit: float) -> float:
    """Return the logistic function of log-odds, rounded to six digits."""
    return round(0.5 + 0.5 * math.tanh(logit / 2), DIGITS)
