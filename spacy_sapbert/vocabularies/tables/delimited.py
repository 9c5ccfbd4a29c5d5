"""The rows of a vocabulary's table, with columns by name."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ...io.tables.delimited import Row
from ...io.tables.files import fit_rows, is_text, open_rows
from ...io.tables.headers import find_columns, find_places
from ..report import Report, read_good_lines

FIX = "Pass the file as its publisher released it, or another `--format`."


def read_rows(
    path: Path,
    separator: str | None,
    report: Report,
    *,
    quoted: bool | None = None,
    encoding: str = "utf-8",
    comment: str = "",
) -> Iterator[Row]:
    """Read the rows of a table of any kind, and count them; see `open_rows`."""
    rows = open_rows(
        path,
        separator,
        quoted=quoted,
        encoding=encoding,
        comment=comment,
        read=partial(read_good_lines, report=report, blank=quoted is not False),
        note=report.notes.append,
    )
    return rows if is_text(path) else count_rows(path, rows, report)


def count_rows(path: Path, rows: Iterator[Row], report: Report) -> Iterator[Row]:
    for row in rows:
        report.read(path.name, 1)
        yield row


def read_columns(
    path: Path,
    columns: Sequence[str],
    report: Report,
    *,
    separator: str = "\t",
    quoted: bool = False,
    optional: Sequence[str] = (),
) -> Iterator[Row]:
    """Read columns of a table whose first line names all columns.

    Args:
        columns: Names, whatever their case; the first one is an id and must not be
            empty.
        quoted: See `open_rows`.
        optional: Names of more columns, which may be absent and then are empty.

    Returns:
        Number of the line, and the stripped values of `columns` and `optional`.

    Raises:
        SapbertError: With file and line, at the first invalid row; if a column does not
            exist.
    """
    rows = read_rows(path, separator, report, quoted=quoted)
    return select_columns(rows, path, columns, report, optional=optional)


def select_columns(
    rows: Iterator[Row],
    path: Path,
    columns: Sequence[str],
    report: Report,
    *,
    optional: Sequence[str] = (),
) -> Iterator[Row]:
    """Yield columns of rows, of which the first has the names; see `read_columns`."""
    number, header = next(rows, (1, []))
    width = len(header)
    if header:
        report.leave_header(path.name)
    found = find_columns(f"{path}:{number}", header, columns, FIX)
    # an absent column is an empty field after the others
    found += [next(iter(find_places(header, name)), width) for name in optional]
    places = [place for place in found if place is not None]
    skip = partial(report.skip, "bad lines")
    for number, fields in fit_rows(path, rows, width, on_error=skip):
        fields.append("")
        values = [fields[place].strip() for place in places]
        if values[0]:
            yield number, values
        else:
            report.bad_line(path, number, f"something as `{columns[0]}`")
