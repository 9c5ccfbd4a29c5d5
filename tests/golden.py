"""Files with what is expected: `expected.jsonl` of examples, and golden answers."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

WIDTH = 120  # of a line
Case = list[Any]  # what is asked, and last the answer


def read_cases(folder: Path) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield the cases of an example, the last one first, each with what it gives.

    A line says what is read and how; the lines below it are what it gives.
    """
    given: list[Any] = []
    lines = (folder / "expected.jsonl").read_text("utf8").split("\n")
    for line in reversed(lines[:-1]):
        data = json.loads(line)
        if "read" in data:
            yield data, given[::-1]
            given = []
        else:
            given.append(data)


def write_json(value: Any, indent: int = 0, room: int = WIDTH) -> str:
    """Return JSON in short lines: what has room in one line is in one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= room - indent or not value or not isinstance(value, list | dict):
        return line
    blanks = "\n" + " " * (indent + 2)
    if isinstance(value, dict):
        begin, end = "{}"
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: "
            + write_json(part, indent + 2, room - len(key) - 5)
            for key, part in value.items()
        ]
    else:
        begin, end = "[]"
        parts = [write_json(part, indent + 2, room - 1) for part in value]
    return begin + blanks + f",{blanks}".join(parts) + "\n" + " " * indent + end


def read_golden(path: Path) -> list[Case]:
    cases: list[Case] = json.loads(path.read_text("utf8"))
    return cases


def write_golden(path: Path, cases: Iterable[Case]) -> None:
    lines = ",\n".join(write_json(case) for case in cases)
    path.write_text(f"[\n{lines}\n]\n", "utf8")


def check_golden(path: Path, found: Iterable[Case]) -> None:
    """Check that answers are those of a file.

    The file is written anew if it is not there, or a question in it has no answer.
    Answers that are not in the file are not compared. It has none that
    `pytest --disturb` with a number from 1 to 9 changes. Such a run moves cosines by
    up to 1.5e-3, and so numbers may differ by 2e-3.
    """
    answers = number_questions(json.loads(json.dumps([*found])))
    cases = read_golden(path) if path.exists() else []
    questions = {json.dumps(case[:-1]) for case in answers.values()}
    if not cases or any(json.dumps(case) in questions for case in cases):
        write_golden(path, answers.values())
        pytest.fail(f"{path} is written anew: read what git shows.")
    differing = [
        f"- {write_json(case)}\n+ {write_json(answer)}"
        for question, case in number_questions(cases).items()
        if not is_equal(case[-1], (answer := answers.get(question, [None]))[-1])
    ]
    if differing:
        pytest.fail("\n".join([f"{path}:", *differing]), pytrace=False)


def number_questions(cases: list[Case]) -> dict[tuple[str, int], Case]:
    """Return cases by question, of equal ones the first, second …"""
    seen: Counter[str] = Counter()
    numbered = {}
    for case in cases:
        question = json.dumps(case[:-1])
        numbered[question, seen[question]] = case
        seen[question] += 1
    return numbered


def is_equal(one: Any, other: Any) -> bool:
    """Return whether values of JSON are equal, numbers but for what may differ."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 2e-3
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_equal(value, other[key]) for key, value in one.items()
        )
    return type(one) is type(other) and bool(one == other)
