from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.evaluation import rankers
from spacy_sapbert.evaluation.accuracy import (
    Answer,
    is_complete,
    score_answers,
    score_ranking,
    trim_answers,
    wilson_interval,
)
from spacy_sapbert.evaluation.evaluate import evaluate_kb, measure_recall
from spacy_sapbert.evaluation.rankers import kb_ranker
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.building import make_chance

rankings = st.lists(
    st.tuples(st.sampled_from([0.9, 0.8, 0.7]), st.sampled_from("abcd")), max_size=6
).map(lambda scored: sorted(scored, reverse=True))
some_parts = st.lists(
    st.frozensets(st.sampled_from("abcde"), max_size=2), min_size=1, max_size=3
)


@given(rankings, some_parts, st.integers(1, 4))
def test_score_ranking_expected_is_the_mean_over_all_orders(ranking, parts, k):
    hits = total = 0
    for order in permutations(ranking):
        if sorted(order, key=lambda pair: -pair[0]) != list(order):
            continue
        best = {cui for _, cui in order[:k]}
        hits += all(part & best for part in parts)
        total += 1
    lenient, expected, strict = score_ranking(ranking, parts, k)
    assert expected == pytest.approx(float(Fraction(hits, total)))
    assert strict == (hits == total)
    # lenient needs one order for each part
    last = ranking[min(k, len(ranking)) - 1][0] if ranking else 1.0
    within = {cui for score, cui in ranking if score >= last}
    assert lenient == all(part & within for part in parts)


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
def test_score_answers_by_rows_is_that_of_the_released_evaluation(rows, parts, k):
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


@given(answer_lists, some_parts, st.integers(1, 3))
def test_trim_answers_changes_no_score(answers, parts, k):
    whole = score_answers(answers, parts, [1, k])
    kept = trim_answers(answers, k)
    assert np.array_equal(score_answers(kept, parts, [1, k]), whole)


@given(answer_lists, answer_lists, some_parts, st.integers(1, 3))
def test_is_complete_if_lower_answers_change_nothing(answers, more, parts, k):
    if not is_complete(answers, k):
        return
    last = answers[-1].score  # they are not above it
    lower = [Answer(row + 10, cui, min(score, last)) for row, cui, score, _ in more]
    before, after = (score_answers(a, parts, [k]) for a in (answers, answers + lower))
    assert np.array_equal(before, after)


def test_wilson_interval_equals_values_computed_by_hand():
    assert wilson_interval(0.7, 5) == pytest.approx((0.2988, 0.9274), abs=1e-4)
    assert wilson_interval(0.0, 0) == (0, 1)
    assert wilson_interval(1.0, 5) == pytest.approx((0.5655, 1.0), abs=1e-4)


ANSWERS = {
    "fever": [Answer(0, "C1", 0.9), Answer(1, "C2", 0.8), Answer(2, "C3", 0.8)],
    "pain": [Answer(0, "C1", 0.9), Answer(1, "C1", 0.85), Answer(2, "C2", 0.8)],
    "": [],
}


def test_score_mentions_returns_coverage_and_accuracy():
    """C3 ties at the second place; pain has two names of C1 before the one of C2."""
    mentions = [("fever", ["C1"]), ("fever", ["C3"]), ("fever", ["C7"])]
    mentions += [("fever", ["C7", "C1"]), ("pain", ["C2"])]
    golds = [GoldMention(-1, -1, "", text, [ids], 2) for text, ids in mentions]
    settings = EvaluationSettings(ks=(1, 2))
    find = {"C1": "C1", "C2": "C2", "C3": "C3"}.get

    def accuracy(*values: float) -> dict[str, Any]:
        """At 1, where nothing ties, and at 2 in the three ways."""
        first, *second = values
        ties = ("lenient", "expected", "strict")
        found = zip(("acc@1", "acc@2"), ([first] * 3, second), strict=True)
        return {at: dict(zip(ties, each, strict=True)) for at, each in found}

    assert score_mentions(golds, ANSWERS, find, {}, settings) == {
        "judged": 5,
        "coverage": 0.8,
        "accuracy": {
            "all": {
                "mentions": 5,
                "concepts": accuracy(0.4, 0.8, 0.7, 0.6),
                "rows": accuracy(0.4, 0.6, 0.5, 0.4),
            },
            "covered": {
                "mentions": 4,
                "concepts": accuracy(0.5, 1, 0.875, 0.75),
                "rows": accuracy(0.5, 0.75, 0.625, 0.5),
            },
        },
    }


