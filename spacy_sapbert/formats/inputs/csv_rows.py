"""The rows of CSV files and workbooks as documents."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.excel import read_workbook
from ...io.reading import read_line_blocks
from ...io.tables import describe_header, split_rows
from ..documents import OnError, open_input
from .rows import COLUMNS, Columns, Row, missing_column

DELIMITERS = ",;\t"
TEXT_LINES = 20_000  # of a text in quotes


def read_raw_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with carriage returns, which a text may contain.

    Bytes that are not UTF-8 become surrogates, so that one document is invalid, and not
    the rest of the file.
    """
    path, blocks = open_input(path, encoding)

    def double_returns() -> Iterator[bytes]:
        # `read_line_blocks` removes one carriage return before a line feed
        rest = b""
        for block in blocks:
            block = rest + block
            rest = block[-1:] if block.endswith(b"\r") else b""
            if block := block[: len(block) - len(rest)]:
                yield block.replace(b"\r\n", b"\r\r\n")

    for first, lines in read_line_blocks(path, blocks=double_returns()):
        for number, raw in enumerate(lines, first):
            yield number, raw.decode("utf8", "surrogateescape")


def split_header(line: str, name: str) -> tuple[list[str], str] | None:
    """Return the columns of a CSV file and its delimiter; None without the column."""
    for delimiter in DELIMITERS:
        # With another delimiter a quoted column may not be valid.
        with suppress(csv.Error):
            columns = next(csv.reader([line], delimiter=delimiter, strict=True), [])
            if name in columns:
                return columns, delimiter
    return None


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
    first = next((line for _, line in lines if line.strip()), "")
    if not first:
        return
    split = split_header(first.removesuffix("\r"), columns.text)
    if split is None:
        header = [name.strip('"') for name in re.split(f"[{DELIMITERS}]", first)]
        raise column_is_missing(path, header, columns, columns.text)
    header, delimiter = split
    check_header(path, header, columns)
    for number, fields in split_rows(lines, delimiter, path, open_lines=TEXT_LINES):
        if len(fields) == len(header):
            yield number, dict(zip(header, fields, strict=True))
        else:
            got = f"{len(fields)} fields" if fields else "quotes that are wrong"
            values = {"path": path, "line": number, "expected": len(header)}
            on_error(wrong_fields(got=got, **values))


def check_header(path: Path, header: Sequence[str], columns: Columns) -> None:
    for name in (columns.text, columns.id, *columns.keep):
        if name not in header and name != COLUMNS.id:
            raise column_is_missing(path, header, columns, name)


def column_is_missing(
    path: Path, header: Sequence[str], columns: Columns, name: str
) -> SapbertError:
    is_header = not {*header}.isdisjoint((columns.text, columns.id, *columns.keep))
    known = describe_header([*map(str.strip, header)], is_header=is_header)
    return missing_column(path=path, name=name, known=known)


def read_excel_rows(
    path: Path, columns: Columns, *, on_error: OnError, **_options: Any
) -> Iterator[Row]:
    """Read a workbook, whose first row has the names of the columns.

    Rows are numbered from 1; an empty cell is "".
    """
    rows = read_workbook(path)
    _, header = next(rows, (1, list[str]()))
    check_header(path, header, columns)
    width = len(header)
    for number, cells in rows:
        if any(cells[width:]):
            values = {"path": path, "line": number, "expected": width}
            got = f"{len(cells)} fields"
            on_error(wrong_fields(got=got, **values))
        else:
            cells += [""] * (width - len(cells))
            yield number, dict(zip(header, cells[:width], strict=True))


def wrong_fields(
    *, path: object, line: object, expected: object, got: object
) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected {expected} fields, as the first line has, but got "
        f"{got}. Correct the quotes or fields from this line on, or pass `--on-error "
        "skip` to count such lines and continue.",
    )
