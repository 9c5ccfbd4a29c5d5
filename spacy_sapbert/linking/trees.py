"""Boosted trees over features: they score the candidates of a mention."""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

AT_ONCE = 512  # candidates, so that what is computed of them stays near the processor


class Question(NamedTuple):
    """Whether a feature is larger than a threshold."""

    feature: str
    threshold: float


class Tree(NamedTuple):
    """Questions, which all candidates are asked, and a value for all their answers.

    Attributes:
        questions: In order.
        values: Of the answers as a binary number, 1 = larger, first question first.
            Shape: (2 ** questions,).
    """

    questions: tuple[Question, ...]
    values: tuple[float, ...]

    def __str__(self) -> str:
        """Return it as text: "cosine>0.9 slip>0.5: 0.1 -0.2 0.3 0"."""
        asked = " ".join(
            f"{name}>{threshold:.9g}" for name, threshold in self.questions
        )
        return f"{asked}: {' '.join(f'{value:.6g}' for value in self.values)}"


def read_tree(text: str) -> Tree:
    """Return the tree of a text."""
    asked, _, values = text.partition(": ")
    pairs = [question.partition(">") for question in asked.split()]
    return Tree(
        tuple(Question(name, float(threshold)) for name, _, threshold in pairs),
        tuple(float(value) for value in values.split()),
    )


class Trees(BaseModel):
    """Trees, whose values are added; only differences of scores mean something.

    Attributes:
        trees: One text for each, see `Tree`; all with as many questions.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    trees: list[str]

    @cached_property
    def read(self) -> list[Tree]:
        """The trees."""
        return [read_tree(text) for text in self.trees]

    @cached_property
    def names(self) -> list[str]:
        """The features that are asked for."""
        return sorted({name for tree in self.read for name, _ in tree.questions})

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers in `names`, thresholds, values. Shape: (trees, …) each."""
        numbers = {name: number for number, name in enumerate(self.names)}
        return (
            np.array([[numbers[q.feature] for q in t.questions] for t in self.read]),
            np.array([[q.threshold for q in t.questions] for t in self.read]),
            np.array([tree.values for tree in self.read]),
        )

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """What each larger answer adds to the place of a value, and where trees start.

        Shape: (questions,) and (trees,), float64, which are exact.
        """
        _, thresholds, values = self.arrays
        added = 2.0 ** np.arange(thresholds.shape[1])[::-1]
        return added, np.arange(len(values)) * float(values.shape[1])

    def scores(self, features: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a score of each candidate. Shape: (candidates,)."""
        asked, thresholds, values = self.arrays
        added, starts = self.places
        columns = np.array([features[name] for name in self.names]).T
        scores = np.zeros(len(columns))
        for start in range(0, len(scores), AT_ONCE):
            some = columns[start : start + AT_ONCE].take(asked, axis=1)
            larger = np.greater(some, thresholds, out=some)  # 1 or 0
            places = larger @ added + starts  # (candidates, trees)
            picked = values.ravel().take(places.astype(np.int64))
            # By candidate: the order of a sum does not change with their number.
            scores[start : start + AT_ONCE] = picked.sum(axis=1)
        return scores
