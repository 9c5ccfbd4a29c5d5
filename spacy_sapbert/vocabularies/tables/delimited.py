"""The rows of a vocabulary's table, with columns by name."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...errors import SapbertError
from ...io.tables.delimited import Row, read_delimited
from ...io.tables.headers import column_key, describe_header
from ...io.tables.spreadsheets import read_workbook
from ..report import Report, read_good_lines


def read_rows(
    path: Path,
    separator: str | None,
    report: Report,
    *,
    quoted: bool = False,
    encoding: str = "utf-8",
    comment: str = "",
) -> Iterator[Row]:
    """Read the rows of a table, and count them; see `read_delimited`."""

    def read(path: Path, blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
        return read_good_lines(path, report, blocks=blocks, blank=quoted)

    return read_delimited(
        path, separator, quoted=quoted, encoding=encoding, read=read, comment=comment
    )


def read_sheet(path: Path, report: Report) -> Iterator[Row]:
    """Read the rows of a workbook, and count them."""
    for number, cells in read_workbook(path, note=report.notes.append):
        report.read(path.name, 1)
        yield number, cells


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
        quoted: See `read_rows`.
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
    pad: bool = False,
) -> Iterator[Row]:
    """Yield columns of rows, of which the first has the names; see `read_columns`.

    With `pad`, empty fields at the end of a row may be absent.
    """
    number, header = next(rows, (1, []))
    keys = [column_key(name) for name in header]
    missing = [name for name in columns if column_key(name) not in keys]
    if missing:
        got = describe_header(header, is_header=len(missing) < len(columns))
        raise SapbertError(
            "E410",
            f"{path}:{number}: Expected a table with the columns "
            f"{' and '.join(missing)}, but it has {got}. Pass the file as its "
            "publisher released it, or another `--format`.",
        )
    width = len(header)
    # an absent column is an empty field after the others
    places = [
        keys.index(column_key(name)) if column_key(name) in keys else width
        for name in (*columns, *optional)
    ]
    for number, fields in rows:
        if pad:
            fields += [""] * (width - len(fields))
        if len(fields) != width or not fields[places[0]].strip():
            expected = f"{width} fields, and something as `{columns[0]}`"
            report.bad_line(path, number, expected)
            continue
        fields.append("")
        yield number, [fields[place].strip() for place in places]
