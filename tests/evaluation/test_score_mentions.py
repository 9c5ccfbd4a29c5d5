from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    list_predictions,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.formats.gold import GoldMention

IDS = {"C1": "C1", "C2": "C2", "C3": "C3", "C9": "C1"}
ANSWERS = {
    "fever": [Answer(0, "C1", 0.9), Answer(1, "C2", 0.8), Answer(2, "C3", 0.8)],
    "": [],
}


def judge(*parts: Any, **settings: Any) -> dict[str, Any]:
    golds = [
        GoldMention(-1, -1, "", "fever", part, i) for i, part in enumerate(parts, 2)
    ]
    return score_mentions(
        golds, ANSWERS, IDS.get, {"A1": "C2"}, EvaluationSettings(ks=(1, 2), **settings)
    )


def test_score_mentions_returns_coverage_and_accuracy() -> None:
    result = judge([["C1"]], [["C3"]], [["C7"]], [["C7", "C1"]])
    assert result["judged"] == 4
    assert result["coverage"] == 0.75
    concepts = result["accuracy"]["all"]["concepts"]
    assert concepts["acc@1"] == {"lenient": 0.5, "expected": 0.5, "strict": 0.5}
    assert concepts["acc@2"] == {"lenient": 0.75, "expected": 0.625, "strict": 0.5}
    covered = result["accuracy"]["covered"]
    assert covered["mentions"] == 3
    assert covered["concepts"]["acc@1"]["strict"] == pytest.approx(2 / 3, abs=1e-6)


def test_score_mentions_follows_retired_ids_and_aliases() -> None:
    result = judge([["C9"]], [["A1"]])
    assert result["coverage"] == 1
    assert result["accuracy"]["all"]["concepts"]["acc@1"]["strict"] == 0.5
    assert result["accuracy"]["all"]["concepts"]["acc@2"]["expected"] == 0.75


def test_score_mentions_covers_a_composite_only_with_all_its_parts() -> None:
    parts = [["C1"], ["C7"]]
    assert judge(parts)["coverage"] == 0
    released = judge(parts, composite="released")
    assert released["coverage"] == 1
    assert released["accuracy"]["all"]["rows"]["acc@1"]["strict"] == 1


def test_score_mentions_separates_seen_and_unseen() -> None:
    golds = [
        GoldMention(-1, -1, "", "fever", [["C1"]], 2),
        GoldMention(-1, -1, "", "fever", [["C2"]], 3),
    ]
    result = score_mentions(
        golds, ANSWERS, IDS.get, {}, EvaluationSettings(), seen={("fever", "C1")}
    )
    groups = result["accuracy"]
    assert groups["seen"]["mentions"] == groups["unseen"]["mentions"] == 1
    assert groups["seen"]["concepts"]["acc@1"]["expected"] == 1
    assert groups["unseen"]["concepts"]["acc@1"]["expected"] == 0
    assert "unseen" not in judge([["C1"]])["accuracy"]


def test_select_mentions_counts_the_others(tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("fever||C1|C2\nFEVER||C2|C1\nfever||-1\nfever||C3\n", "utf8")
    chosen, counts = select_mentions(path, EvaluationSettings(distinct=True))
    assert [gold.line for gold in chosen] == [1, 4]
    assert counts == {"mentions": 4, "without_id": 1, "repeated": 1}
    chosen, counts = select_mentions(path, EvaluationSettings(limit=3))
    assert [gold.line for gold in chosen] == [1, 2]
    assert counts == {"mentions": 3, "without_id": 1, "repeated": 0}


def test_select_mentions_refuses_a_file_without_ids(tmp_path: Path) -> None:
    path = tmp_path / "gold.txt"
    path.write_text("fever||-1\n", "utf8")
    with pytest.raises(SapbertError, match="E106"):
        select_mentions(path, EvaluationSettings())


def test_rank_mentions_ranks_each_text_once() -> None:
    ranked: list[str] = []

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        ranked.extend(mentions)
        return [[Answer(len(text), text, 1.0)] for text in mentions]

    texts = [str(number % 700) for number in range(1400)]
    answers = rank_mentions(rank, texts)
    assert ranked == texts[:700]
    assert all(answers[text][0].cui == text for text in texts)


def test_list_predictions_has_lines_and_no_texts() -> None:
    golds = [
        GoldMention(-1, -1, "", "fever", [["C1"]], 7),
        GoldMention(-1, -1, "", "", [["C1"]], 9),
    ]
    assert list_predictions("gold.tsv", golds, ANSWERS, 2) == [
        {"file": "gold.tsv", "line": 7, "cuis": ["C1", "C2"], "scores": [0.9, 0.8]},
        {"file": "gold.tsv", "line": 9, "cuis": [], "scores": []},
    ]
