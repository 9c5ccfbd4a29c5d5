from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.evaluation.accuracy import (
    Answer,
    combine_parts,
    compute_accuracy,
    cut_ranking,
    is_complete,
    list_concepts,
    list_rows,
    score_answers,
    score_ranking,
    trim_answers,
    wilson_interval,
)

Parts = list[frozenset[str]]


def gold(*parts: str) -> Parts:
    return [frozenset(part.split("|")) for part in parts]


# Three concepts tie at 0.9; then b once more, then d.
TIED = [(0.9, "a"), (0.9, "b"), (0.9, "c"), (0.5, "d")]


@pytest.mark.parametrize(
    ("parts", "k", "lenient", "expected", "strict"),
    [
        (gold("a"), 1, 1.0, 1 / 3, 0.0),
        (gold("a|b"), 1, 1.0, 2 / 3, 0.0),
        (gold("a|b|c"), 1, 1.0, 1.0, 1.0),
        (gold("a"), 2, 1.0, 2 / 3, 0.0),
        (gold("a|b"), 2, 1.0, 1.0, 1.0),  # only one place for the wrong one
        (gold("a"), 3, 1.0, 1.0, 1.0),  # the tie lies before the cut
        (gold("d"), 3, 0.0, 0.0, 0.0),
        (gold("d"), 4, 1.0, 1.0, 1.0),
        (gold("a", "b"), 2, 1.0, 1 / 3, 0.0),  # ab of ab, ac, bc
        (gold("a", "b"), 1, 1.0, 0.0, 0.0),  # two cannot both be first
        (gold("a", "d"), 3, 0.0, 0.0, 0.0),
        (gold("a", "d"), 4, 1.0, 1.0, 1.0),
        (gold("a", "b|c"), 2, 1.0, 2 / 3, 0.0),  # ab, ac of ab, ac, bc
        (gold("z"), 4, 0.0, 0.0, 0.0),
    ],
)
def test_score_ranking_counts_ties_in_three_ways(
    parts: Parts, k: int, lenient: float, expected: float, strict: float
) -> None:
    assert score_ranking(TIED, parts, k) == pytest.approx([lenient, expected, strict])


def test_score_ranking_of_nothing_is_wrong() -> None:
    assert score_ranking([], gold("a"), 5) == [0.0, 0.0, 0.0]


def test_score_ranking_never_hits_an_uncovered_part() -> None:
    parts = [frozenset({"a"}), frozenset()]
    assert score_ranking(TIED, parts, 4) == [0.0, 0.0, 0.0]


def test_score_ranking_handles_a_composite_of_many_parts() -> None:
    ranking = [(0.9, str(number)) for number in range(200)]
    parts = gold(*map(str, range(100)))
    assert score_ranking(ranking, parts, 5) == [1.0, 0.0, 0.0]


def test_cut_ranking_separates_the_tie_at_the_cut() -> None:
    assert cut_ranking(TIED, 2) == ([], ["a", "b", "c"], 2)
    assert cut_ranking([(1.0, "z"), *TIED], 2) == (["z"], ["a", "b", "c"], 1)
    assert cut_ranking(TIED, 9) == (["a", "b", "c", "d"], [], 0)


rankings = st.lists(
    st.tuples(st.sampled_from([0.9, 0.8, 0.7]), st.sampled_from("abcd")), max_size=6
).map(lambda scored: sorted(scored, reverse=True))
some_parts = st.lists(
    st.frozensets(st.sampled_from("abcde"), max_size=2), min_size=1, max_size=3
)


@given(rankings, some_parts, st.integers(1, 4))
def test_score_ranking_expected_is_the_mean_over_all_orders(
    ranking: list[tuple[float, str]], parts: Parts, k: int
) -> None:
    hits = total = 0
    for order in permutations(ranking):
        if sorted(order, key=lambda pair: -pair[0]) != list(order):
            continue
        best = {cui for _, cui in order[:k]}
        hits += all(part & best for part in parts)
        total += 1
    _, expected, strict = score_ranking(ranking, parts, k)
    assert expected == pytest.approx(float(Fraction(hits, total)))
    assert strict == (hits == total)


@given(rankings, some_parts, st.integers(1, 4))
def test_score_ranking_lenient_needs_one_order_for_each_part(
    ranking: list[tuple[float, str]], parts: Parts, k: int
) -> None:
    last = ranking[min(k, len(ranking)) - 1][0] if ranking else 1.0
    within = {cui for score, cui in ranking if score >= last}
    lenient = score_ranking(ranking, parts, k)[0]
    assert lenient == all(part & within for part in parts)


@given(rankings, some_parts, st.integers(1, 4))
def test_score_ranking_orders_strict_expected_lenient(
    ranking: list[tuple[float, str]], parts: Parts, k: int
) -> None:
    lenient, expected, strict = score_ranking(ranking, parts, k)
    assert 0 <= strict <= expected <= lenient <= 1


@given(rankings, some_parts)
def test_score_ranking_grows_with_k(
    ranking: list[tuple[float, str]], parts: Parts
) -> None:
    scored = [score_ranking(ranking, parts, k) for k in range(1, 8)]
    assert np.all(np.diff(np.array(scored), axis=0) >= -1e-12)


