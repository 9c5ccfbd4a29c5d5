"""The probability that the first candidate of a mention is right: one for all.

Boosted trees over how the mention, its first candidate and the others are alike. They
were learned from annotated mentions of public corpora and from names, and are shipped;
`benchmarks.general_chance` makes them. They see how texts are alike, never which they
are, and so hold for other vocabularies too. What is learned from annotations corrects
them for one knowledge base.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from .features import EXCLUDED, MISSPELLED, REAL, Features
from .groups import Groups
from .probability import DIGITS, squash
from .trees import Trees

FOLDER = Path(__file__).parent
ORDERED, PLAIN = "ordered", "plain"  # models: of a learned order, and of cosines alone
MOST_MARGIN = 10.0  # log-odds; also that of a single candidate
MARGIN = "margin"  # log-odds of the first candidate among all, by their scores
DOUBT = "doubt"  # 1 if a word of the mention may be a misspelled one of it
# Of the first candidate; and how far it is ahead of the best of the others. No cosine
# as it is: encoders differ in what is near.
OF_FIRST = (
    *("standard", "field", "field_mean", "ngrams", "characters", "edits"),
    *("covered", "unnamed", "name_covered", "head_covered"),
    *("words_in_name", "words_in_mention", "more_words", "same_last_word"),
    *("same_first_word", "same_numbers", "added", "missing", "replaced", "slip"),
    *("letters", "mention_words", "short", "unreal"),
)
AHEAD = ("standard", "covered", "name_covered", "head_covered", "characters", "ngrams")
PLACES_AHEAD = [OF_FIRST.index(name) for name in AHEAD]
OF_CHANCE = (*OF_FIRST, *(f"{name}_ahead" for name in AHEAD), MARGIN, DOUBT)
OF_MODEL = {
    ORDERED: OF_CHANCE,
    PLAIN: tuple(
        name for name in OF_CHANCE if name not in (MARGIN, "ngrams", "ngrams_ahead")
    ),
}
PRIOR = "prior"  # log-odds of the trees, or of a mention that is a name
# What a probability that was learned from annotations weighs
OF_TAUGHT = (
    *(PRIOR, MARGIN, "mention_share", "mention_concept_count", "other_concept"),
    *("concept_count", "annotated_share", "exact_annotated"),
)
MOST_WEIGHT = 1e6
Weight = Annotated[FiniteFloat, Field(ge=-MOST_WEIGHT, le=MOST_WEIGHT)]


class Taught(BaseModel):
    """What annotations add: log-odds are the sum of these weights and `intercept`.

    Attributes:
        weights: Of `OF_TAUGHT`.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    weights: dict[str, Weight]
    intercept: Weight

    @model_validator(mode="after")
    def check_values(self) -> "Taught":
        """Check that this version has what it weighs."""
        if not self.weights.keys() <= {*OF_TAUGHT}:
            raise ValueError("its probability depends on what this version has not")
        return self


class Chance(BaseModel):
    """A model of the probability that the first candidate is right.

    Attributes:
        trees: Over `OF_CHANCE`; the sum of their values and `intercept` are log-odds.
        names: Log-odds for a mention that is a name, and for an abbreviation that is.
        taught: What was learned from annotations.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    trees: Trees
    intercept: Weight
    names: list[Weight]
    taught: Taught | None = None

    @model_validator(mode="after")
    def check_trees(self) -> "Chance":
        """Check that this version has what the trees ask for."""
        if not {*self.trees.names} <= {*OF_CHANCE} or len(self.names) != 2:
            raise ValueError("its trees depend on what this version has not")
        return self

    def of_name(self, *, short: bool) -> float:
        """Return the probability of a mention that is a name; `short` = abbreviated."""
        return squash(self.names[short])

    def probabilities(
        self,
        features: Features,
        scores: np.ndarray,
        groups: Groups,
        named: Sequence[bool] | np.ndarray,
    ) -> list[float]:
        """Return the probability of each mention that its first candidate is right.

        That is the one with the highest score. Each mention has a candidate; `named` =
        it is a name. Of several candidates with this score: that one of them is.
        """
        values = self.describe(features, scores, groups, named)
        logits = values[PRIOR]
        if self.taught is not None:
            logits = np.zeros(len(logits))
            for name, weight in self.taught.weights.items():
                logits = logits + weight * values[name]
            logits = logits + self.taught.intercept
        pairs = zip(logits.tolist(), values[EXCLUDED].tolist(), strict=True)
        return [0.0 if excluded else squash(logit) for logit, excluded in pairs]

    def probability(
        self, features: Features, scores: np.ndarray, *, named: bool = False
    ) -> float:
        """Return the probability of one mention; see `probabilities`."""
        groups = Groups([len(scores)])
        return self.probabilities(features, scores, groups, [named])[0]

    def describe(
        self,
        features: Features,
        scores: np.ndarray,
        groups: Groups,
        named: Sequence[bool] | np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Return `PRIOR`, `MARGIN`, and `OF_TAUGHT` as far as there are annotations.

        Also `EXCLUDED` of the first candidate. Shape of each: (mentions,).
        """
        first = find_first(scores, groups)
        described = describe_first(features, scores, groups, first)
        values = {
            name: features[name][first]
            for name in (EXCLUDED, *OF_TAUGHT)
            if self.taught is not None or name in features
            if name not in (PRIOR, MARGIN)
        }
        values[MARGIN] = described[MARGIN]
        prior = self.trees.scores(described) + self.intercept
        for number, is_named in enumerate(named):
            if is_named:
                is_short = bool(features["short"][first[number]])
                prior[number] = self.names[is_short]
        values[PRIOR] = prior
        return values


def find_first(scores: np.ndarray, groups: Groups) -> np.ndarray:
    """Return the place of the first candidate of each mention with its highest score.

    Shape: (mentions,).
    """
    by_mention = groups.split(scores)
    return groups.starts + [each.index(max(each)) for each in by_mention]


def compute_margin(scores: np.ndarray, groups: Groups) -> np.ndarray:
    """Return the log-odds of the first candidate among all of a mention, by scores.

    Shape: (mentions,).
    """
    margins: list[float] = []
    for by_mention in groups.split(scores):
        highest = max(by_mention)
        # Candidates with its score do not count: one of them is meant.
        odds = 0.0
        for score in by_mention:
            odds += math.exp(score - highest) if score < highest else 0.0
        margin = -math.log(odds) if odds else MOST_MARGIN
        margins.append(round(min(margin, MOST_MARGIN), DIGITS))
    return np.array(margins)


def describe_first(
    features: Features, scores: np.ndarray, groups: Groups, first: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the values of `OF_CHANCE` of the `first` candidates, from `find_first`.

    Shape of each: (mentions,).
    """
    table = np.array([features[name] for name in OF_FIRST])  # (features, candidates)
    of_first, others = table[:, first], table[PLACES_AHEAD].T
    others[first] = 0.0
    ahead = of_first[PLACES_AHEAD] - groups.highest(others, 0.0).T
    values = dict(zip(OF_CHANCE, (*of_first, *ahead), strict=False))
    values[MARGIN] = compute_margin(scores, groups)
    misspelled = features[MISSPELLED][first] != 0
    new = [not all(real) for real in groups.split(features[REAL])]
    values[DOUBT] = np.array(misspelled & new, dtype=np.float64)
    return values


@cache
def load_chance(model: str) -> Chance:
    """Load a model that is shipped: `ORDERED` or `PLAIN`."""
    path = FOLDER / f"chance_{model}.json"
    return Chance.model_validate_json(path.read_bytes())
