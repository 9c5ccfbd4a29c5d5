"""Rows as documents: which column has what; and the rows of JSONL, CSV and Excel."""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from ...errors import SapbertError, too_long
from ...io.reading import USUAL_BYTES, decode_line, read_line_blocks
from ...io.tables.delimited import Row as TableRow
from ...io.tables.delimited import end_lines, find_separator, split_rows
from ...io.tables.files import EXCEL, fit_rows, open_rows
from ...io.tables.headers import find_columns
from ..documents import STDIN_NAME, Document, OnError, open_input

Row = tuple[int, Mapping[str, Any]]  # line or row number, from 1, and its columns


class Columns(NamedTuple):
    """The columns of a document; of nested ones the names with dots between."""

    text: str = "text"
    id: str = "id"
    keep: tuple[str, ...] = ()


COLUMNS = Columns()
DELIMITERS = ",;\t"
TEXT_LINES = 20_000  # of a text in quotes
DEEPEST = 200  # levels of JSON
STDIN_FIX = (
    "The standard input is read as JSONL: if it is one text, pass `--input-format text`"
)
FIX = (
    "Pass the names of its columns as `--text` and `--id`, and as `--keep` those to "
    "keep."
)


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


def is_encodable(value: Any) -> bool:
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
    is_id = type(id) is int or is_encodable(id)

    known, text = find_field(row, columns.text)
    error = None
    if not known or (text is not None and not is_encodable(text)):
        got = "something else" if known else "none"
        if isinstance(text, str):
            got = "bytes that are not UTF-8 (pass `--encoding`, e.g. cp1252)"
        error = wrong_document(path, number, f"a text as `{columns.text}`", got)
    elif text is not None and len(text) > longest:
        error = too_long(path=path, line=number, limit=longest)
    elif not is_id:
        expected = f"a text or a whole number as `{columns.id}`"
        error = wrong_document(path, number, expected, "something else")
    if error is not None:
        error.document = id if is_id else place
        raise error
    kept = {column: to_plain(find_field(row, column)[1]) for column in columns.keep}
    return Document(id, text or "", fields=kept or None, place=place)


def load_long_line(line: str) -> Any:
    """Parse JSON that is as deep as `from_json` takes it."""
    row = json.loads(line)
    values = [row]
    for _ in range(DEEPEST):
        values = [
            item
            for value in values
            if isinstance(value, (dict, list))
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not values:
            return row
    raise RecursionError


def parse_line(line: str, path: Path, number: int) -> dict[str, Any]:
    """Parse a line of a `.jsonl` file, which an error does not quote."""
    try:
        # Python's parser needs less memory, pydantic's less time
        row = from_json(line) if len(line) <= USUAL_BYTES else load_long_line(line)
        got = f"a {type(row).__name__}"
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "too deep, or a too long number"
        row, got = None, f"no valid JSON ({reason})"
        if len(line) <= USUAL_BYTES:
            got = f"no valid JSON ({error})"
    if isinstance(row, dict):
        return row
    expected = "its fields in a JSON object"
    if path == Path(STDIN_NAME) and not line.lstrip().startswith("{"):
        fix = f"{STDIN_FIX}, or correct the line."
        raise wrong_document(path, number, expected, got, fix)
    raise wrong_document(path, number, expected, got)


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


def read_raw_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with carriage returns, which a text may contain.

    Bytes that are not UTF-8 become surrogates, so that one document is invalid, and not
    the rest of the file.
    """
    path, blocks = open_input(path, encoding)
    blocks = end_lines(blocks)
    for first, lines in read_line_blocks(path, blocks=blocks, keep_returns=True):
        for number, raw in enumerate(lines, first):
            yield number, raw.decode("utf8", "surrogateescape")


def read_csv_rows(
    path: Path,
    columns: Columns,
    *,
    on_error: OnError,
    encoding: str = "utf-8",
    **_options: Any,
) -> Iterator[Row]:
    """Read CSV, quoted as in RFC 4180, with a header; yield line and columns.

    Columns are separated by commas, semicolons or tabs.
    """
    lines = read_raw_lines(path, encoding)
    path, _ = open_input(path)
    for first in lines:
        if first[1].strip():
            delimiter = find_separator(first[1], DELIMITERS)
            rows = split_rows(
                chain([first], lines), delimiter, path, open_lines=TEXT_LINES
            )
            yield from name_columns(path, rows, columns, on_error)


def read_excel_rows(
    path: Path, columns: Columns, *, on_error: OnError, **_options: Any
) -> Iterator[Row]:
    """Read a workbook, whose first row has the names of the columns.

    Rows are numbered from 1; an empty cell is "".
    """
    return name_columns(path, open_rows(path, kind=EXCEL), columns, on_error)


def name_columns(
    path: Path, rows: Iterator[TableRow], columns: Columns, on_error: OnError
) -> Iterator[Row]:
    """Yield rows with the columns of the first row, which has those to read."""
    _, header = next(rows, (1, list[str]()))
    names = [*columns.keep, columns.text]
    names += [columns.id] if columns.id != COLUMNS.id else []
    for name, place in zip(names, find_columns(path, header, names, FIX), strict=True):
        assert place is not None
        header[place] = name
    for number, cells in fit_rows(path, rows, len(header), on_error=on_error):
        yield number, dict(zip(header, cells, strict=True))


def wrong_document(
    path: Path,
    line: int,
    expected: str,
    got: str,
    fix: str = "Correct the line, or name other columns with `--text` and `--id`.",
) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected a document with {expected}, but got {got}. {fix}",
    )
