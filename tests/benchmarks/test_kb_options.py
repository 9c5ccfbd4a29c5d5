"""Filters, and the rules that find a broader concept."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.kb_options import RULES, Candidates, climb, score_rule
from benchmarks.options import app
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

# T is above P and Q, P above A, Q above B and C; X is held out, below Q.
EVERY: dict[str, list[str]] = {
    "A": ["P"],
    "B": ["Q"],
    "C": ["Q"],
    "P": ["T"],
    "Q": ["T"],
    "X": ["Q"],
    "T": [],
}
PRESENT = {*EVERY} - {"X"}


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ("the best candidate", "A"),
        ("parent of the best candidate", "P"),
        ("nearest common ancestor of the best two", "T"),
        ("parent with most children, by cosine", "Q"),
        ("parent with most children, by weight", "P"),
        ("`broader`: by weight, itself counted", "P"),
    ],
)
def test_rules_return_the_expected_concept(rule: str, answer: str | None) -> None:
    # By weight: P 1, Q 2 / e.
    given = Candidates({"A": 0.9, "B": 0.8, "C": 0.8}, EVERY, EVERY, PRESENT)
    assert RULES[rule](given) == answer


def test_climb_returns_the_nearest_first_and_ends_in_a_cycle() -> None:
    assert climb("X", EVERY) == ["Q", "T"]
    assert climb("X", EVERY, 1) == ["Q"]
    assert climb("a", {"a": ["b"], "b": ["c", "a"], "c": ["a"]}) == ["b", "c"]


def test_score_rule_counts_parents_and_ancestors() -> None:
    missing = [("X", {cui: 0.9}) for cui in ("B", "T", "A")]
    rule = RULES["parent of the best candidate"]
    assert score_rule(rule, missing[:1], EVERY, PRESENT).tolist() == [1, 1, 1, 0]
    assert score_rule(rule, missing, EVERY, PRESENT).tolist() == [1 / 3] * 4
    always = score_rule(lambda given: "T", missing, EVERY, PRESENT)
    assert always.tolist() == [0, 1, 1, 0]


def test_broader_prints_a_line_for_each_rule(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    words = ["heart", "attack", "fever", "pain", "diabetes", "acute"]
    concepts = [Concept("T", ["illness"])]
    for word in words:
        concepts.append(Concept(word, [word], parents=["T"]))
        names = [f"{word} {other}" for other in words]
        concepts += [Concept(name, [name], parents=[word]) for name in names]
    write_concepts(tmp_path / "c.jsonl", concepts)
    arguments = ["broader", str(tmp_path / "c.jsonl"), str(tiny_encoder)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert all(rule in result.output for rule in RULES)


def test_filters_finds_the_nearest_allowed_name(
    sample_kb: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("Fever||C0000004\nheadaches||C0000007\n...||C0000001\n", "utf8")
    result = CliRunner().invoke(app, ["filters", str(sample_kb), str(gold)])
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines() if "%" in line]
    allowed = [("100.0%", "8"), ("50.0%", "4"), ("10.0%", "1"), ("1.0%", "1")]
    assert [tuple(row[:2]) for row in rows] == [*allowed, ("0.1%", "1")]
    assert all(row[-1] == "1.000" for row in rows)
    assert "2 mentions" in result.output
