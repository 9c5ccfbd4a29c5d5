"""The probability that a link is right, from its score."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

DIGITS = 6
MAX_STEPS = 100
RIDGE = 1e-9  # keeps a step finite if two values say the same
MEASURES = ("precision", "recall", "f1", "accuracy", "nil_precision", "nil_recall")
LEAST_SPREAD = 1e-4  # standard deviation; a value that differs less says nothing


class TopScores(NamedTuple):
    """The best candidate of each mention, by ascending score. Shape of each: (n,).

    Attributes:
        scores: Its cosine, or the log-odds of its probability if there is a learned
            order; −inf for a mention without a candidate.
        right: Whether it is a right concept, bool.
        known: Whether the knowledge base has a right concept, bool; the other mentions
            are true NILs.
    """

    scores: np.ndarray
    right: np.ndarray
    known: np.ndarray

    @classmethod
    def sorted(
        cls, scores: np.ndarray, right: np.ndarray, known: np.ndarray
    ) -> "TopScores":
        """Sort scores, right and known by score."""
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], right[order], known[order])


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
    """Return the probability, in six digits, that the best candidate is right."""
    logits = logistic.slope * scores + logistic.intercept
    # The hyperbolic tangent does not overflow as exp does.
    probabilities: np.ndarray = 0.5 + 0.5 * np.tanh(logits / 2)
    return probabilities.round(DIGITS)


def fit_logistic(scores: np.ndarray, right: np.ndarray) -> Curve:
    """Fit the probability of a right link from one score; see `fit_logistics`."""
    slopes, intercept = fit_logistics(scores[:, None], right)
    return Curve(float(slopes[0]), intercept)


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
    the mentions that are not linked.
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
            "nil_precision": nil[first] / first,
            "nil_recall": nil[first] / (total - known),
        }


def list_beside(threshold: float) -> list[float]:
    """Return a probability, and one below and two above it, by their log-odds."""
    odds = log_odds(threshold)
    return [round(float(squash(odds + step)), 4) for step in (-1, 0, 1, 2)]


def squash(logit: float) -> float:
    """Return the logistic function of log-odds, rounded to six digits."""
    return round(0.5 + 0.5 * math.tanh(logit / 2), DIGITS)
