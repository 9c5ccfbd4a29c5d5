import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.experiments.relatedness import (
    area_under_curve,
    average_ranks,
    judge_distances,
    judge_relations,
    precision_recall,
    rank_correlation,
)

few = st.lists(st.integers(-3, 3).map(lambda each: each / 4), min_size=1, max_size=20)


def test_area_under_curve_by_hand() -> None:
    # of 6 comparisons 4 are won, 1 is a tie, 1 is lost
    near, far = np.array([0.9, 0.5]), np.array([0.5, 0.7, 0.1])
    assert area_under_curve(near, far) == pytest.approx(4.5 / 6)
    assert area_under_curve(near, far[:0]) is None
    assert area_under_curve(near[:0], far) is None


@given(few, few)
def test_area_under_curve_is_the_share_of_comparisons_won(
    near: list[float], far: list[float]
) -> None:
    won = sum((a > b) + (a == b) / 2 for a in near for b in far)
    found = area_under_curve(np.array(near), np.array(far))
    assert found == pytest.approx(won / len(near) / len(far))


def test_area_and_curve_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="no scikit-learn")
    chance = np.random.default_rng(0)
    cosines = chance.normal(size=500).round(1)  # with ties
    near = chance.random(500) < 0.3
    assert area_under_curve(cosines[near], cosines[~near]) == pytest.approx(
        metrics.roc_auc_score(near, cosines)
    )
    precision, recall, thresholds = metrics.precision_recall_curve(near, cosines)
    points = precision_recall(cosines, near, points=1000)[::-1]
    assert [each["cosine"] for each in points] == pytest.approx(thresholds.tolist())
    assert [each["precision"] for each in points] == pytest.approx(
        precision[:-1].tolist(), abs=1e-4
    )
    assert [each["recall"] for each in points] == pytest.approx(
        recall[:-1].tolist(), abs=1e-4
    )


def test_rank_correlation_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="no scipy")
    chance = np.random.default_rng(1)
    cosines = chance.normal(size=200).round(1)
    distances = chance.integers(4, size=200)
    expected = stats.spearmanr(cosines, -distances).statistic
    assert rank_correlation(cosines, distances) == pytest.approx(expected)
    assert average_ranks(cosines) == pytest.approx(stats.rankdata(cosines))
    assert rank_correlation(cosines, distances * 0) is None


def test_precision_recall_keeps_the_ends_of_a_long_curve() -> None:
    cosines = np.linspace(-1, 1, 1000)
    points = precision_recall(cosines, cosines > 0, points=10)
    assert len(points) == 10
    assert points[0]["precision"] == 1
    assert points[-1] == {"cosine": -1, "precision": 0.5, "recall": 1}
    assert precision_recall(cosines, cosines > 2) == []


def test_judge_distances_by_hand() -> None:
    result = judge_distances(
        np.array([0.9, 0.8, 0.6, 0.6, 0.2]), np.array([0, 1, 1, 3, 3])
    )
    assert result["pairs"] == {"0": 1, "1": 2, "3": 2}
    assert result["mean_cosine"] == {"0": 0.9, "1": 0.7, "3": 0.4}
    assert result["auc"] == {"0-1": 1.0, "0-3": 1.0, "1-3": 0.875}
    assert result["spearman"] > 0.8
    assert list(result["precision_recall"]) == ["0", "1"]
    assert result["precision_recall"]["1"][-1] == {
        "cosine": 0.2,
        "precision": 0.6,
        "recall": 1.0,
    }


def test_judge_relations_by_hand() -> None:
    random = np.array([0.1, 0.3])
    result = judge_relations(np.array([0.2, 0.9, 0.8]), ["of", "in", "in"], random)
    assert list(result["relations"]) == ["in", "of"]
    assert result["relations"]["in"] == {"pairs": 2, "auc": 1.0}
    assert result["relations"]["of"] == {"pairs": 1, "auc": 0.5}
    assert result["mean_auc"] == 0.75
    assert judge_relations(np.zeros(0), [], random)["mean_auc"] is None
