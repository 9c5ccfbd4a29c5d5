from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.calibrate_kb import (
    AnnotatedFile,
    calibrate_kb,
    judge_first,
)
from spacy_sapbert.evaluation.calibrate_kb import read_files as read
from spacy_sapbert.evaluation.gold_mentions import GoldMention
from spacy_sapbert.evaluation.thresholds import Criterion
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


def judge(kb: KnowledgeBase, mention: str, *parts: str) -> list[object]:
    gold = GoldMention(2, "d", mention, [part.split("|") for part in parts])
    aliases = {"OMIM:1": "C0000004", "C0000004": "C0000004"}
    judged = judge_first(kb, [AnnotatedFile(Path("dev.tsv"), [gold])], aliases)
    return [judged.scores[0] > 0.999, bool(judged.right[0]), bool(judged.known[0])]


@pytest.mark.parametrize(
    ("mention", "parts", "expected"),
    [
        ("Fever", ["C0000004"], [True, True, True]),
        ("Fever", ["C0000005|C0000004"], [True, True, True]),
        ("Fever", ["C0000005"], [True, False, True]),
        ("Fever", ["OMIM:1"], [True, True, True]),  # an alias
        ("heart attack", ["C9999999"], [True, True, True]),  # retired
        ("Fever", ["C0000004", "C0000005"], [True, False, True]),  # a composite
        ("Fever", ["C0000004", "C7777777"], [True, False, True]),
        ("Fever", ["C7777777"], [True, False, False]),  # not in the knowledge base
        ("Fever", [], [True, False, False]),
        ("--", ["C0000004"], [False, False, True]),
        ("--", [], [False, False, False]),
    ],
)
def test_first_answers_are_judged(
    kb: KnowledgeBase, mention: str, parts: list[str], expected: list[bool]
) -> None:
    assert judge(kb, mention, *parts) == expected


def test_the_threshold_that_is_set_plays_no_part(kb: KnowledgeBase) -> None:
    gold = GoldMention(2, "", "acute pain", [["C0000007"]])
    files = [AnnotatedFile(Path("dev.tsv"), [gold])]
    scores = judge_first(kb, files, {}).scores
    high = KnowledgeBase(kb.folder, {**kb.meta, "threshold": 1.0})
    assert np.array_equal(judge_first(high, files, {}).scores, scores)
    assert np.isfinite(scores).all()


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "dev.txt"
    path.write_text("fever||A|B\npain||-1\nheart||C\n", "utf8")
    (file,) = read([path], limit=2, bars_join_parts=True)
    assert [gold.parts for gold in file.golds] == [[["A"], ["B"]], []]
    with pytest.raises(SapbertError, match="E740"):
        read([path, tmp_path / "other" / "dev.txt"])


def test_documents_of_two_files_are_never_one(
    kb: KnowledgeBase, annotated_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.tsv"
    other.write_bytes(annotated_file.read_bytes())
    found = calibrate_kb(kb, read([annotated_file, other]), Criterion("f1"))
    assert found["documents"] == 2 * 10
    assert [each["file"] for each in found["files"]] == ["gold.tsv", "other.tsv"]
