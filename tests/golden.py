"""Examples: files, and beside them `expected.jsonl` with what they give."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


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


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values in a value of JSON, with their places."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from flatten(part, f"{path}/{key}")
    else:
        yield path, value


def check_golden(found: list[Any], golden: list[Any]) -> None:
    """Check that values of JSON are those of a file; numbers differ by processors."""
    mine, known = dict(flatten(found)), dict(flatten(golden))
    numbers = {path for path, value in known.items() if isinstance(value, float)}
    assert {path: value for path, value in mine.items() if path not in numbers} == {
        path: value for path, value in known.items() if path not in numbers
    }
    assert {path: mine[path] for path in numbers} == pytest.approx(
        {path: known[path] for path in numbers}, abs=2e-3
    )
