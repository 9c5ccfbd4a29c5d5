"""Examples → a ranker, and what it is right about in documents that it has not seen."""

from collections.abc import Sequence

import numpy as np

from ...linking.features import FEATURES, GROUPS
from ...linking.probability import fit_logistics
from ...linking.ranker import CLIP, Ranker, confidence
from .examples import FOLDS, Example

PENALTY = 3e-3  # of squared weights, as in ridge regression
FEWEST = 50  # mentions with candidates, from which an order is learned
ITERATIONS = 200
DIGITS = 6


def count_usable(examples: Sequence[Example]) -> int:
    """Return how many examples have the right concept among their candidates."""
    return sum(example.right is not None for example in examples)


def fit_weights(examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Fit `mean`, `scale` and `weight` of a ranker; one example must be usable.

    The loss is the cross-entropy of the right candidate among those of its mention, a
    convex problem, so that equal input gives equal weights.
    """
    import torch

    usable = [example for example in examples if example.right is not None]
    stacked = np.concatenate([one.features for one in usable])  # (candidates, features)
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0) + 1e-3
    longest = max(len(example.cuis) for example in usable)
    inputs = np.zeros((len(usable), longest, len(FEATURES)), dtype=np.float32)
    missing = np.ones((len(usable), longest), dtype=bool)
    for number, example in enumerate(usable):
        count = len(example.cuis)
        inputs[number, :count] = ((example.features - mean) / scale).clip(-CLIP, CLIP)
        missing[number, :count] = False
    values, masked = torch.from_numpy(inputs), torch.from_numpy(missing)
    targets = torch.tensor([example.right for example in usable])
    weight = torch.zeros(len(FEATURES), requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight], max_iter=ITERATIONS, line_search_fn="strong_wolfe"
    )

    def compute_loss() -> torch.Tensor:
        optimizer.zero_grad()
        scores = (values @ weight).masked_fill(masked, -1e9)
        loss: torch.Tensor = torch.nn.functional.cross_entropy(scores, targets)
        loss = loss + PENALTY * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(compute_loss)
    columns = {"mean": mean, "scale": scale, "weight": weight.detach().numpy()}
    return {
        key: {
            name: round(float(value), DIGITS)
            for name, value in zip(FEATURES, column, strict=True)
        }
        for key, column in columns.items()
    }


def fit_ranker(examples: Sequence[Example]) -> Ranker:
    """Fit a ranker whose probability is not calibrated yet; see `calibrate_ranker`."""
    weights = fit_weights(examples)
    return Ranker(**weights, margin=1, cosine=0, share=0, intercept=0, threshold=0)


def fit_folds(examples: Sequence[Example]) -> list[Ranker | None]:
    """Fit a ranker for each fold from the examples of the other folds, if usable."""
    rankers: list[Ranker | None] = []
    for fold in range(FOLDS):
        others = [example for example in examples if example.fold != fold]
        rankers.append(fit_ranker(others) if count_usable(others) else None)
    return rankers


def rank_unseen(
    examples: Sequence[Example], rankers: Sequence[Ranker | None]
) -> list[np.ndarray]:
    """Return the scores of the candidates of each example. Shape: (candidates,) each.

    `rankers` are those of each fold; None = the order is that of the candidates.
    """
    scores: list[np.ndarray] = []
    for example in examples:
        ranker = rankers[example.fold]
        if ranker is None:
            scores.append(-np.arange(len(example.cuis), dtype=np.float64))
        else:
            scores.append(ranker.scores(example.features))
    return scores


def check_right(
    examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> np.ndarray:
    """Return whether the highest score of each example is of the right concept."""
    pairs = zip(examples, scores, strict=True)
    return np.array(
        [e.right is not None and int(s.argmax()) == e.right for e, s in pairs],
        dtype=bool,
    )


def calibrate_ranker(
    ranker: Ranker, examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> Ranker:
    """Fit the probability of a ranker, and the threshold with the highest F1 of links.

    Args:
        scores: From `rank_unseen`, so that no mention was part of what ranks it.
    """
    answered = [(e, s) for e, s in zip(examples, scores, strict=True) if len(s)]
    values = np.array([confidence(e.features, s) for e, s in answered])  # (n, 3)
    right = check_right([e for e, _ in answered], [s for _, s in answered])
    weights, intercept = fit_logistics(values, right)
    fitted = dict(zip(("margin", "cosine", "share"), weights.tolist(), strict=True))
    calibrated = ranker.model_copy(update={**fitted, "intercept": intercept})
    chances = np.array([calibrated.probability(e.features, s) for e, s in answered])
    linkable = sum(not example.nil for example in examples)
    threshold = best_threshold(chances, right, linkable)
    return calibrated.model_copy(update={"threshold": threshold})


def best_threshold(chances: np.ndarray, right: np.ndarray, linkable: int) -> float:
    """Return the lowest probability from which on links have the highest F1.

    Args:
        chances: Probability of each answer. Shape: (n,).
        linkable: Number of mentions that have a concept.
    """
    order = np.argsort(-chances, kind="stable")
    hits = right[order].cumsum()
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + linkable)
    last = chances[order]
    # Answers of equal probability are linked together.
    whole = np.append(last[1:] != last[:-1], True)
    best = np.flatnonzero(whole & (f1 == f1[whole].max()))[-1]
    return round(float(last[best]), DIGITS)


def measure_groups(
    examples: Sequence[Example], rankers: Sequence[Ranker | None]
) -> dict[str, float]:
    """Return how much accuracy is lost without each group of features.

    The features of the group have their mean, so that they do not order candidates;
    the weights of the others stay.
    """

    def measure(names: Sequence[str]) -> float:
        changed = [ranker and drop_features(ranker, names) for ranker in rankers]
        return float(check_right(examples, rank_unseen(examples, changed)).mean())

    base = measure(())
    return {group: round(base - measure(names), 4) for group, names in GROUPS.items()}


def drop_features(ranker: Ranker, names: Sequence[str]) -> Ranker:
    """Return a ranker for which some features do not count."""
    weight = {**ranker.weight, **dict.fromkeys(names, 0.0)}
    return ranker.model_copy(update={"weight": weight})