some_rows = st.lists(
    st.tuples(
        st.sampled_from([0.9, 0.8, 0.7]),
        st.sets(st.sampled_from("abcd"), min_size=1, max_size=3),
    ),
    max_size=6,
)


def rank_rows(rows: list[tuple[float, set[str]]], first: int = 0) -> list[Answer]:
    """Rows with their concepts as answers, best first."""
    answers = [
        Answer(number, cui, score)
        for number, (score, cuis) in enumerate(rows, first)
        for cui in sorted(cuis)
    ]
    return sorted(answers, key=lambda answer: -answer.score)


answer_lists = some_rows.map(rank_rows)


@given(some_rows, some_parts, st.integers(1, 4))
def test_score_answers_by_rows_is_that_of_the_released_evaluation(
    rows: list[tuple[float, set[str]]], parts: Parts, k: int
) -> None:
    """Theirs has no ties: the rows of equal scores are tried in every order."""
    (_, (by_rows,)) = score_answers(rank_rows(rows), parts, [k])
    hits = []
    for order in permutations(rows):
        ordered = sorted(order, key=lambda row: -row[0])
        labels = [cuis for _, cuis in ordered[:k]]
        hits.append(
            all(any(not part.isdisjoint(cuis) for cuis in labels) for part in parts)
        )
    assert by_rows[1] == pytest.approx(np.mean(hits))
    assert by_rows[2] == all(hits)
    assert by_rows[0] >= any(hits)


def test_score_answers_expected_may_be_higher_by_rows() -> None:
    answers = [Answer(0, "a", 0.9), Answer(1, "a", 0.9), Answer(2, "b", 0.9)]
    (by_concepts,), (by_rows,) = score_answers(answers, gold("a"), [1])
    assert by_concepts[1] == pytest.approx(1 / 2)
    assert by_rows[1] == pytest.approx(2 / 3)


def test_score_answers_counts_names_by_rows() -> None:
    names = [Answer(row, "a", 0.9 - row / 100) for row in range(5)]
    answers = [*names, Answer(5, "b", 0.5)]
    scored = score_answers(answers, gold("b"), [5])
    assert scored[:, 0, 0].tolist() == [1.0, 0.0]  # levels: concepts, rows


def test_a_name_of_two_concepts_is_one_row_which_is_right_for_both() -> None:
    answers = [Answer(0, "a", 1.0), Answer(0, "b", 1.0), Answer(1, "c", 0.9)]
    assert list_rows(answers) == [(1.0, "0"), (0.9, "1")]
    assert list_concepts(answers) == [(1.0, "a"), (1.0, "b"), (0.9, "c")]
    for right, k in (("a", 1), ("b", 1), ("c", 2)):
        assert score_answers(answers, gold(right), [k])[1, 0].tolist() == [1, 1, 1]


def test_combine_parts_released_accepts_any_concept() -> None:
    parts = gold("a|b", "c")
    assert combine_parts(parts, "released") == [frozenset("abc")]
    assert combine_parts(parts, "parts") == parts
    ranking = [(0.9, "c"), (0.8, "z")]
    assert score_ranking(ranking, combine_parts(parts, "released"), 2)[0] == 1
    assert score_ranking(ranking, combine_parts(parts, "parts"), 2)[0] == 0


@given(answer_lists, some_parts, st.integers(1, 3))
def test_trim_answers_changes_no_score(
    answers: list[Answer], parts: Parts, k: int
) -> None:
    whole = score_answers(answers, parts, [1, k])
    kept = trim_answers(answers, k)
    assert np.array_equal(score_answers(kept, parts, [1, k]), whole)


@given(answer_lists, answer_lists, some_parts, st.integers(1, 3))
def test_is_complete_if_lower_answers_change_nothing(
    answers: list[Answer], more: list[Answer], parts: Parts, k: int
) -> None:
    if not is_complete(answers, k):
        return
    lower = [answer._replace(score=answer.score - 0.5) for answer in more]
    lower = [answer._replace(row=answer.row + 10) for answer in lower]
    before, after = (score_answers(a, parts, [k]) for a in (answers, answers + lower))
    assert np.array_equal(before, after)


def test_compute_accuracy_returns_means() -> None:
    scores = np.zeros((3, 2, 1, 3))
    scores[0] = 1
    scores[1, 0] = 0.5
    summary = compute_accuracy(scores[:2], [1])
    assert summary["mentions"] == 2
    assert summary["concepts"]["acc@1"]["expected"] == 0.75
    assert summary["rows"]["acc@1"]["expected"] == 0.5
    nobody = compute_accuracy(scores[:0], [1])
    assert nobody["mentions"] == 0
    assert nobody["rows"]["acc@1"]["strict"] is None


def test_wilson_interval_equals_values_computed_by_hand() -> None:
    assert wilson_interval(0.7, 5) == pytest.approx((0.2988, 0.9274), abs=1e-4)
    assert wilson_interval(1.0, 5) == pytest.approx((0.5655, 1.0), abs=1e-4)
