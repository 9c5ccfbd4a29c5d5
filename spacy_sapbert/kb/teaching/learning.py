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


def fit_weights(examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Fit the weights of the features.

    The loss is the cross-entropy of the right candidate among those of its mention, a
    convex problem, so that equal input gives equal weights.

    examples (Sequence[Example]): At least one with a right candidate.
    RETURNS (dict[str, dict[str, float]]): `mean`, `scale` and `weight` of `Ranker`.
    """
    import torch

    usable = [one for one in examples if one.right is not None]
    stacked = np.concatenate([one.features for one in usable])  # (candidates, features)
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0) + 1e-3
    longest = max(len(one.cuis) for one in usable)
    inputs = np.zeros((len(usable), longest, len(FEATURES)), dtype=np.float32)
    missing = np.ones((len(usable), longest), dtype=bool)
    for place, one in enumerate(usable):
        inputs[place, : len(one.cuis)] = ((one.features - mean) / scale).clip(
            -CLIP, CLIP
        )
        missing[place, : len(one.cuis)] = False
    values, masked = torch.from_numpy(inputs), torch.from_numpy(missing)
    targets = torch.tensor([one.right for one in usable])
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


def rank_unseen(
    examples: Sequence[Example], rankers: Sequence[Ranker | None]
) -> list[np.ndarray]:
    """Return the scores of the candidates by the ranker of their fold.

    rankers (Sequence[Ranker | None]): Of each fold, learned from the others; None = the
        order is that of the candidates.
    RETURNS (list[np.ndarray]): For each example. Shape of each: (candidates,).
    """
    scores: list[np.ndarray] = []
    for one in examples:
        ranker = rankers[one.fold]
        if ranker is None:
            scores.append(-np.arange(len(one.cuis), dtype=np.float64))
        else:
            scores.append(ranker.scores(one.features))
    return scores


def fit_folds(examples: Sequence[Example]) -> list[Ranker | None]:
    """Fit a ranker for each fold from the examples of the other folds."""
    rankers: list[Ranker | None] = []
    for fold in range(FOLDS):
        others = [one for one in examples if one.fold != fold]
        usable = any(one.right is not None for one in others)
        rankers.append(fit_ranker(others) if usable else None)
    return rankers


def is_right(example: Example, scores: np.ndarray) -> bool:
    """Return whether the candidate with the highest score is right."""
    return example.right is not None and int(scores.argmax()) == example.right


def calibrate_ranker(
    ranker: Ranker, examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> Ranker:
    """Fit the probability of a ranker and its threshold.

    examples (Sequence[Example]), scores (Sequence[np.ndarray]): From `rank_unseen`, so
        that no mention was part of what ranks it.
    RETURNS (Ranker): Its threshold has the highest F1 of links.
    """
    answered = [(e, s) for e, s in zip(examples, scores, strict=True) if len(s)]
    values = np.array([confidence(e.features, s) for e, s in answered])  # (n, 3)
    right = np.array([is_right(e, s) for e, s in answered])
    weights, intercept = fit_logistics(values, right)
    fitted = dict(zip(("margin", "cosine", "share"), weights.tolist(), strict=True))
    calibrated = ranker.model_copy(update={**fitted, "intercept": intercept})
    chances = np.array([calibrated.probability(e.features, s) for e, s in answered])
    linkable = sum(not one.nil for one in examples)
    threshold = best_threshold(chances, right, linkable)
    return calibrated.model_copy(update={"threshold": threshold})


def best_threshold(chances: np.ndarray, right: np.ndarray, linkable: int) -> float:
    """Return the probability from which on links have the highest F1.

    chances (np.ndarray), right (np.ndarray): Of each answer. Shape: (n,) each.
    linkable (int): Number of mentions that have a concept.
    RETURNS (float): The lowest of equally good ones.
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
    scores = rank_unseen(examples, rankers)
    base = np.mean([is_right(e, s) for e, s in zip(examples, scores, strict=True)])
    lost: dict[str, float] = {}
    for group, names in GROUPS.items():
        without = [
            None
            if ranker is None
            else ranker.model_copy(
                update={"weight": {**ranker.weight, **dict.fromkeys(names, 0.0)}}
            )
            for ranker in rankers
        ]
        scores = rank_unseen(examples, without)
        right = [is_right(e, s) for e, s in zip(examples, scores, strict=True)]
        lost[group] = round(float(base - np.mean(right)), 4)
    return lost
