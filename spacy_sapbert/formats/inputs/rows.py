"""Rows as documents: which column has what; and the rows of JSONL."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from ...errors import SapbertError, too_long
from ...io.reading import (
    USUAL_BYTES,
    decode_line,
    read_line_blocks,
)
from ..documents import Document, OnError, open_input

Row = tuple[int, Mapping[str, Any]]  # line or row number, from 1, and its columns


class Columns(NamedTuple):
    """The columns of a document; of nested ones the names with dots between."""

    text: str = "text"
    id: str = "id"
    keep: tuple[str, ...] = ()


COLUMNS = Columns()


def find_field(row: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Return whether a row has a field, which may be nested, and its value."""
    if name in row:
        return True, row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


def to_plain(value: Any) -> Any:
    """Return the value of a column as JSON can have it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf8", "replace").decode()
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def is_text(value: Any) -> bool:
    """Return whether a value is a text that UTF-8 can encode."""
    try:
        return isinstance(value, str) and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def make_document(
    row: Mapping[str, Any],
    path: Path,
    name: str,
    number: int,
    *,
    longest: int,
    columns: Columns = COLUMNS,
) -> Document:
    """Check the columns of a document; an error does not quote them.

    A text that is null becomes an empty one. An id that is missing is made of `name`.
    """
    place = f"{name}:{number}"
    id = find_field(row, columns.id)[1]
    if id is None:
        id = place
    is_id = type(id) is int or is_text(id)

    def name_document(error: SapbertError) -> SapbertError:
        error.document = id if is_id else place
        return error

    def fail(expected: str, got: str) -> SapbertError:
        values = {"path": path, "line": number, "expected": expected, "got": got}
        return name_document(wrong_document(**values))

    known, text = find_field(row, columns.text)
    if not known or (text is not None and not is_text(text)):
        got = "something else" if known else "none"
        if isinstance(text, str):
            got = "bytes that are not UTF-8 (pass `--encoding`, e.g. cp1252)"
        raise fail(f"a text as `{columns.text}`", got)
    text = text or ""
    if len(text) > longest:
        limit = {"path": path, "line": number, "limit": longest}
        raise name_document(too_long(**limit))
    if not is_id:
        raise fail(f"a text or a whole number as `{columns.id}`", "something else")
    kept = {column: to_plain(find_field(row, column)[1]) for column in columns.keep}
    return Document(id, text, fields=kept or None, place=place)


def parse_line(line: str, path: Path, number: int) -> dict[str, Any]:
    """Parse a line of a `.jsonl` file, which an error does not quote."""
    try:
        # Python's parser needs less memory, pydantic's less time
        row = from_json(line) if len(line) <= USUAL_BYTES else json.loads(line)
        got = f"a {type(row).__name__}"
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "too deep, or a too long number"
        row, got = None, f"no valid JSON ({reason})"
        if len(line) <= USUAL_BYTES:
            got = f"no valid JSON ({error})"
    if isinstance(row, dict):
        return row
    values = {"path": path, "line": number, "expected": "its fields in a JSON object"}
    raise wrong_document(got=got, **values)


def read_json_rows(
    path: Path,
    _: Columns,
    *,
    on_error: OnError,
    encoding: str = "utf-8",
    **_options: Any,
) -> Iterator[Row]:
    """Read the lines of a `.jsonl` file; blank lines are skipped."""
    path, blocks = open_input(path, encoding)
    for first, lines in read_line_blocks(path, blocks=blocks):
        for number, raw in enumerate(lines, first):
            try:
                line = decode_line(raw, path, number)
                row = parse_line(line, path, number) if line.strip() else None
            except SapbertError as error:
                on_error(error)
                continue
            if row is not None:
                yield number, row


def wrong_document(
    *, path: object, line: object, expected: object, got: object
) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected a document with {expected}, but got {got}. Correct "
        "the line, name other columns with `--text-field` and `--id-field`, or pass "
        "`--on-error skip` to count such documents and continue.",
    )


def missing_column(*, path: object, name: object, known: object) -> SapbertError:
    return SapbertError(
        "E410",
        f"{path}: Expected a column {name!r}, but it has {known}. Pass the names of "
        "its columns as `--text-field` and `--id-field`, and as `--keep` those to "
        "keep.",
    )