def test_select_mentions_counts_the_others(tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("fever||C1|C2\nFEVER||C2|C1\nfever||-1\nfever||C3\n", "utf8")
    chosen, counts = select_mentions(path, EvaluationSettings(distinct=True))
    assert [gold.line for gold in chosen] == [1, 4]
    assert counts == {"mentions": 4, "without_id": 1, "repeated": 1}
    chosen, counts = select_mentions(path, EvaluationSettings(limit=3))
    assert [gold.line for gold in chosen] == [1, 2]
    assert counts == {"mentions": 3, "without_id": 1, "repeated": 0}


def test_kb_ranker_searches_deeper_until_no_answer_is_missing(kb, monkeypatch):
    mentions = ["Fever", "--", "MI", "heart attack", "Diabetes", "Heart"]
    settings: list[Any] = [({}, 1), ({}, 3), (dict.fromkeys(kb, "X"), 2)]
    whole = [kb_ranker(kb, aliases, k=k)(mentions) for aliases, k in settings]
    monkeypatch.setattr(rankers, "FEWEST_ROWS", 1)
    assert [kb_ranker(kb, aliases, k=k)(mentions) for aliases, k in settings] == whole


def test_measure_recall_counts_rows_that_the_index_misses(kb, incomplete_kb):
    queries = ["fever", "heart disease", "..."]
    recall = {"queries": 2, "recall@1": 1.0, "recall@10": 1.0}
    assert measure_recall(kb, queries) == recall
    missing = {entry.row for entry in kb.store.entries_of("C0000004")}
    found = measure_recall(incomplete_kb, queries, ks=(1, 30))
    assert found["recall@1"] == 0.5  # fever itself
    assert found["recall@30"] == pytest.approx(1 - len(missing) / kb.rows, abs=1e-6)


def test_evaluate_kb_under_a_learned_order(
    make_kb, letters_order, few_concepts, tmp_path
):
    """Scores are reciprocal ranks, and links are counted at some thresholds."""
    chance = make_chance(8.0, 0.7)
    kb = load_kb(make_kb(tmp_path, few_concepts, learned=letters_order, chance=chance))
    mentions = {"Fever": "C0000004", "pyrexias": "C0000004", "hearty": "C0000003"}
    mentions |= {"MI": "C0000002", "headache": "C0000007", "diabetic": "C0000005"}
    mentions |= {"hand": "C77", "head": "C78", "febril": "C0000004"}
    path = tmp_path / "gold.txt"
    path.write_text("".join(f"{m}||{cui}\n" for m, cui in mentions.items()), "utf8")
    settings = EvaluationSettings(ks=(1, 3))
    found = evaluate_kb(kb, [path], settings, recall_queries=2, threshold=0.65)
    assert found.results["settings"]["threshold"] == 0.65
    near = evaluate_kb(kb, [path], settings, recall_queries=2, least_cosine=0.999)
    # Only names are linked then: fever, pyrexias and headache are right.
    recalls = [link["recall"] for link in near.results["links"]]
    assert recalls[:2] == [round(3 / 7, 4)] * 2
    assert near.predictions == found.predictions
    assert found.results["index_recall"]["queries"] == 2
    scores = {row["line"]: row["scores"] for row in found.predictions}
    assert scores[1] == pytest.approx([1, 1 / 2, 1 / 3])
    assert scores[4] == [1, 1, 1 / 3]  # of two that tie
    firsts = [link.candidates[0] for link in kb.link([*mentions], k=1, threshold=0)]
    chances = np.array([first["probability"] for first in firsts])
    golds = [*mentions.values()]
    right = np.array([f["cui"] == cui for f, cui in zip(firsts, golds, strict=True)])
    nil = np.array([cui in ("C77", "C78") for cui in golds])
    links = found.results["links"]
    assert [link["threshold"] for link in links] == [0.3, 0.5, 0.65, 0.8]
    for link in links:
        linked = chances >= link["threshold"]
        share = {
            "precision": (right & linked).sum() / max(linked.sum(), 1e-9),
            "recall": (right & linked).sum() / (~nil).sum(),
            "nil_precision": (nil & ~linked).sum() / max((~linked).sum(), 1e-9),
            "nil_recall": (nil & ~linked).sum() / nil.sum(),
        }
        assert {name: link[name] or 0 for name in share} == pytest.approx(
            share, abs=1e-4
        )
