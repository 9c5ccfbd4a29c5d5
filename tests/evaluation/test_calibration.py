from pathlib import Path

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
    correct_top,
    fit_correction,
    measure,
    parse_criterion,
    read_gold_files,
    score_candidates,
    score_top1,
    share_of_first,
    sort_scores,
)
from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.linking.probability import Correction, fit_logistics, log_odds

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
        [(s, kind == "right" and s is not None, kind != "nil", 1) for s, kind in rows]
    )


def list_thresholds(top: TopScores) -> np.ndarray:
    return np.unique(top.scores[np.isfinite(top.scores)])


def sample_scores(mentions: int, *, seed: int = 0, slope: float = 12) -> TopScores:
    """Probabilities of which 1 / (1 + exp(−slope · (probability − 0.7))) are right."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.4, 1, mentions).round(6)
    right = rng.random(mentions) < 1 / (1 + np.exp(-slope * (scores - 0.7)))
    known = right | (rng.random(mentions) < 0.9)
    return sort_scores([(*row, 1) for row in zip(scores, right, known, strict=True)])


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
def test_fit_correction_equals_scikit_learn(mentions):
    linear_model = pytest.importorskip("sklearn.linear_model", reason="no scikit-learn")
    top = sample_scores(mentions)
    hits, misses = top.right.sum(), (~top.right).sum()
    # each mention as a right and a wrong one, weighted by Platt's targets
    targets = np.where(top.right, (hits + 1) / (hits + 2), 1 / (misses + 2))
    model = linear_model.LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000)
    odds = np.log(top.scores / (1 - top.scores))
    model.fit(
        np.concatenate([odds, odds])[:, None],
        np.repeat([1, 0], mentions),
        sample_weight=np.concatenate([targets, 1 - targets]),
    )
    correction = fit_correction(top)
    assert correction.slope == pytest.approx(model.coef_[0, 0], rel=1e-4)
    assert correction.intercept == pytest.approx(model.intercept_[0], rel=1e-4)


def test_fit_correction_is_finite_if_a_probability_separates_right_from_wrong():
    rows = [(0.5, False, True, 1)] * 30 + [(0.9, True, True, 1)] * 30
    corrected = correct_top(sort_scores(rows), fit_correction(sort_scores(rows)))
    # two free numbers and two probabilities: Platt's targets are met
    expected = [1 / 32] * 30 + [31 / 32] * 30
    assert corrected.scores.tolist() == pytest.approx(expected, abs=1e-6)


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


def test_calibrate_makes_probabilities_right():
    """They are far off, and those of other mentions are not any more."""
    top, other = sample_scores(3000), sample_scores(3000, seed=1)
    before = measure(other, {}, 0.5)
    found = Calibration.model_validate(calibrate(top, {}, F1))
    assert found.criterion == F1
    after = measure(correct_top(other, found.correction), {}, found.threshold)
    assert before["calibration_error"] > 0.15
    assert after["calibration_error"] < 0.04
    assert after["f1"] == pytest.approx(found.f1, abs=0.03)
    # What is linked at the threshold is what was measured.
    corrected = correct_top(top, found.correction)
    assert found.linked == (corrected.scores >= found.threshold).sum()
    at = {figure.threshold: figure for figure in found.thresholds}
    assert {*at} == {0.3, 0.5, 0.8, found.threshold}
    assert at[found.threshold].precision == pytest.approx(found.precision, abs=1e-4)


def test_calibrate_again_changes_nothing():
    top = sample_scores(2000)
    first = Calibration.model_validate(calibrate(top, {}, F1))
    corrected = correct_top(top, first.correction)
    again = Calibration.model_validate(calibrate(corrected, {}, F1, first))
    assert again.threshold == pytest.approx(first.threshold, abs=2e-4)
    for name in ("slope", "intercept"):
        values = [getattr(each.correction, name) for each in (first, again)]
        assert values[1] == pytest.approx(values[0], rel=5e-3)


def test_measure_of_a_threshold_above_every_probability():
    found = measure(sample_scores(200), {}, 1.0)
    assert found["precision"] is None
    assert found["recall"] == found["linked"] == 0


def test_correct_top_corrects_what_several_concepts_share():
    rows = [(None, False, True, 1), (0.2, True, True, 1), (0.3, True, True, 1 / 3)]
    top = sort_scores([*rows, (0.9, True, True, 1)])
    corrected = correct_top(top, Correction(slope=2.0, intercept=1.0))
    odds = {p: 1 / (1 + np.exp(-1 - 2 * log_odds(p))) for p in (0.2, 0.9)}
    # Of three concepts, of which one is meant with 0.9, and which come in between
    expected = sorted([odds[0.2], odds[0.9] / 3, odds[0.9]])
    assert corrected.scores[0] == -np.inf
    assert corrected.scores[1:] == pytest.approx(expected, abs=1e-6)
    assert corrected.shares.tolist() == [1, 1, 1 / 3, 1]


def rising(right: list[bool]) -> TopScores:
    return sort_scores([(0.5 + n / 1000, hit, True, 1) for n, hit in enumerate(right)])


@pytest.mark.parametrize(
    ("top", "code"),
    [
        (sample_scores(49), "E582.*at least 50.*49"),
        (sort_scores([(None, False, True, 1)] * 60), "E582.*got 0"),
        (rising([True] * 60), "E582.*60 mentions.*all are right"),
        (sort_scores([(0.7, n % 3 > 0, True, 1) for n in range(60)]), "E582.*probable"),
        (rising([True] * 40 + [False] * 20), "E582.*more probable than wrong"),
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
    found = [top.scores[0] > -np.inf, bool(top.right[0]), bool(top.known[0])]
    assert found == expected


def test_what_is_never_linked_is_no_answer(kb):
    """It has a probability, but a threshold below it would not link it."""
    (linked,) = kb.link(["Fever"])
    gold = GoldMention(-1, -1, "", "Fever", [["C0000004"]], 2)
    for note, answered in ((None, True), ("excluded", False)):
        found = {"Fever": linked._replace(note=note)}
        top = score_candidates(kb, [gold], found, {})
        assert np.isfinite(top.scores).tolist() == top.right.tolist() == [answered]


def test_score_top1_knows_the_share_of_concepts_that_tie(kb):
    texts = ("MI", "Fever")
    golds = [GoldMention(-1, -1, "", text, [["C0000001"]], 2) for text in texts]
    top = score_top1(kb, {Path("dev.tsv"): [GoldDocument("", "", golds)]}, {})
    assert (top.shares.tolist(), top.right.tolist()) == ([0.5, 1], [True, False])
    assert 0 < top.scores[0] < 0.5 < top.scores[1]
    (linked,) = kb.link(["MI"])
    for tie, share in (("id", 0.5), ("preferred", 0.7), ("label", 1.0)):
        candidates = [{**one, "tie": one["tie"] and tie} for one in linked.candidates]
        assert share_of_first(candidates) == share
    assert share_of_first([]) == 1
