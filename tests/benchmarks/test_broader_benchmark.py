"""The rules that are compared, by hand, and the command on a few concepts."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.broader import RULES, Asked, Held, climb, judge_rule, main
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

app = typer.Typer()
app.command()(main)

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
THERE = {*EVERY} - {"X"}


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        ("the best candidate", "A"),
        ("parent of the best candidate", "P"),
        ("nearest common ancestor of the best two", "T"),
        ("parent with most children, by cosine", "Q"),
        ("parent with most children, by weight", "P"),
        ("`broader`: itself counted, softness 0.1", "P"),
        ("the same, itself counted, softness 0.2", "Q"),
    ],
)
def test_each_rule_answers_as_it_says(rule: str, answer: str | None) -> None:
    # By weight: P 1, Q 2 / e; with a softness of 0.2: 1 and 2 / √e.
    asked = Asked({"A": 0.9, "B": 0.8, "C": 0.8}, EVERY, EVERY, THERE)
    assert RULES[rule](asked) == answer


def test_climb_gives_the_nearest_first_and_ends_in_a_circle() -> None:
    assert climb("X", EVERY) == ["Q", "T"]
    assert climb("X", EVERY, 1) == ["Q"]
    assert climb("a", {"a": ["b"], "b": ["c", "a"], "c": ["a"]}) == ["b", "c"]


def test_answers_count_as_parent_and_as_what_is_above() -> None:
    held = [Held("X", {"B": 0.9}), Held("X", {"T": 0.9}), Held("X", {"A": 0.9})]
    rule = RULES["parent of the best candidate"]
    assert judge_rule(rule, held[:1], EVERY, THERE) == [1, 1, 1, 0]
    assert judge_rule(rule, held, EVERY, THERE) == [1 / 3, 1 / 3, 1 / 3, 1 / 3]
    assert judge_rule(lambda asked: "T", held, EVERY, THERE) == [0, 1, 1, 0]


def test_the_command_prints_a_line_for_each_rule(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    words = ["heart", "attack", "fever", "pain", "diabetes", "acute"]
    concepts = [Concept("T", ["illness"])]
    for word in words:
        concepts.append(Concept(word, [word], parents=["T"]))
        concepts += [
            Concept(f"{word}-{other}", [f"{word} {other}"], parents=[word])
            for other in words
        ]
    write_concepts(tmp_path / "c.jsonl", concepts)
    arguments = [str(tmp_path / "c.jsonl"), str(tiny_encoder), "--under", "1"]
    result = CliRunner().invoke(app, [*arguments, "--precision", "float32"])
    assert result.exit_code == 0, result.output
    assert all(rule in result.output for rule in RULES)
