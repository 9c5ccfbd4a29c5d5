"""Candidates of mentions, of which one is right → boosted trees that put it first.

LambdaMART (Burges 2010) with trees that ask one question on each level, as CatBoost's
do: fast to fit and to ask, and few examples are not learned by heart.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...linking.features import Features
from ...linking.trees import Question, Tree, Trees

TREES = 200
QUESTIONS = 4  # of a tree
RATE = 0.05  # share of what a tree says that is added
RIDGE = 5.0  # of squared values
MENTIONS_SHARE = 0.8  # that a tree is made of …
FEATURES_SHARE = 0.6  # … and of the features
BINS = 64  # of the values of a feature
NEAR = 0.01  # difference of scores that is as good as none
SEED = 0


class Candidates(NamedTuple):
    """The candidates of mentions, one mention after the other.

    Attributes:
        features: By name. Shape: (candidates,) each.
        mentions: The number of its mention, ascending. Shape: (candidates,).
        right: The right candidate of each mention. Shape: (mentions,).
        counts: How often each mention counts. Shape: (mentions,).
    """

    features: Mapping[str, np.ndarray]
    mentions: np.ndarray
    right: np.ndarray
    counts: np.ndarray


def join_candidates(
    features: Sequence[Features],
    right: Sequence[int],
    counts: Sequence[float],
    names: Sequence[str],
) -> Candidates:
    """Return the candidates of mentions, each with the number of its right one."""
    sizes = [len(of_mention[names[0]]) for of_mention in features]
    first = np.cumsum([0, *sizes[:-1]])
    return Candidates(
        {name: np.concatenate([f[name] for f in features]) for name in names},
        np.repeat(np.arange(len(sizes)), sizes),
        first + np.array(right),
        np.array(counts, dtype=np.float64),
    )


def fit_trees(candidates: Candidates, names: Sequence[str]) -> Trees:
    """Fit trees that put the right candidate first, over features of these names.

    Equal input gives equal trees.
    """
    return grow_trees(
        candidates.features,
        candidates.mentions,
        names,
        lambda scores: compute_lambdas(candidates, scores),
    )


def fit_chances(
    features: Mapping[str, np.ndarray],
    right: np.ndarray,
    counts: np.ndarray,
    names: Sequence[str],
    *,
    start: float,
) -> Trees:
    """Fit trees whose sum, with `start`, is the log-odds that examples are right.

    `counts` says how often each example counts. Shape: (examples,).
    """

    def differ(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chances = 1 / (1 + np.exp(-(scores + start)))
        return counts * (chances - right), counts * chances * (1 - chances)

    return grow_trees(features, np.arange(len(right)), names, differ)


def grow_trees(
    features: Mapping[str, np.ndarray],
    groups: np.ndarray,
    names: Sequence[str],
    differ: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> Trees:
    """Grow trees one after the other, each of some groups of rows and some features.

    `groups` has the number of the group of each row, ascending; `differ` returns slope
    and curvature of the loss by the score of each row.
    """
    random = np.random.default_rng(SEED)
    edges = [find_edges(features[name]) for name in names]
    bins = np.array(
        [
            np.searchsorted(between, features[name])
            for name, between in zip(names, edges, strict=True)
        ]
    )
    usable = np.array([len(between) > 0 for between in edges]).nonzero()[0]
    if not len(usable):  # nothing tells the rows apart
        return Trees(trees=[str(Tree((Question(names[0], 0.0),), (0.0, 0.0)))])
    scores = np.zeros(len(groups))
    trees: list[Tree] = []
    for _ in range(TREES):
        slopes, curves = differ(scores)
        taken = random.random(groups[-1] + 1) < MENTIONS_SHARE
        chosen = taken[groups].nonzero()[0]
        most = max(1, round(FEATURES_SHARE * len(usable)))
        asked = random.choice(usable, most, replace=False)
        tree, leaves = grow_tree(
            bins, chosen, slopes[chosen], curves[chosen], edges, names, asked
        )
        trees.append(tree)
        scores += np.array(tree.values)[leaves]
    return Trees(trees=[*map(str, trees)])


def find_edges(values: np.ndarray) -> np.ndarray:
    """Return numbers between values, at most `BINS`. Shape: (n,)."""
    distinct = np.unique(values)
    if len(distinct) > BINS:
        shares = np.linspace(0, 1, BINS + 1)
        distinct = np.unique(np.quantile(values, shares, method="nearest"))
    between: np.ndarray = (distinct[1:] + distinct[:-1]) / 2
    return between


def compute_lambdas(
    candidates: Candidates, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and curvature of the loss by the score of each candidate.

    The loss of each wrong candidate is that of a logistic regression of its difference
    from the right one, times what the NDCG loses if they change places. It counts more
    if the scores are near, and mentions with many such candidates count little more, as
    in LightGBM. Shape: (candidates,) each.
    """
    mentions, right = candidates.mentions, candidates.right
    order = np.lexsort((-scores, mentions))
    first = np.searchsorted(mentions, np.arange(len(right)))
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(len(scores)) - first[mentions]
    of_right = right[mentions]
    ahead = scores[of_right] - scores
    gains = 1 / np.log2(2 + ranks)
    lost = np.abs(gains[of_right] - gains) / (NEAR + np.abs(ahead))
    wrong = 1 / (1 + np.exp(ahead))
    slopes, curves = lost * wrong, lost * wrong * (1 - wrong)
    slopes[right] = curves[right] = 0
    total = 2 * np.bincount(mentions, slopes)
    scale = candidates.counts * np.log2(1 + total) / np.maximum(total, 1e-9)
    slopes, curves = slopes * scale[mentions], curves * scale[mentions]
    slopes[right] = -np.bincount(mentions, slopes)
    curves[right] = np.bincount(mentions, curves)
    return slopes, curves


