"""A learned order of candidates over `features`: a linear model, or boosted trees."""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from .features import EXCLUDED, FEATURES, MISSPELLED, REAL, Features
from .groups import Groups
from .trees import Trees

CLIP = 4.0  # standard deviations: one odd value does not decide alone
DIGITS = 6
BEHIND = 100.0  # by which the score of an excluded candidate is lower
BEHIND_FIRST = "behind_first"  # score in the order of names, less the highest one
OF_TREES = (*FEATURES, MISSPELLED, REAL, BEHIND_FIRST)  # what trees may ask for

MOST_WEIGHT = 1e6
Weight = Annotated[FiniteFloat, Field(ge=-MOST_WEIGHT, le=MOST_WEIGHT)]


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
        cosines = features["cosine"]
        columns = np.array([features[name] for name in self.names])
        # By candidate: the order of a sum does not change with their number.
        values = np.ascontiguousarray(columns.reshape(-1, len(cosines)).T)
        parts = np.minimum(np.maximum((values - mean) / scale, -CLIP), CLIP) * weight
        scores: np.ndarray = parts.sum(axis=1) + self.temperature * cosines
        return scores


class Ranker(BaseModel):
    """An order of candidates.

    Attributes:
        known: Learned from names: for mentions whose words are all real ones, and for
            those with new words that are no misspelled words.
        unknown: Learned from names: for mentions with other words, of which one may be
            a misspelled word of a candidate (`MISSPELLED`).
        general: Learned from annotated mentions of other vocabularies: corrects
            `known`, whose order is one of its features.
        taught: Learned from annotated mentions; corrects `known` and `unknown` for all
            mentions, likewise.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    known: Weights | None = None
    unknown: Weights | None = None
    general: Trees | None = None
    taught: Trees | None = None

    @model_validator(mode="after")
    def check_features(self) -> "Ranker":
        """Check that this version has what the order depends on."""
        for trees in (self.general, self.taught):
            if trees is not None and not {*trees.names} <= {*OF_TREES}:
                raise ValueError("its trees depend on what this version has not")
        return self

    def scores(self, features: Features, groups: Groups | None = None) -> np.ndarray:
        """Return a score of each candidate; only differences mean something.

        Excluded candidates come after all others. Without `groups` all candidates are
        of one mention. Shape: (candidates,).
        """
        groups = groups or Groups([len(features["cosine"])])
        excluded = BEHIND * features[EXCLUDED]
        known = is_known(features, groups)[groups.owners]
        linear = self.linear_scores(features, known)
        scores = linear
        if self.known is None:
            scores = (features["cosine"] - excluded).round(DIGITS)
        trees = self.taught or self.general
        if trees is None:
            return scores
        chosen = known if self.taught is None else np.ones(len(scores), dtype=bool)
        ordered = {**features, BEHIND_FIRST: -groups.gaps(linear)}
        corrected = trees.scores(choose(ordered, trees.names, chosen))
        scores[chosen] = (corrected - excluded[chosen]).round(DIGITS)
        return scores

    def linear_scores(self, features: Features, known: np.ndarray) -> np.ndarray:
        """Return the `scores` of `known` or `unknown`."""
        scores: np.ndarray = -BEHIND * features[EXCLUDED]
        for weights, chosen in ((self.known, known), (self.unknown, ~known)):
            if weights is not None and chosen.any():
                some = choose(features, ("cosine", *weights.names), chosen)
                scores[chosen] += weights.scores(some)
        return scores.round(DIGITS)

    def with_order(self, features: Features, groups: Groups) -> Features:
        """Return features with `BEHIND_FIRST`."""
        known = is_known(features, groups)[groups.owners]
        gaps = groups.gaps(self.linear_scores(features, known))
        return {**features, BEHIND_FIRST: -gaps}

    @property
    def correction(self) -> "Ranker":
        """What was taught, without what was learned from names; see `corrects`."""
        return self.model_copy(update=dict.fromkeys(("known", "unknown", "general")))

    def corrects(self, of_names: "Ranker") -> "Ranker":
        """Return an order learned from names with this correction of it."""
        names = ("known", "unknown", "general")
        return self.model_copy(update={name: getattr(of_names, name) for name in names})


def choose(features: Features, names: Sequence[str], chosen: np.ndarray) -> Features:
    """Return some features of chosen candidates."""
    if chosen.all():
        return features
    return {name: features[name][chosen] for name in names}


def is_known(features: Features, groups: Groups) -> np.ndarray:
    """Return of which mentions no word may be a misspelled one of a candidate, bool.

    Shape: (mentions,).
    """
    words = zip(
        groups.split(features[REAL]), groups.split(features[MISSPELLED]), strict=True
    )
    known = [all(real) or not any(misspelled) for real, misspelled in words]
    return np.array(known, dtype=bool)
