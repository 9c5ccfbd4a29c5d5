"""The rows of CSV files as documents."""

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...errors import Errors, SapbertError
from ...system.reading import read_line_blocks
from ...system.tables import split_rows
from ..documents import OnError, open_input
from .rows import COLUMNS, Columns, Row, list_columns

DELIMITERS = ",;\t"
TEXT_LINES = 20_000  # of a text in quotes


def read_raw_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with carriage returns, which a text may contain.

    Bytes that are not UTF-8 become surrogates, so that one document is invalid, and not
    the rest of the file.
    """
    path, blocks = open_input(path)

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
    path: Path, columns: Columns, on_error: OnError, *, longest: int
) -> Iterator[Row]:
    """Read the rows of a CSV file: quoted as in RFC 4180, with a header.

    Args:
        path: The file, plain or `.gz`; `-` for the standard input. Its columns are
            separated by commas, semicolons or tabs.
        longest: Maximum number of characters of a field.
        on_error: Called with the error of an invalid row.

    Yields:
        The line on which a row begins, and its columns.

    Raises:
        SapbertError: If there is no column of the text.
    """
    lines = read_raw_lines(path)
    path, _ = open_input(path)
    first = next((line for _, line in lines if line.strip()), "")
    if not first:
        return
    found = split_header(first.removesuffix("\r"), columns.text)
    if found is None:
        # Without a header the first line may be the text of a patient.
        known = "another first line"
        raise SapbertError(
            Errors.E599.format(path=path, name=columns.text, known=known)
        )
    header, delimiter = found
    for name in (columns.id, *columns.keep):
        if name not in header and name != COLUMNS.id:
            raise SapbertError(
                Errors.E599.format(path=path, name=name, known=list_columns(header))
            )
    for number, fields in split_rows(lines, delimiter, open_lines=TEXT_LINES):
        if len(fields) == len(header):
            yield number, dict(zip(header, fields, strict=True))
        else:
            got = f"{len(fields)} fields" if fields else "quotes that are wrong"
            values = {"path": path, "line": number, "expected": len(header)}
            on_error(SapbertError(Errors.E598.format(got=got, **values)))