def grow_tree(
    bins: np.ndarray,
    chosen: np.ndarray,
    slopes: np.ndarray,
    curves: np.ndarray,
    edges: Sequence[np.ndarray],
    names: Sequence[str],
    features: np.ndarray,
) -> tuple[Tree, np.ndarray]:
    """Return the tree that lowers the loss most, and the leaf of each candidate.

    The question of a level is the same in all branches. `chosen` = the candidates that
    it is made of; slopes and curves are theirs. `bins` has a row for each feature.
    """
    leaves = np.zeros(bins.shape[1], dtype=np.int64)
    questions: list[Question] = []
    sums = (slopes, curves)
    for level in range(QUESTIONS):
        best, feature, place = -1.0, 0, 0
        for number in features.tolist():
            size = len(edges[number]) + 1
            cells = leaves[chosen] * size + bins[number, chosen]
            shape = (2**level, size)
            slope, curve = (
                np.bincount(cells, each, 2**level * size).reshape(shape).cumsum(axis=1)
                for each in sums
            )
            gains = compute_gains(slope, curve)
            if gains.max() > best:
                best, feature = float(gains.max()), number
                place = int(gains.argmax())
        threshold = float(edges[feature][place])
        questions.append(Question(names[feature], threshold))
        leaves = leaves * 2 + (bins[feature] > place)
    slope, curve = (np.bincount(leaves[chosen], each, 2**QUESTIONS) for each in sums)
    values = -RATE * slope / (curve + RIDGE)
    return Tree(tuple(questions), tuple(values.tolist())), leaves


def compute_gains(slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Return how much the loss falls if all leaves are split after a bin.

    `slope` and `curve` are sums up to each bin. Shape: (leaves, bins) → (bins − 1,).
    """
    left, right = slope[:, :-1], slope[:, -1:] - slope[:, :-1]
    of_left, of_right = curve[:, :-1], curve[:, -1:] - curve[:, :-1]
    gains: np.ndarray = (
        left**2 / (of_left + RIDGE) + right**2 / (of_right + RIDGE)
    ).sum(axis=0)
    return gains
