"""Outcomes of two linkers on the same mentions → difference, interval, p-value."""

from typing import Any, NamedTuple

import numpy as np

from spacy_sapbert.evaluation.accuracy import TIES

SLACK = 1e-9  # of sums of the same differences in another order


class Chance(NamedTuple):
    """How chance is drawn.

    samples (int): How often.
    confidence (float): Share of the samples that an interval holds.
    seed (int): Where the generator begins.
    """

    samples: int = 10_000
    confidence: float = 0.95
    seed: int = 0


CHANCE = Chance()


def mcnemar_p(first: int, second: int) -> float:
    """Compute the two-sided exact McNemar test.

    first (int): Mentions that only the first linker gets right.
    second (int): Mentions that only the second one gets right.
    RETURNS (float): How likely it is that they differ by as much or more, if for each
        of these mentions either linker is as likely to be the right one.
    SOURCE: McNemar (1947), with the binomial distribution in place of chi-squared.
    """
    total, fewer = first + second, min(first, second)
    ways = term = 1
    for number in range(fewer):
        term = term * (total - number) // (number + 1)  # C(total, number + 1)
        ways += term
    # Python divides integers of any size, so that nothing overflows on the way.
    return min(1.0, 2 * ways / 2**total)


def randomisation_p(differences: np.ndarray, chance: Chance = CHANCE) -> float:
    """Test paired differences by letting chance choose the sign of each.

    differences (np.ndarray): Second minus first. Shape: (n,).
    chance (Chance): How often, and from which seed.
    RETURNS (float): The share of draws, the one that was seen among them, whose sum is
        as far from 0 or farther.
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    # Only how many of each size get which sign matters: one binomial number each.
    rng = np.random.default_rng(chance.seed)
    plus = rng.binomial(counts, 0.5, size=(chance.samples, len(counts)))
    sums = (2 * plus - counts) @ sizes
    extreme = int((np.abs(sums) >= abs(differences.sum()) - SLACK).sum())
    return (extreme + 1) / (chance.samples + 1)


def bootstrap_interval(
    differences: np.ndarray, chance: Chance = CHANCE
) -> tuple[float, float]:
    """Compute the interval of a mean difference by drawing mentions again.

    differences (np.ndarray): Second minus first. Shape: (n,).
    chance (Chance): How often, from which seed, and how wide.
    RETURNS (tuple[float, float]): The percentiles of the means.
    """
    values, counts = np.unique(differences, return_counts=True)
    # To draw n mentions is to draw how many have each of the few values.
    rng, shares = np.random.default_rng(chance.seed), counts / counts.sum()
    drawn = rng.multinomial(len(differences), shares, size=chance.samples)
    means = drawn @ values / len(differences)
    outside = (1 - chance.confidence) / 2
    low, high = np.quantile(means, [outside, 1 - outside])
    return float(low), float(high)


def compare_outcomes(
    first: np.ndarray, second: np.ndarray, chance: Chance = CHANCE
) -> dict[str, Any]:
    """Compare two linkers on the same mentions.

    first (np.ndarray): How right each first answer of one is. Shape: (n, ties).
    second (np.ndarray): The same of the other. Shape: (n, ties).
    chance (Chance): How chance is drawn.
    RETURNS (dict[str, Any]): By the way of ties.
    """
    results: dict[str, Any] = {}
    for number, tie in enumerate(TIES):
        one, other = first[:, number], second[:, number]
        differences = other - one
        only_first = int((differences < 0).sum())
        only_second = int((differences > 0).sum())
        interval = bootstrap_interval(differences, chance)
        if tie == "expected":  # parts of a hit, which McNemar's test cannot count
            test, p = "randomisation", randomisation_p(differences, chance)
        else:
            test, p = "McNemar, exact", mcnemar_p(only_first, only_second)
        results[tie] = {
            "first": round(float(one.mean()), 6),
            "second": round(float(other.mean()), 6),
            "difference": round(float(differences.mean()), 6),
            "interval": [round(end, 6) for end in interval],
            "only_first": only_first,
            "only_second": only_second,
            "test": test,
            "p": p,
        }
    return results
