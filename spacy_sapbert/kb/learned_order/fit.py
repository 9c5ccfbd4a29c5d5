"""Candidates of mentions, of which one is right → the weights of a `Ranker`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...linking.chance import OF_TAUGHT, Chance, Taught
from ...linking.features import EXCLUDED, Features
from ...linking.groups import Groups
from ...linking.probability import (
    MEASURED_THRESHOLDS,
    TopScores,
    compute_measures,
    fit_logistics,
)
from ...linking.ranker import BEHIND, CLIP, MOST_WEIGHT, Weights
from ..folder.records import AtThreshold

ITERATIONS = 200
DIGITS = 6
FIRST_TEMPERATURE = 20.0
# Of what `Taught` weighs: 1 = more is better, -1 = less is.
SIGNS = np.array([{"other_concept": -1}.get(name, 1) for name in OF_TAUGHT])


@dataclass(frozen=True)
class Example:
    """The candidates of a mention, and which of them is its concept."""

    right: int | None  # number; None = it is not among them, or there is none
    features: Features  # from `compute_features`
    is_name: bool  # whether the mention is a name


def fit_weights(
    examples: Sequence[Example],
    names: Sequence[str],
    *,
    penalty: float,
    temperature: bool = False,
) -> Weights:
    """Fit weights of features; the right candidate of one example must be known.

    The loss is the cross-entropy of the right candidate, a convex problem, so that
    equal input gives equal weights. `penalty` is of squared weights. `temperature` = a
    weight of the cosine is fitted first, without penalty.
    """
    import torch

    usable = [example for example in examples if example.right is not None]
    counts = [len(example.features["cosine"]) for example in usable]
    stacked = np.stack(
        [np.concatenate([e.features[name] for e in usable]) for name in names], axis=1
    )
    mean, scale = stacked.mean(axis=0), stacked.std(axis=0) + 1e-3
    shape = (len(usable), max(counts))
    cells = np.arange(shape[1]) < np.array(counts)[:, None]
    inputs = np.zeros((*shape, len(names)), dtype=np.float32)
    inputs[cells] = ((stacked - mean) / scale).clip(-CLIP, CLIP)
    cosines, offsets = np.zeros(shape), np.zeros(shape)
    cosines[cells] = np.concatenate([e.features["cosine"] for e in usable])
    offsets[cells] = -BEHIND * np.concatenate([e.features[EXCLUDED] for e in usable])
    values, masked = torch.from_numpy(inputs), torch.from_numpy(~cells)
    targets = torch.tensor([example.right for example in usable])
    cosine = torch.from_numpy(cosines.astype(np.float32))
    offset = torch.from_numpy(offsets.astype(np.float32))

    def minimise(parameter: torch.Tensor, ridge: float) -> None:
        optimizer = torch.optim.LBFGS(
            [parameter], max_iter=ITERATIONS, line_search_fn="strong_wolfe"
        )

        def compute_loss() -> torch.Tensor:
            optimizer.zero_grad()
            scores = offset + values @ weight
            if temperature:
                scores = scores + log_temperature.exp() * cosine
            scores = scores.masked_fill(masked, -1e9)
            loss: torch.Tensor = torch.nn.functional.cross_entropy(scores, targets)
            loss = loss + ridge * parameter.square().sum()
            loss.backward()
            return loss

        parameter.requires_grad_(True)
        optimizer.step(compute_loss)
        parameter.requires_grad_(False)

    weight = torch.zeros(len(names))
    log_temperature = torch.tensor(math.log(FIRST_TEMPERATURE))
    if temperature:
        minimise(log_temperature, 0.0)
    minimise(weight, penalty)
    # It has no maximum if every right candidate has the highest cosine.
    fitted = min(float(log_temperature.exp()), MOST_WEIGHT)
    return Weights(
        mean=round_values(names, mean),
        scale=round_values(names, scale),
        weight=round_values(names, weight.numpy()),
        temperature=round(fitted, DIGITS) if temperature else 0.0,
    )


def round_values(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    pairs = zip(names, values.tolist(), strict=True)
    return {name: round(value, DIGITS) for name, value in pairs}


def check_right(
    examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> np.ndarray:
    """Return whether the highest score of each example is of the right concept."""
    pairs = zip(examples, scores, strict=True)
    return np.array(
        [e.right is not None and int(s.argmax()) == e.right for e, s in pairs],
        dtype=bool,
    )


def fit_taught(
    chance: Chance,
    examples: Sequence[Example],
    scores: Sequence[np.ndarray],
    *,
    counts: Sequence[float],
) -> Taught:
    """Fit what annotations add to the probability that the first candidate is right.

    `scores` are of rankers that did not learn from the example; `counts` are weights.
    """
    answered = [
        number
        for number, (e, s) in enumerate(zip(examples, scores, strict=True))
        if len(s) and not e.features[EXCLUDED][int(s.argmax())]
    ]
    described = [
        chance.describe(
            examples[n].features,
            scores[n],
            Groups([len(scores[n])]),
            [examples[n].is_name],
        )
        for n in answered
    ]
    values = np.array([[each[name][0] for name in OF_TAUGHT] for each in described])
    right = check_right(examples, scores)[answered]
    usable = np.array(counts)[answered]
    kept = np.ones(len(OF_TAUGHT), dtype=bool)
    weights, intercept = fit_logistics(values * kept, right, usable)
    # A candidate that is more alike is never less likely: what few examples say
    # against it would make nonsense likely.
    while (wrong := kept & (weights * SIGNS < 0)).any():
        kept &= ~wrong
        weights, intercept = fit_logistics(values * kept, right, usable)
    return Taught(
        weights={
            name: round(float(weight), DIGITS)
            for name, weight in zip(OF_TAUGHT, weights, strict=True)
            if weight
        },
        intercept=round(intercept, DIGITS),
    )


def compute_chances(
    chance: Chance, examples: Sequence[Example], scores: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the probability of the first candidate of each example; 0 without any.

    Those with equal scores share it, as if no evidence told them apart.
    """
    return np.array(
        [
            chance.probability(e.features, s, named=e.is_name) / (s == s.max()).sum()
            if len(s)
            else 0.0
            for e, s in zip(examples, scores, strict=True)
        ]
    )


def measure_thresholds(top: TopScores, threshold: float) -> list[AtThreshold]:
    """Return what the threshold in force does, and those of `MEASURED_THRESHOLDS`."""
    thresholds = sorted({threshold, *MEASURED_THRESHOLDS})
    measures = compute_measures(top, np.array(thresholds))
    names = ("precision", "recall", "nil_precision", "nil_recall")
    figures: list[AtThreshold] = []
    for number, value in enumerate(thresholds):
        rounded = {name: round(float(measures[name][number]), 4) for name in names}
        known = {n: None if math.isnan(v) else v for n, v in rounded.items()}
        figures.append(AtThreshold(threshold=value, **known))
    return figures
