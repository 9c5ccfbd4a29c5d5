import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.thresholds import (
    Criterion,
    Judged,
    bootstrap_threshold,
    bound_quantiles,
    choose_threshold,
    list_thresholds,
    make_judged,
    measure_thresholds,
    number_groups,
    parse_criterion,
)

# right, right, wrong, true NIL, right, no answer to a known one, none to a true NIL
BY_HAND = make_judged(
    [0.9, 0.8, 0.8, 0.6, 0.5, None, None],
    [True, True, False, False, True, False, False],
    [True, True, True, False, True, True, False],
    [0, 0, 1, 1, 2, 2, 3],
)

ANSWERS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 20).map(lambda n: n / 20)),
        st.sampled_from(["right", "wrong", "nil"]),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(score is not None for score, _, _ in rows))


def judge(rows: list[tuple]) -> Judged:
    return make_judged(
        [score for score, _, _ in rows],
        [kind == "right" and score is not None for score, kind, _ in rows],
        [kind != "nil" for _, kind, _ in rows],
        number_groups([group for _, _, group in rows]),
    )


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        ("f1", Criterion("f1")),
        ("accuracy", Criterion("accuracy")),
        ("precision=0.95", Criterion("precision", 0.95)),
        ("precision=.9", Criterion("precision", 0.9)),
        ("precision=1", Criterion("precision", 1.0)),
    ],
)
def test_criteria_are_read(text: str, criterion: Criterion) -> None:
    assert parse_criterion(text) == criterion


@pytest.mark.parametrize(
    "text",
    ["", "F1", "recall=0.9", "precision", "precision=0", "precision=1.5"]
    + ["precision=-1", "precision=nan", "precision=0.9 "],
)
def test_other_criteria_are_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(SapbertError, match=r"E581.*accuracy or precision"):
        parse_criterion(text)


def test_measures_by_hand() -> None:
    thresholds = list_thresholds(BY_HAND)
    assert thresholds.tolist() == [0.5, 0.6, 0.8, 0.9]
    curves = measure_thresholds(BY_HAND, thresholds)
    # 5, 4, 3 and 1 are linked, of which 3, 2, 2 and 1 are right; 5 are known
    assert curves["precision"].tolist() == [3 / 5, 2 / 4, 2 / 3, 1 / 1]
    assert curves["recall"].tolist() == [3 / 5, 2 / 5, 2 / 5, 1 / 5]
    assert curves["f1"].tolist() == [6 / 10, 4 / 9, 4 / 8, 2 / 6]
    # and 1, 1, 2 and 2 true NILs are not linked
    assert curves["accuracy"] == pytest.approx([4 / 7, 3 / 7, 4 / 7, 3 / 7])


def test_measures_where_nothing_is_linked() -> None:
    curves = measure_thresholds(BY_HAND, np.array([0.95]))
    assert np.isnan(curves["precision"][0])
    assert curves["recall"][0] == curves["f1"][0] == 0
    assert curves["accuracy"][0] == pytest.approx(2 / 7)


def test_measures_count_a_mention_as_often_as_its_weight_says() -> None:
    weights = np.array([0, 0, 0, 0, 3, 0, 1.0])  # by ascending cosine
    right_at_08 = measure_thresholds(BY_HAND, np.array([0.8]), weights)
    assert right_at_08["precision"][0] == 1.0
    assert measure_thresholds(BY_HAND, np.array([0.85]), weights)["recall"] == [0.25]


def test_the_lowest_threshold_is_chosen_among_equals() -> None:
    curves = measure_thresholds(BY_HAND, list_thresholds(BY_HAND))
    assert choose_threshold(curves, Criterion("f1")) == 0
    assert choose_threshold(curves, Criterion("accuracy")) == 0  # as good as number 2


