import json
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.gold_mentions import GoldMention, make_resolver
from spacy_sapbert.evaluation.predictions import (
    Place,
    Prediction,
    check_predictions,
    judge_predictions,
    parse_prediction,
    read_predictions,
)

ROW = {"file": "dev", "line": 2, "cuis": ["C1", "C2"], "scores": [0.9, 0.8]}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    return path


def predict(*lines: int, file: str = "dev") -> dict[Place, Prediction]:
    return {(file, line): Prediction(number, []) for number, line in enumerate(lines)}


def gold(*lines: int) -> dict[Place, GoldMention]:
    return {("dev", line): GoldMention(line, "", "x", [["C1"]]) for line in lines}


def test_read_predictions_takes_aliases(tmp_path: Path) -> None:
    empty = {"file": "dev", "line": 3, "cuis": [], "scores": []}
    path = write(tmp_path / "a.jsonl", ROW, empty)
    found = read_predictions(path, {"C2": "C7"})
    assert found["dev", 2].answers == [Answer(0, "C1", 0.9), Answer(1, "C7", 0.8)]
    assert found["dev", 3] == Prediction(2, [])


@pytest.mark.parametrize(
    "change",
    [
        {"cuis": ["C1"]},
        {"cuis": [1, 2]},
        {"cuis": None},
        {"scores": ["a", "b"]},
        {"line": "2"},
        {"file": 2},
    ],
)
def test_parse_prediction_refuses_other_rows(change: dict[str, Any]) -> None:
    assert parse_prediction(json.dumps({**ROW, **change})) is None


@pytest.mark.parametrize("line", ["", "{", "[]", "7", "{}", '"x"'])
def test_parse_prediction_refuses_other_lines(line: str) -> None:
    assert parse_prediction(line) is None


def test_read_predictions_tells_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ROW, {"file": "dev"})
    with pytest.raises(SapbertError, match=r"E741.*a\.jsonl:2"):
        read_predictions(path, {})
    path = write(tmp_path / "a.jsonl", ROW, ROW)
    with pytest.raises(SapbertError, match=r"E742.*a\.jsonl:2.*line 2 of dev"):
        read_predictions(path, {})


def test_check_predictions_wants_all_and_no_other() -> None:
    path = Path("a.jsonl")
    check_predictions(path, predict(2, 3), gold(2, 3), partial=False)
    check_predictions(path, predict(2, 3, 4), gold(2, 3), partial=True)
    with pytest.raises(SapbertError, match=r"E743.*line 4 of dev"):
        check_predictions(path, predict(2, 3, 4), gold(2, 3), partial=False)
    with pytest.raises(SapbertError, match=r"E743.*line 2 of other"):
        check_predictions(path, predict(2, file="other"), gold(2), partial=True)
    with pytest.raises(SapbertError, match=r"E744.*for 2 of 3.*line 3 of dev"):
        check_predictions(path, predict(2), gold(2, 3, 4), partial=True)


@pytest.mark.parametrize(
    ("answers", "composite", "expected"),
    [
        ([Answer(0, "C1", 0.9), Answer(1, "C2", 0.8)], "parts", [0, 0, 0]),
        ([Answer(0, "C1", 0.9), Answer(1, "C2", 0.8)], "released", [1, 1, 1]),
        ([Answer(0, "C3", 0.9), Answer(1, "C2", 0.9)], "released", [1, 0.5, 0]),
        ([Answer(0, "C1", 0.9), Answer(1, "C1", 0.9)], "released", [1, 1, 1]),
        ([], "released", [0, 0, 0]),
    ],
)
def test_judge_predictions_as_the_evaluation_does(
    answers: list[Answer], composite: str, expected: list[float]
) -> None:
    golds = {("dev", 2): GoldMention(2, "", "x", [["C1"], ["C2"]])}
    resolve = make_resolver(str, {})
    predictions = {("dev", 2): Prediction(1, answers)}
    judged = judge_predictions(predictions, golds, resolve, composite)
    assert judged.tolist() == [expected]
