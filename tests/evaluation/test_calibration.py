from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.calibration import (
    TopScores,
    calibrate,
    calibration_error,
    choose_threshold,
    compute_measures,
    parse_criterion,
    read_gold_files,
    score_top1,
    sort_scores,
)
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.linking.probability import (
    fit_logistic,
    fit_logistics,
    score_probability,
)

F1, ACCURACY = "f1", "accuracy"
ANSWERS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 20).map(lambda n: n / 20)),
        st.sampled_from(["right", "wrong", "nil"]),
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(score is not None for score, _ in rows))


def make_scores(rows: list[tuple]) -> TopScores:
    return sort_scores(
        [(s, kind == "right" and s is not None, kind != "nil") for s, kind in rows]
    )


def list_thresholds(top: TopScores) -> np.ndarray:
    return np.unique(top.scores[np.isfinite(top.scores)])


def sample_scores(mentions: int, *, seed: int = 0, slope: float = 12) -> TopScores:
    """Scores of which 1 / (1 + exp(−slope · (score − 0.7))) are right."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.4, 1, mentions).round(6)
    right = rng.random(mentions) < 1 / (1 + np.exp(-slope * (scores - 0.7)))
    known = right | (rng.random(mentions) < 0.9)
    return sort_scores(list(zip(scores, right, known, strict=True)))


@pytest.mark.parametrize(
    "text",
    ["recall=0.9", "precision", "precision=0", "precision=1.5", "precision=nan"],
)
def test_parse_criterion_refuses_others(text):
    with pytest.raises(SapbertError, match=r"E331.*accuracy or precision"):
        parse_criterion(text)


@given(ANSWERS)
def test_compute_measures_equals_counting_one_by_one(rows):
    top = make_scores(rows)
    thresholds = [*list_thresholds(top), 2.0]  # which links nothing
    measures = compute_measures(top, np.array(thresholds))
    for place, threshold in enumerate(thresholds):
        linked = [
            kind for score, kind in rows if score is not None and score >= threshold
        ]
        hits = linked.count("right")
        known = sum(kind != "nil" for _, kind in rows)
        kept = sum(kind == "nil" for _, kind in rows) - linked.count("nil")
        precision = hits / len(linked) if linked else np.nan
        assert measures["precision"][place] == pytest.approx(precision, nan_ok=True)
        if known:
            assert measures["recall"][place] == pytest.approx(hits / known)
        if both := len(linked) + known:
            assert measures["f1"][place] == pytest.approx(2 * hits / both)
        assert measures["accuracy"][place] == pytest.approx((hits + kept) / len(rows))


@given(ANSWERS, st.integers(1, 100))
@example([(0.5, "wrong")] + [(0.6, "right")] * 3, 75)  # exactly at 0.5
@example([(0.5, "wrong"), (0.5, "right")], 50)  # the highest there is
def test_choose_threshold_reaches_the_criterion_and_none_is_better(rows, percent):
    top = make_scores(rows)
    thresholds, level = list_thresholds(top), percent / 100
    measures = compute_measures(top, thresholds)
    for name in ("f1", "accuracy"):
        best = thresholds[measures[name] == measures[name].max()]
        assert choose_threshold(top, name) == best.min()
    precision = measures["precision"]
    if precision.max() < level:
        with pytest.raises(SapbertError, match="E582"):
            choose_threshold(top, f"precision={level}")
    else:
        threshold = choose_threshold(top, f"precision={level}")
        assert precision[thresholds == threshold] >= level
        assert (precision[thresholds < threshold] < level).all()


@pytest.mark.parametrize("mentions", [60, 2000])
def test_fit_logistic_equals_scikit_learn(mentions):
    linear_model = pytest.importorskip("sklearn.linear_model", reason="no scikit-learn")
    top = sample_scores(mentions)
    hits, misses = top.right.sum(), (~top.right).sum()
    # each mention as a right and a wrong one, weighted by Platt's targets
    targets = np.where(top.right, (hits + 1) / (hits + 2), 1 / (misses + 2))
    model = linear_model.LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000)
    model.fit(
        np.concatenate([top.scores, top.scores])[:, None],
        np.repeat([1, 0], mentions),
        sample_weight=np.concatenate([targets, 1 - targets]),
    )
    logistic = fit_logistic(top.scores, top.right)
    slope, intercept = logistic.slope, logistic.intercept
    assert slope == pytest.approx(model.coef_[0, 0], rel=1e-4)
    assert intercept == pytest.approx(model.intercept_[0], rel=1e-4)


def test_fit_logistic_is_finite_if_a_score_separates_right_from_wrong():
    scores = np.array([0.5] * 30 + [0.9] * 30)
    logistic = fit_logistic(scores, scores > 0.7)
    # two free numbers and two scores: Platt's targets are met
    found = score_probability(logistic, np.array([0.5, 0.9]))
    assert found.tolist() == [round(1 / 32, 6), round(31 / 32, 6)]


def test_fit_logistics_ignores_a_value_that_is_nearly_constant():
    """As the cosines of mentions that are names, which differ by rounding."""
    chance = np.random.default_rng(0)
    right = chance.random(300) < 0.9
    nearly = np.where(right, 1.0, 0.999999)
    slopes, _ = fit_logistics(np.stack([nearly, right + chance.random(300)], 1), right)
    assert slopes[0] == 0
    assert slopes[1] > 1


def test_calibration_error_by_hand():
    probabilities = np.array([0.05, 0.05, 0.85, 0.85, 0.85, 1.0])
    right = np.array([False, True, True, True, True, False])
    expected = (2 * (0.5 - 0.05) + 3 * (1 - 0.85) + 1) / 6
    assert calibration_error(probabilities, right) == pytest.approx(expected, abs=1e-6)


def known(found: dict[str, Any]) -> Calibration:
    return Calibration.model_validate(found)


def test_calibrate_has_no_precision_above_every_score():
    found = {**calibrate(sample_scores(200), {}, F1), "threshold": 0.99}
    top = sample_scores(200)
    checked = calibrate(top._replace(scores=top.scores - 0.1), {}, F1, known(found))
    assert checked["precision"] is None
    assert checked["recall"] == checked["linked"] == 0


def rising(right: list[bool]) -> TopScores:
    return sort_scores([(0.5 + n / 1000, hit, True) for n, hit in enumerate(right)])


@pytest.mark.parametrize(
    ("top", "code"),
    [
        (sample_scores(49), "E582.*at least 50.*49"),
        (sort_scores([(None, False, True)] * 60), "E582.*got 0"),
        (rising([True] * 60), "E582.*60 mentions.*all are right"),
        (sort_scores([(0.7, n % 3 > 0, True) for n in range(60)]), "E582.*higher"),
        (rising([True] * 40 + [False] * 20), "E582.*higher scores than wrong"),
    ],
)
def test_calibrate_refuses_answers_that_decide_nothing(top, code):
    with pytest.raises(SapbertError, match=code):
        calibrate(top, {}, F1)


def test_read_gold_files_up_to_a_limit_in_each(tmp_path):
    text = "".join(
        f"{document}|t|Fever and pain\n{document}|a|\n"
        + f"{document}\t0\t5\tFever\tX\tC4\n" * mentions
        + "\n"
        for document, mentions in [(1, 2), (2, 0), (3, 2), (4, 1)]
    )
    paths = [tmp_path / name for name in ("a.pubtator", "b.pubtator")]
    for path in paths:
        path.write_text(text, "utf8")
    files = read_gold_files(paths, limit=3)
    assert [[len(d.mentions) for d in files[path]] for path in paths] == [[2, 0, 1]] * 2
    # documents that have an id and mentions
    files[paths[1]].append(files[paths[1]][0]._replace(id=""))
    assert calibrate(sample_scores(60), files, F1)["documents"] == 4
    with pytest.raises(SapbertError, match="E423"):
        read_gold_files([paths[0], tmp_path / "c" / "a.pubtator"])


@pytest.mark.parametrize(
    ("mention", "parts", "expected"),
    [
        ("Fever", ["C0000004"], [True, True, True]),
        ("Fever", ["C0000005"], [True, False, True]),
        ("Fever", ["OMIM:1"], [True, True, True]),  # an alias
        ("heart attack", ["C9999999"], [True, True, True]),  # retired
        ("Fever", ["C0000004", "C0000005"], [True, False, True]),  # a composite
        ("Fever", ["C7777777"], [True, False, False]),  # not in the knowledge base
        ("Fever", [], [True, False, False]),
        ("--", ["C0000004"], [False, False, True]),
    ],
)
def test_score_top1_compares_with_the_gold_ids(kb, mention, parts, expected):
    gold = GoldMention(-1, -1, "", mention, [part.split("|") for part in parts], 2)
    aliases = {"OMIM:1": "C0000004", "C0000004": "C0000004"}
    top = score_top1(kb, {Path("dev.tsv"): [GoldDocument("", "", [gold])]}, aliases)
    found = [top.scores[0] > 0.999, bool(top.right[0]), bool(top.known[0])]
    assert found == expected