@pytest.mark.parametrize(("level", "place"), [(0.55, 0), (0.65, 2), (0.7, 3), (1, 3)])
def test_the_lowest_threshold_with_a_precision(level: float, place: int) -> None:
    curves = measure_thresholds(BY_HAND, list_thresholds(BY_HAND))
    assert choose_threshold(curves, Criterion("precision", level)) == place


def test_no_threshold_may_reach_a_precision() -> None:
    judged = make_judged([0.5, 0.5], [True, False], [True, True], [0, 1])
    curves = measure_thresholds(judged, list_thresholds(judged))
    assert choose_threshold(curves, Criterion("precision", 0.6)) is None


@given(ANSWERS)
def test_measures_are_those_of_counting_one_by_one(rows: list[tuple]) -> None:
    judged = judge(rows)
    thresholds = list_thresholds(judged)
    curves = measure_thresholds(judged, thresholds)
    for place, threshold in enumerate(thresholds):
        linked = [
            kind for score, kind, _ in rows if score is not None and score >= threshold
        ]
        hits = linked.count("right")
        known = sum(kind != "nil" for _, kind, _ in rows)
        kept = sum(kind == "nil" for _, kind, _ in rows) - linked.count("nil")
        assert curves["precision"][place] == pytest.approx(hits / len(linked))
        if known:
            assert curves["recall"][place] == pytest.approx(hits / known)
        assert curves["f1"][place] == pytest.approx(2 * hits / (len(linked) + known))
        assert curves["accuracy"][place] == pytest.approx((hits + kept) / len(rows))


@given(ANSWERS, st.integers(1, 100))
def test_a_chosen_threshold_reaches_its_criterion_and_none_is_better(
    rows: list[tuple], percent: int
) -> None:
    judged = judge(rows)
    curves = measure_thresholds(judged, list_thresholds(judged))
    for name in ("f1", "accuracy"):
        place = choose_threshold(curves, Criterion(name))
        assert curves[name][place] == curves[name].max()
    level = percent / 100
    place = choose_threshold(curves, Criterion("precision", level))
    if place is None:
        assert (curves["precision"] < level).all()
    else:
        assert curves["precision"][place] >= level
        assert (curves["precision"][:place] < level).all()


def test_mentions_of_unknown_documents_are_documents_of_their_own() -> None:
    assert number_groups(["a", "b", "a", None, None, "b"]) == [0, 1, 0, 2, 3, 1]


def test_quantiles_by_hand() -> None:
    values = np.array([3.0, np.nan, *range(4, 102), np.inf])
    assert bound_quantiles(values, 0.95) == [5.0, 100.0]
    assert bound_quantiles(np.array([1.0, np.inf]), 0.95) == [1.0, None]
    assert bound_quantiles(np.array([np.nan]), 0.95) is None


def test_bootstrap_is_wider_where_mentions_of_a_document_go_together() -> None:
    scores = [0.5 + n / 400 for n in range(200)]
    right = [n // 10 % 2 == 0 for n in range(200)]
    known = [True] * 200

    def width(groups: list[int]) -> float:
        judged = make_judged(scores, right, known, groups)
        found = bootstrap_threshold(judged, Criterion("f1"), 0.5, samples=200)
        low, high = found["precision"]
        assert low <= 0.5 <= high
        return float(high - low)

    alone = width(list(range(200)))
    assert width([n // 10 for n in range(200)]) > 2 * alone


def test_bootstrap_is_the_same_for_one_seed() -> None:
    runs = [
        bootstrap_threshold(BY_HAND, Criterion("f1"), 0.8, samples=50, seed=seed)
        for seed in (0, 0)
    ]
    assert runs[0] == runs[1]
    assert runs[0]["samples"] == 50


def test_bootstrap_says_where_a_precision_may_not_be_reached() -> None:
    judged = make_judged(
        [0.4, 0.5, 0.6, 0.7], [True, False, False, True], [True] * 4, [0, 1, 2, 3]
    )
    found = bootstrap_threshold(judged, Criterion("precision", 0.9), 0.7)
    assert found["threshold"] == [0.4, None]
