"""A learned order of candidates: a linear model over `features`."""

import math
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from .features import FEATURES

CLIP = 4.0  # standard deviations: one odd value does not decide alone
DIGITS = 6

Weight = Annotated[FiniteFloat, Field(ge=-1e6, le=1e6)]


class Ranker(BaseModel):
    """Weights of the features, and the probability that the first candidate is right.

    Attributes:
        mean, scale, weight: Of each feature.
        margin, cosine, share, intercept: The probability is the logistic function of
            `margin` · log-odds of the first candidate among the candidates + `cosine` ·
            its cosine + `share` · `mention_share` + `intercept`.
        threshold: Probability below which a mention has no concept, 0 to 1.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    mean: dict[str, Weight]
    scale: dict[str, Annotated[FiniteFloat, Field(gt=0, le=1e6)]]
    weight: dict[str, Weight]
    margin: Weight
    cosine: Weight
    share: Weight
    intercept: Weight
    threshold: Annotated[FiniteFloat, Field(ge=0, le=1)]

    @model_validator(mode="after")
    def check_features(self) -> "Ranker":
        """Check that there are values for each feature and for no other."""
        for values in (self.mean, self.scale, self.weight):
            if values.keys() != {*FEATURES}:
                raise ValueError("its features are not those of this version")
        return self

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Return a score of each candidate; only differences mean something.

        Args:
            features: From `compute_features`. Shape: (n, len(FEATURES)).

        Returns:
            Rounded to six digits. Shape: (n,).
        """
        mean, scale, weight = (
            np.array([values[name] for name in FEATURES])
            for values in (self.mean, self.scale, self.weight)
        )
        scores: np.ndarray = np.clip((features - mean) / scale, -CLIP, CLIP) @ weight
        return scores.round(DIGITS)

    def probability(self, features: np.ndarray, scores: np.ndarray) -> float:
        """Return the probability that the candidate with the highest score is right.

        Args:
            features, scores: Of all candidates of the mention, at least one. Shape: (n,
                len(FEATURES)) and (n,).
        """
        values = confidence(features, scores)
        weights = (self.margin, self.cosine, self.share)
        logit = float(values @ np.array(weights)) + self.intercept
        return round(0.5 + 0.5 * math.tanh(logit / 2), DIGITS)


def confidence(features: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return what the probability of the first candidate depends on.

    Returns:
        Log-odds of the first candidate among the candidates, its cosine, and its
        `mention_share`. Shape: (3,).
    """
    first = int(scores.argmax())
    others = np.delete(scores, first)
    margin = 10.0  # of a single candidate
    if len(others):
        margin = float(scores[first] - np.logaddexp.reduce(others))
    columns = [FEATURES.index(name) for name in ("cosine", "mention_share")]
    return np.array([min(max(margin, -10.0), 10.0), *features[first, columns]])
