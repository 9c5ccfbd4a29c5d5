"""The rows of CSV files as documents."""

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...errors import Errors, SapbertError
from ...system.reading import read_line_blocks
from ..documents import OnError, open_input
from .rows import COLUMNS, Columns, Row, list_columns

DELIMITERS = ",;\t"


def read_raw_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file with their ends, which a text in CSV may contain.

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

    for _, lines in read_line_blocks(path, blocks=double_returns()):
        for raw in lines:
            yield raw.decode("utf8", "surrogateescape") + "\n"


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
    lines = enumerate(read_raw_lines(path), 1)
    path, _ = open_input(path)
    before, first = next(((n, line) for n, line in lines if line.strip()), (0, ""))
    if not first:
        return
    # the limit is of the process: other readers may need more
    csv.field_size_limit(max(csv.field_size_limit(), longest + 1))
    found = split_header(first, columns.text)
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
    rest = (line for _, line in lines)
    reader = csv.reader(rest, delimiter=delimiter, strict=True)
    while True:
        number = before + reader.line_num + 1
        try:
            fields = next(reader)
            got = f"{len(fields)} fields"
        except StopIteration:
            return
        except csv.Error as error:
            fields, got = None, str(error)
        if fields is not None and len(fields) == len(header):
            yield number, dict(zip(header, fields, strict=True))
        elif fields != []:  # a blank line has none
            values = {"path": path, "line": number, "expected": len(header)}
            on_error(SapbertError(Errors.E598.format(got=got, **values)))
