"""Cosines of pairs of names → how well they tell near pairs from far ones."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

DIGITS = 4
POINTS = 100


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Rank values from 1, and give equal ones the mean of their ranks.

    values (np.ndarray): Shape: (n,).
    RETURNS (np.ndarray): float64. Shape: (n,).
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (counts.cumsum() - (counts - 1) / 2)[places]
    return ranks


def area_under_curve(near: np.ndarray, far: np.ndarray) -> float | None:
    """Compute the chance that a near pair has a higher cosine than a far one.

    near (np.ndarray): Cosines. Shape: (n,).
    far (np.ndarray): Cosines. Shape: (m,).
    RETURNS (float | None): Area under the ROC curve, 0 to 1, ties counting half;
        None if there are no near or no far pairs.
    """
    if not len(near) or not len(far):
        return None
    ranks = average_ranks(np.concatenate((near, far)))[: len(near)]
    least = len(near) * (len(near) + 1) / 2
    return float((ranks.sum() - least) / (len(near) * len(far)))


def rank_correlation(cosines: np.ndarray, distances: np.ndarray) -> float | None:
    """Compute how well the order of the cosines is the reverse of the distances'.

    cosines (np.ndarray): Shape: (n,).
    distances (np.ndarray): Shape: (n,).
    RETURNS (float | None): Spearman's coefficient of the cosine and the negative
        distance, −1 to 1; None if either is the same everywhere.
    """
    if len(np.unique(cosines)) < 2 or len(np.unique(distances)) < 2:
        return None
    ranks = average_ranks(cosines), average_ranks(-distances)
    return float(np.corrcoef(*ranks)[0, 1])


def precision_recall(
    cosines: np.ndarray, near: np.ndarray, *, points: int = POINTS
) -> list[dict[str, float]]:
    """Follow precision and recall while the cosine that is asked for falls.

    cosines (np.ndarray): Shape: (n,).
    near (np.ndarray): Which pairs are to be found, bool. Shape: (n,).
    points (int): How many of the different cosines are kept, at like distances.
    RETURNS (list[dict[str, float]]): The least cosine, and precision and recall of the
        pairs that have it; empty if there is nothing to be found.
    """
    order = np.argsort(-cosines, kind="stable")
    found = near[order].cumsum()
    if not len(found) or not found[-1]:
        return []
    falling = cosines[order]
    # equal cosines are found together
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
    if len(last) > points:
        last = last[np.linspace(0, len(last) - 1, points).round().astype(int)]
    return [
        {
            "cosine": round(float(falling[place]), DIGITS),
            "precision": round(float(found[place] / (place + 1)), DIGITS),
            "recall": round(float(found[place] / found[-1]), DIGITS),
        }
        for place in last.tolist()
    ]


def round_number(value: float | None) -> float | None:
    """Round what there is."""
    return None if value is None else round(value, DIGITS)


def judge_distances(cosines: np.ndarray, distances: np.ndarray) -> dict[str, Any]:
    """Judge the cosines of pairs whose distances are known.

    cosines (np.ndarray): Shape: (n,).
    distances (np.ndarray): Whole numbers. Shape: (n,).
    RETURNS (dict[str, Any]): Plain JSON types: pairs and mean cosine by distance, the
        area under the ROC curve for each two distances, Spearman's coefficient, and
        the precision–recall curve of the pairs up to each distance but the largest.
    """
    known = sorted(set(distances.tolist()))
    by_distance = {each: cosines[distances == each] for each in known}
    return {
        "pairs": {str(each): len(found) for each, found in by_distance.items()},
        "mean_cosine": {
            str(each): round(float(found.mean()), DIGITS)
            for each, found in by_distance.items()
        },
        "auc": {
            f"{one}-{other}": round_number(
                area_under_curve(by_distance[one], by_distance[other])
            )
            for one, other in combinations(known, 2)
        },
        "spearman": round_number(rank_correlation(cosines, distances)),
        "precision_recall": {
            str(each): precision_recall(cosines, distances <= each)
            for each in known[:-1]
        },
    }


def judge_relations(
    cosines: np.ndarray, relations: Sequence[str], random: np.ndarray
) -> dict[str, Any]:
    """Judge the cosines of related pairs against those of random ones.

    cosines (np.ndarray): Of related pairs. Shape: (n,).
    relations (Sequence[str]): What relates each.
    random (np.ndarray): Cosines of random pairs. Shape: (m,).
    RETURNS (dict[str, Any]): By relation, those with the most pairs first, how many
        there are and their area under the ROC curve; and the mean area.
    """
    names = np.array(relations, dtype=object)
    known = sorted(set(relations), key=lambda name: (-int((names == name).sum()), name))
    areas = {name: area_under_curve(cosines[names == name], random) for name in known}
    found = [area for area in areas.values() if area is not None]
    return {
        "relations": {
            name: {"pairs": int((names == name).sum()), "auc": round_number(area)}
            for name, area in areas.items()
        },
        "mean_auc": round(float(np.mean(found)), DIGITS) if found else None,
    }
