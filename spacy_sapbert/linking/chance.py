"""The probability that the first candidate of a mention is right: one for all.

Boosted trees over how the mention, its first candidate and the others are alike. They
were learned from annotated mentions of public corpora and from names, and are shipped;
`benchmarks.general_chance` makes them. They see how texts are alike, never which they
are, and so hold for other vocabularies too. What is learned from annotations corrects
them for one knowledge base.
"""

from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from .features import EXCLUDED, MISSPELLED, REAL, Features
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

    def probability(
        self, features: Features, scores: np.ndarray, *, named: bool = False
    ) -> float:
        """Return the probability that the candidate with the highest score is right.

        `named` = the mention is a name. Of several candidates with this score: that one
        of them is.
        """
        if features[EXCLUDED][int(scores.argmax())]:
            return 0.0
        values = self.describe(features, scores, named=named)
        if self.taught is None:
            return squash(values[PRIOR])
        weights = self.taught.weights.items()
        total = sum(weight * values[name] for name, weight in weights)
        return squash(total + self.taught.intercept)

    def describe(
        self, features: Features, scores: np.ndarray, *, named: bool
    ) -> dict[str, float]:
        """Return `PRIOR`, `MARGIN`, and `OF_TAUGHT` as far as there are annotations."""
        first = int(scores.argmax())
        values = {
            name: float(features[name][first])
            for name in OF_TAUGHT
            if self.taught is not None or name in features
            if name not in (PRIOR, MARGIN)
        }
        values[MARGIN] = compute_margin(scores)
        if named:
            values[PRIOR] = self.names[bool(features["short"][first])]
        else:
            described = describe_first(features, scores)
            columns = {name: np.array([described[name]]) for name in self.trees.names}
            values[PRIOR] = float(self.trees.scores(columns)[0]) + self.intercept
        return values


def compute_margin(scores: np.ndarray) -> float:
    """Return the log-odds of the first candidate among all, by their scores."""
    highest = scores.max()
    # Candidates with its score do not count: one of them is meant.
    others = scores[scores < highest]
    if not len(others):
        return MOST_MARGIN
    margin = float(highest - np.logaddexp.reduce(others))
    return round(min(max(margin, -MOST_MARGIN), MOST_MARGIN), DIGITS)


def describe_first(features: Features, scores: np.ndarray) -> dict[str, float]:
    """Return the values of `OF_CHANCE` of the candidate with the highest score."""
    first = int(scores.argmax())
    values = {name: float(features[name][first]) for name in OF_FIRST}
    others = np.array([features[name] for name in AHEAD])
    others[:, first] = 0.0
    for name, best in zip(AHEAD, others.max(axis=1, initial=0.0).tolist(), strict=True):
        values[f"{name}_ahead"] = values[name] - best
    values[MARGIN] = compute_margin(scores)
    doubt = not features[REAL].all() and bool(features[MISSPELLED][first])
    values[DOUBT] = float(doubt)
    return values


@cache
def load_chance(model: str) -> Chance:
    """Load a model that is shipped: `ORDERED` or `PLAIN`."""
    path = FOLDER / f"chance_{model}.json"
    return Chance.model_validate_json(path.read_bytes())
