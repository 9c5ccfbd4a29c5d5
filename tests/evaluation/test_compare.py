import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import TIES, Answer
from spacy_sapbert.evaluation.compare import (
    Place,
    Prediction,
    bootstrap_interval,
    check_predictions,
    compare_scores,
    compare_with_file,
    mcnemar_test,
    randomisation_test,
    read_predictions,
    score_predictions,
)
from spacy_sapbert.evaluation.gold_mentions import make_resolver
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.io.reading import file_digest

ROW = {"file": "dev", "line": 2, "cuis": ["C1", "C2"], "scores": [0.9, 0.8]}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    return path


def predict(*lines: int, file: str = "dev") -> dict[Place, Prediction]:
    return {(file, line): Prediction(number, []) for number, line in enumerate(lines)}


def gold(*lines: int) -> dict[Place, GoldMention]:
    return {
        ("dev", line): GoldMention(-1, -1, "", "x", [["C1"]], line) for line in lines
    }


CHANGES = [{"cuis": ["C1"]}, {"scores": ["a", "b"]}, {"line": "2"}]


@pytest.mark.parametrize(
    ("line", "said"),
    [(json.dumps({**ROW, **change}), "something else") for change in CHANGES]
    + [("{", ""), ("[]", ""), (json.dumps(ROW), "line 2 of dev")],
)
def test_read_predictions_names_the_bad_line(tmp_path, line, said):
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(ROW)}\n{line}\n")
    with pytest.raises(SapbertError, match=rf"E117.*a\.jsonl:2: .*{said}"):
        read_predictions(tmp_path / "a.jsonl", {})


def test_check_predictions_needs_all_and_no_other():
    path = Path("a.jsonl")
    check_predictions(path, predict(2, 3), gold(2, 3), partial=False)
    check_predictions(path, predict(2, 3, 4), gold(2, 3), partial=True)
    with pytest.raises(SapbertError, match=r"E743.*line 4 of dev"):
        check_predictions(path, predict(2, 3, 4), gold(2, 3), partial=False)
    with pytest.raises(SapbertError, match=r"E743.*line 2 of other"):
        check_predictions(path, predict(2, file="other"), gold(2), partial=True)
    with pytest.raises(SapbertError, match=r"E743.*none for some: 2, .*line 3 of dev"):
        check_predictions(path, predict(2), gold(2, 3, 4), partial=True)


@pytest.mark.parametrize(
    ("answers", "composite", "expected"),
    [
        ([Answer(0, "C1", 0.9), Answer(1, "C2", 0.8)], "parts", [0, 0, 0]),
        ([Answer(0, "C1", 0.9), Answer(1, "C2", 0.8)], "released", [1, 1, 1]),
        ([Answer(0, "C3", 0.9), Answer(1, "C2", 0.9)], "released", [1, 0.5, 0]),
        ([], "released", [0, 0, 0]),
    ],
)
def test_score_predictions_equals_the_evaluation(answers, composite, expected):
    golds = {("dev", 2): GoldMention(-1, -1, "", "x", [["C1"], ["C2"]], 2)}
    resolve = make_resolver(str, {})
    predictions = {("dev", 2): Prediction(1, answers)}
    scored = score_predictions(predictions, golds, resolve, composite)
    assert scored.tolist() == [expected]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 0, 1.0),  # 2 · 1/2
        (1, 5, 0.21875),  # 2 · (1 + 6) / 64
        (2, 8, 0.109375),  # 2 · (1 + 10 + 45) / 1024
        (0, 2000, 0.0),
    ],
)
def test_mcnemar_test_by_hand(first, second, expected):
    assert mcnemar_test(first, second) == pytest.approx(expected, abs=1e-300)
    assert mcnemar_test(second, first) == pytest.approx(expected, abs=1e-300)


def test_randomisation_test_equals_all_signs():
    differences = np.array([1.0, 0.5, 0.5, -1 / 3, 0.0])
    signs = np.array(list(product((1, -1), repeat=5)))
    exact = (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9).mean()
    assert randomisation_test(differences) == pytest.approx(exact)
    assert randomisation_test(-differences) == pytest.approx(exact)
    assert randomisation_test(np.zeros(3)) == 1
    assert randomisation_test(np.ones(2)) == 0.5


def test_bootstrap_interval_equals_sampled_means():
    rng = np.random.default_rng(0)
    differences = np.repeat([1.0, 0.0, -1.0, 0.5], [30, 120, 20, 30])
    sampled = rng.choice(differences, size=(20_000, 200)).mean(axis=1)
    expected = np.quantile(sampled, [0.025, 0.975])
    assert bootstrap_interval(differences) == pytest.approx(expected, abs=0.006)
    assert bootstrap_interval(np.array([0.5])) == [-1, 1]  # of one, nothing is known
    assert bootstrap_interval(np.array([0.0, 1.0])) == [0.0, 1.0]


def test_compare_scores_counts_ties_in_three_ways():
    first = np.array([[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 0.5, 0]])
    second = np.array([[1, 1, 1], [1, 1, 1], [1, 0.5, 0], [0, 0, 0]])
    found = compare_scores(first, second)
    lenient, expected, strict = (found[tie] for tie in TIES)
    assert (lenient["first"], lenient["second"]) == (0.5, 0.75)
    assert (lenient["only_first"], lenient["only_second"]) == (1, 2)
    assert (strict["only_first"], strict["only_second"]) == (0, 1)
    assert (lenient["p"], strict["p"]) == (1, 1)
    assert expected["difference"] == pytest.approx(0.25)
    assert expected["test"] == "randomisation"


def test_compare_with_file_of_each_gold_file_and_of_all(tmp_path):
    """The other linker knows X9, which this knowledge base lacks; C9 is retired."""
    cases = [
        ("a", 2, "fever", "C1", "C2"),
        ("a", 3, "cold", "X9", "X9"),
        ("a", 4, "fever", "C1", "C2"),
        ("b", 2, "fever", "C9", "C1"),
    ]
    golds = [
        (file, GoldMention(-1, -1, "", text, [[cui]], line))
        for file, line, text, cui, _ in cases
    ]
    rows = [
        {"file": file, "line": line, "cuis": [theirs], "scores": [0.9]}
        for file, line, _, _, theirs in cases
    ]
    answers = {"fever": [Answer(0, "C1", 0.9)], "cold": [Answer(0, "C2", 0.9)]}
    lookup = {"C1": "C1", "C2": "C2", "C9": "C1"}.get

    def compare(rows: Any, golds: Any, **settings: Any) -> list[tuple]:
        path, how = write(tmp_path / "o.jsonl", *rows), EvaluationSettings(**settings)
        found = compare_with_file(path, golds, answers, lookup, {}, how)
        assert found["with"] == {"file": "o.jsonl", "sha256": file_digest(path)}
        return [
            (each["file"], each["mentions"], strict["first"], strict["second"])
            for each in found["results"]
            for strict in [each["ties"]["strict"]]
        ]

    of_a, of_b = ("a", 3, 0.333333, 0.666667), ("b", 1, 1, 1)
    assert compare(rows, golds) == [of_a, of_b, ("all 2 files", 4, 0.5, 0.75)]
    more = [*rows[:3], {**rows[0], "line": 9}]
    with pytest.raises(SapbertError, match="E743.*line 9 of a"):
        compare(more, golds[:3])
    for settings in ({"limit": 3}, {"distinct": True}):
        assert compare(more, golds[:3], **settings) == [of_a]
