"""Examples: files, and beside them `expected.jsonl` with what they give."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


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
