"""A learned order of candidates over `features`: a linear model, or boosted trees."""

from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from .features import EXCLUDED, FEATURES, MISSPELLED, REAL, Features
from .probability import squash
from .trees import Trees

CLIP = 4.0  # standard deviations: one odd value does not decide alone
DIGITS = 6
MOST_MARGIN = 10.0  # log-odds; also that of a single candidate
BEHIND = 100.0  # by which the score of an excluded candidate is lower
# Features of the first candidate on which its probability depends.
OF_FIRST = (
    *("cosine", "covered", "unnamed", "name_covered", "head_covered"),
    *("characters", "ngrams", "mention_share"),
)
MARGIN = "margin"  # log-odds of the first candidate among all
# 1 if a word of the mention may be a misspelled one of it; and this times `characters`
DOUBT, DOUBT_BY_CHARACTERS = "doubt", "doubt_by_characters"
OF_NAME = (DOUBT, DOUBT_BY_CHARACTERS, *OF_FIRST)
CHANCES = (MARGIN, *OF_NAME)
BEHIND_FIRST = "behind_first"  # score in the order of names, less the highest one
OF_TREES = (*FEATURES, MISSPELLED, REAL, BEHIND_FIRST)  # what trees may ask for

MOST_WEIGHT = 1e6
Weight = Annotated[FiniteFloat, Field(ge=-MOST_WEIGHT, le=MOST_WEIGHT)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class Weights(BaseModel):
    """Weights of some features.

    Attributes:
        mean, scale, weight: Of each feature, by name.
        temperature: Weight of the cosine itself.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    mean: dict[str, Weight]
    scale: dict[str, Annotated[FiniteFloat, Field(gt=0, le=MOST_WEIGHT)]]
    weight: dict[str, Weight]
    temperature: Weight = 0.0

    @model_validator(mode="after")
    def check_features(self) -> "Weights":
        """Check that all features are known, and have all three values."""
        if not self.weight.keys() == self.mean.keys() == self.scale.keys():
            raise ValueError("its features differ between mean, scale and weight")
        if not {*self.weight} <= {*FEATURES}:
            raise ValueError("its features are not those of this version")
        return self

    @cached_property
    def names(self) -> list[str]:
        """The features whose weight is not 0."""
        return [name for name in FEATURES if self.weight.get(name)]

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, scale and weight of the features in `names`. Shape: (n,) each."""
        values = (self.mean, self.scale, self.weight)
        mean, scale, weight = (np.array([v[n] for n in self.names]) for v in values)
        return mean, scale, weight

    def scores(self, features: Features) -> np.ndarray:
        """Return a score of each candidate. Shape: (candidates,)."""
        mean, scale, weight = self.arrays
        values = np.array([features[name] for name in self.names])
        values = values.reshape(len(self.names), len(features["cosine"])).T
        parts = np.clip((values - mean) / scale, -CLIP, CLIP) * weight
        scores: np.ndarray = parts.sum(axis=1) + self.temperature * features["cosine"]
        return scores


class Ranker(BaseModel):
    """An order of candidates, and the probability that the first one is right.

    Attributes:
        known: Learned from names: for mentions whose words are all real ones, and for
            those with new words that are no misspelled words.
        unknown: Learned from names: for mentions with other words, of which one may be
            a misspelled word of a candidate (`MISSPELLED`).
        general: Learned from annotated mentions of other vocabularies: corrects
            `known`, whose order is one of its features.
        taught: Learned from annotated mentions; corrects `known` and `unknown` for all
            mentions, likewise.
        chance: The probability is the logistic function of the sum of these weights of
            `CHANCES` and `intercept`.
        threshold: Probability below which a mention has no concept, 0 to 1.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    known: Weights | None = None
    unknown: Weights | None = None
    general: Trees | None = None
    taught: Trees | None = None
    chance: dict[str, Weight] = {MARGIN: 1.0}
    intercept: Weight = 0.0
    threshold: Share = 0.0

    @model_validator(mode="after")
    def check_features(self) -> "Ranker":
        """Check that this version has what the order and its probability depend on."""
        if not self.chance.keys() <= {*CHANCES}:
            raise ValueError("its probability depends on what this version has not")
        for trees in (self.general, self.taught):
            if trees is not None and not {*trees.names} <= {*OF_TREES}:
                raise ValueError("its trees depend on what this version has not")
        return self

    def scores(self, features: Features) -> np.ndarray:
        """Return a score of each candidate; only differences mean something.

        Excluded candidates come after all others. Shape: (candidates,).
        """
        trees = self.taught
        if trees is None and is_known(features):
            trees = self.general
        if trees is None:
            return self.linear_scores(features)
        scores = trees.scores(self.with_order(features))
        rounded: np.ndarray = (scores - BEHIND * features[EXCLUDED]).round(DIGITS)
        return rounded

    def linear_scores(self, features: Features) -> np.ndarray:
        """Return the `scores` of `known` or `unknown`."""
        scores: np.ndarray = -BEHIND * features[EXCLUDED]
        weights = self.known if is_known(features) else self.unknown
        if weights is not None:
            scores = scores + weights.scores(features)
        return scores.round(DIGITS)

    def with_order(self, features: Features) -> Features:
        """Return features with `BEHIND_FIRST`."""
        scores = self.linear_scores(features)
        return {**features, BEHIND_FIRST: scores - scores.max(initial=-np.inf)}

    def probability(self, features: Features, scores: np.ndarray) -> float:
        """Return the probability that the candidate with the highest score is right.

        Candidates that share this score share the probability.
        """
        if features[EXCLUDED][int(scores.argmax())]:
            return 0.0
        values = confidence(features, scores)
        weights = np.array([self.chance.get(name, 0.0) for name in CHANCES])
        ties = int((scores == scores.max()).sum())
        return round(squash(float(values @ weights) + self.intercept) / ties, DIGITS)

    @property
    def correction(self) -> "Ranker":
        """What was taught, without what was learned from names; see `corrects`."""
        return self.model_copy(update=dict.fromkeys(("known", "unknown", "general")))

    def corrects(self, of_names: "Ranker") -> "Ranker":
        """Return an order learned from names with this correction of it."""
        names = ("known", "unknown", "general")
        return self.model_copy(update={name: getattr(of_names, name) for name in names})

    def recalibrated(
        self, *, slope: float, intercept: float, threshold: float
    ) -> "Ranker":
        """Return this order with corrected log-odds of its probability."""
        return self.model_copy(
            update={
                "chance": {name: slope * w for name, w in self.chance.items()},
                "intercept": slope * self.intercept + intercept,
                "threshold": threshold,
            }
        )

    def name_probability(self, cosines: np.ndarray) -> float:
        """Return the probability that the first concept of a name is right.

        `cosines` are of its nearest concepts, the highest first. Shape: (n,), n > 0.
        """
        assert self.known is not None
        ones, zeros = np.ones(len(cosines)), np.zeros(len(cosines))
        features = {
            **dict.fromkeys(OF_FIRST, ones),
            **dict.fromkeys(("unnamed", "mention_share", EXCLUDED, MISSPELLED), zeros),
            **{"cosine": cosines, REAL: ones},
        }
        scores = (self.known.temperature * cosines).round(DIGITS)
        return self.probability(features, scores)


def is_known(features: Features) -> bool:
    """Return whether no word of the mention may be a misspelled one of a candidate."""
    return bool(features[REAL].all() or not features[MISSPELLED].any())


def confidence(features: Features, scores: np.ndarray) -> np.ndarray:
    """Return the values of `CHANCES` of the first candidate. Shape: (n,)."""
    first = int(scores.argmax())
    others = np.delete(scores, first)
    margin = MOST_MARGIN
    if len(others):
        margin = float(scores[first] - np.logaddexp.reduce(others))
    margin = min(max(margin, -MOST_MARGIN), MOST_MARGIN)
    doubt = not features[REAL].all() and bool(features[MISSPELLED][first])
    values = [features[name][first] for name in OF_FIRST]
    by_characters = doubt * float(features["characters"][first])
    return np.array([margin, float(doubt), by_characters, *values])
