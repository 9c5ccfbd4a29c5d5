"""Knowledge bases of scispaCy: JSONL of its `Entity`, one in a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from .checks import nothing_left
from .concepts import Concept
from .jsonl import parse_lines
from .merge import sort_concepts
from .report import Report

FIELDS = {"concept_id", "canonical_name", "aliases", "types", "definition"}


def read_scispacy(
    path: Path, *, on_error: str = "fail", report: Report | None = None
) -> Iterator[Concept]:
    """Read a knowledge base of scispaCy, and put lines of the same id together.

    path (Path): The file, plain or `.gz`.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id; `canonical_name` leads its names.
    RAISES (SapbertError): With file and line, at the first bad line; if nothing is
        left.
    SOURCE: scispacy.linking_utils.Entity.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "scispacy"
    lines = parse_lines(path, on_error=on_error, report=report, parse=parse_entity)
    for concept in sort_concepts(lines):
        report.concepts += 1
        report.names += len(concept.aliases)
        report.counts["definitions"] += concept.definition is not None
        yield concept
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def parse_entity(line: str, path: Path, number: int) -> Concept:
    """Make a concept of a line.

    line (str): The line.
    path (Path): The file, for the error.
    number (int): The line in it, from 1, for the error.
    RETURNS (Concept): The concept.
    RAISES (SapbertError): If it is no JSON, or no entity.
    """

    def check(fine: bool, expected: str) -> None:
        if not fine:
            raise SapbertError(
                Errors.E117.format(path=path, line=number, expected=expected)
            )

    try:
        data = json.loads(line)
        if "\\u" in line:
            # JSON can escape half a character, and no file can hold one
            json.dumps(data, ensure_ascii=False).encode("utf8")
    except (ValueError, RecursionError):
        data = None
    check(isinstance(data, dict), "a JSON object")
    check(set(data) <= FIELDS, f"no fields but {sorted(FIELDS)}")
    cui, name = data.get("concept_id"), data.get("canonical_name")
    check(isinstance(cui, str) and bool(cui.strip()), "a text as `concept_id`")
    check(isinstance(name, (str, type(None))), "a text as `canonical_name`")
    aliases, types = (data.get(key) or [] for key in ("aliases", "types"))
    check(is_texts(aliases), "a list of texts as `aliases`")
    check(is_texts(types), "a list of texts as `types`")
    definition = data.get("definition")
    check(isinstance(definition, (str, type(None))), "a text as `definition`")
    names = list(dict.fromkeys([*([name] if name else []), *aliases]))
    check(bool(names), "`canonical_name` or `aliases`")
    return Concept(cui, names, types=types, definition=definition or None)


def is_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
