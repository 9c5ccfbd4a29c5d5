"""Tables of any kind: CSV, TSV, SSSOM, Excel, Parquet and JSON lines, read and written.

    open_rows   the rows of any table, by the ending of its name
    fit_rows    as wide as the first row, or an error
    headers     the columns that have names; `columns`, what the columns are
    read_rows   a table that is written again, with the types of its cells

A text that was read is written again as it is. Another one is written to CSV or TSV so
that no spreadsheet computes it.
"""

import codecs
import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from io import TextIOWrapper
from itertools import chain, dropwhile, islice
from pathlib import Path
from tempfile import gettempdir
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from ...errors import SapbertError, unexpected_line
from ..plugins import require
from ..reading import UTF8_MARK, check_file, read_lines, read_start
from ..temporary_db import no_temporary_space
from ..writing import write_atomically
from .delimited import ReadLines, find_separator, read_delimited, read_first_line
from .formulas import AsRead, defuse, undefuse
from .spreadsheets import ENDINGS as SPREADSHEETS
from .spreadsheets import Cell, read_cells, text_of

CSV, TSV, EXCEL, PARQUET, JSONL = "csv", "tsv", "xlsx", "parquet", "jsonl"
SSSOM = re.compile(r"(?:^|[._-])sssom\.[tc]sv(?:\.gz)?$", re.IGNORECASE)
COMMENT = "#"  # before each line of the metadata above a table of SSSOM
WRITTEN = {
    ".csv": CSV,
    ".csv.gz": CSV,
    ".tsv": TSV,
    ".tsv.gz": TSV,
    ".txt": TSV,
    ".xlsx": EXCEL,
    ".parquet": PARQUET,
    ".jsonl": JSONL,
    ".jsonl.gz": JSONL,
}
ENDINGS = {**WRITTEN, **dict.fromkeys(SPREADSHEETS, EXCEL)}
SEPARATORS = {CSV: ",", TSV: "\t"}
ROWS_AT_ONCE = 1_000
MOST_ROWS = 1 << 20  # of a sheet of Excel, with the header
MOST_UNITS = 32_767  # of UTF-16 in a cell of Excel
BREAKS = re.compile("[\t\r\n]")  # what a cell of TSV cannot have
AnyRow = tuple[int, list[Any]]  # its number and its cells
ILLEGAL = dict.fromkeys([*range(9), 11, 12, *range(14, 32)], " ")  # in a workbook


def is_sssom(path: Path) -> bool:
    """Return whether a file is SSSOM, by its name."""
    return SSSOM.search(path.name) is not None


def find_kind(
    path: Path, endings: Mapping[str, str] = WRITTEN, other: str | None = None
) -> str:
    """Return the kind of a table by its ending; of another ending `other`."""
    for ending, kind in endings.items():
        if path.name.lower().endswith(ending):
            return kind
    if other is not None:
        return other
    known = ", ".join(endings)
    raise SapbertError(
        "E110",
        f"Expected a table with an ending of {known}, but got {path}. Rename it.",
    )


def is_text(path: Path) -> bool:
    """Return whether a table has lines with delimiters, as one of no known ending."""
    return find_kind(path, ENDINGS, CSV) in (CSV, TSV)


def open_rows(
    path: Path,
    delimiter: str | None = None,
    *,
    kind: str | None = None,
    quoted: bool | None = True,
    encoding: str = "utf-8",
    comment: str = "",
    read: ReadLines = read_lines,
    note: Callable[[str], None] | None = None,
    typed: bool = False,
) -> Iterator[AnyRow]:
    """Open a table, and return the numbers, from 1, and the cells of its rows.

    The first row has the names of the columns, unless the table has none.

    Args:
        kind: Whatever the ending.
        delimiter, quoted, encoding, comment, read: Of text; see `read_delimited`.
        note: See `read_cells`.
        typed: Cells that are no texts have their types; else all are texts.
    """
    kind = kind or find_kind(path, ENDINGS, CSV)
    if kind in (CSV, TSV):
        return read_delimited(
            path,
            delimiter,
            quoted=quoted,
            encoding=encoding,
            read=read,
            comment=comment,
        )
    rows: Iterator[AnyRow]
    if kind == EXCEL:
        rows = pad_rows(read_cells(path, note=note))
    elif kind == PARQUET:
        rows = read_parquet(path, typed=typed)
    else:
        rows = read_json_lines(path)
    return rows if typed else ((n, [*map(text_of, cells)]) for n, cells in rows)


def pad_rows(rows: Iterator[AnyRow]) -> Iterator[AnyRow]:
    """Yield rows of a sheet with the empty cells at their ends, which it lacks."""
    width = 0
    for number, cells in rows:
        width = width or len(cells)
        yield number, [*cells, *[""] * (width - len(cells))]


def fit_rows(
    path: Path,
    rows: Iterable[AnyRow],
    width: int,
    *,
    least: int | None = None,
    on_error: Callable[[SapbertError], object] | None = None,
) -> Iterator[AnyRow]:
    """Yield rows as wide as the first, with empty cells where a row ends early.

    Args:
        least: Number of cells that a row has; None = `width`.
        on_error: Called with the error of another row; None = raise it.
    """
    least = width if least is None else least
    for number, cells in rows:
        if cells and len(cells) == width:
            yield number, cells
        elif len(cells) < least or any(text_of(cell).strip() for cell in cells[width:]):
            error = wrong_fields(path, number, width, len(cells))
            if on_error is None:
                raise error
            on_error(error)
        else:
            yield number, [*cells[:width], *[""] * (width - len(cells))]


def wrong_fields(path: Path, line: int, width: int, got: int) -> SapbertError:
    found = f"{got} fields" if got else "quotes that are wrong"
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected {width} fields, as the first line has, but got "
        f"{found}. Correct the quotes or fields from this line on.",
    )


def read_rows(path: Path, *, encoding: str = "utf-8") -> Iterator[list[Cell]]:
    """Yield the rows of a table that is written again; the first one is the header.

    A cell of CSV is a text; others have their types.
    """
    kind = find_kind(path, ENDINGS)
    check_file(path)
    delimiter = SEPARATORS[kind] if is_sssom(path) else None
    rows = open_rows(path, delimiter, encoding=encoding, typed=True)
    if is_sssom(path):
        rows = dropwhile(lambda row: row[1][0].startswith(COMMENT), rows)
    for first in rows:
        names = [*map(text_of, first[1])]
        while names and not names[-1].strip():
            names.pop()
        every = chain([first], rows)
        for _, row in fit_rows(path, every, len(names), least=1):
            yield [AsRead(cell) if isinstance(cell, str) else cell for cell in row]


class CsvStyle(NamedTuple):
    """What CSV has between its fields, and whether it begins with a mark of UTF-8."""

    separator: str = SEPARATORS[CSV]
    marked: bool = False


USUAL = CsvStyle()


def read_style(path: Path, encoding: str = "utf-8") -> CsvStyle:
    """Return the style of CSV that is made of a table.

    It is that of the table if that is CSV, so that the same spreadsheet opens both; it
    reads UTF-8 without a mark in its own encoding.
    """
    if find_kind(path, ENDINGS) != CSV:
        return USUAL
    line = read_first_line(path, encoding)
    separator = find_separator(line)
    return CsvStyle(
        separator if separator in line else USUAL.separator,
        codecs.lookup(encoding).name != "utf-8"
        or read_start(path).startswith(UTF8_MARK),
    )


def read_header(rows: Iterator[list[Cell]]) -> list[str]:
    """Read the names of the columns, the first of the rows of a table."""
    return [AsRead(text_of(cell)) for cell in next(rows, [])]


def read_cell(cell: Cell) -> str:
    """Return what the cell of a table says."""
    return undefuse(text_of(cell))


def read_json_lines(path: Path) -> Iterator[AnyRow]:
    """Yield the members of objects; the first object names the columns.

    A list or an object in one of them is a text of JSON.
    """
    header: list[str] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        row: dict[str, Cell] | None = None
        with suppress(ValueError, RecursionError, AttributeError):
            members = json.loads(line).items()
            row = {name: to_plain_cell(value) for name, value in members}
        if row is None or (header and not row.keys() <= {*header}):
            expected = "an object with the members of the first line"
            raise unexpected_line(path=path, line=number, expected=expected)
        if not header:
            header = [*row]
            yield number, [*header]
        yield number, [row.get(name, "") for name in header]


def to_plain_cell(value: Any) -> Cell:
    """Return a value of JSON as a cell: an empty text for null, a text for a list."""
    if value is None:
        return ""
    return value if isinstance(value, Cell) else json.dumps(value)


def read_parquet(path: Path, *, typed: bool) -> Iterator[AnyRow]:
    """Yield the columns, and the rows, whose numbers are from 1."""
    require("pyarrow.parquet", "pyarrow")
    from .parquet import read_names, read_records

    names = read_names(path)
    yield 0, [*names]
    for number, record in enumerate(read_records(path, names), 1):
        cells = [*map(record.get, names)]
        plain = (cell if isinstance(cell, Cell) else str(cell) for cell in cells)
        yield number, [*plain] if typed else cells


def write_table(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    kind: str | None = None,
    *,
    style: CsvStyle = USUAL,
) -> None:
    """Write a table of a kind; None = by the ending. `style` is that of CSV."""
    kind = kind or find_kind(path)
    if kind == EXCEL:
        write_workbook(path, header, rows)
    elif kind == PARQUET:
        write_parquet(path, header, rows)
    elif kind == JSONL:
        with write_atomically(path) as file:
            for row in rows:
                cells = (None if is_no_number(cell) else cell for cell in row)
                values = dict(zip(header, cells, strict=True))
                line = json.dumps(values, ensure_ascii=False, default=str)
                file.write(line.encode("utf8", "replace") + b"\n")
    else:
        with write_atomically(path) as file:
            if style.marked and kind == CSV:
                file.write(UTF8_MARK)
            write_text(file, [header], kind, style.separator)
            write_text(file, rows, kind, style.separator)


def is_no_number(cell: Cell) -> bool:
    """Return whether a cell is NaN or infinite, which JSON lacks."""
    return isinstance(cell, float) and not math.isfinite(cell)


def write_text(
    file: IO[bytes],
    rows: Iterable[Sequence[Cell]],
    kind: str,
    separator: str = SEPARATORS[CSV],
) -> None:
    """Write rows as CSV, or as TSV without tabs and line ends in cells."""
    text = TextIOWrapper(file, "utf8", "replace", newline="", write_through=True)
    writer = csv.writer(text, delimiter=separator)
    try:
        for row in rows:
            if kind == CSV:
                writer.writerow(map(csv_cell, row))
            else:
                text.write("\t".join(map(tsv_cell, row)) + "\n")
    finally:
        text.detach()  # else the file would be closed with it


def csv_cell(cell: Cell) -> Cell:
    """Return what `csv` writes for a cell."""
    if type(cell) is str:  # and not `AsRead`
        return defuse(cell)
    return plain_text(cell) if isinstance(cell, bool) else cell


def tsv_cell(cell: Cell) -> str:
    """Return the text of a cell; a quote at its beginning would begin a quoted one."""
    text = plain_text(cell)
    if not isinstance(cell, AsRead) or BREAKS.search(text):
        text = defuse(" ".join(text.split()))
    return '"' + text.replace('"', '""') + '"' if text.startswith('"') else text


def plain_text(cell: Cell) -> str:
    """Return a cell as a spreadsheet reads it in a text: TRUE, 2026-01-31, −1.5."""
    return str(cell).upper() if isinstance(cell, bool) else text_of(cell)


def write_workbook(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Write a workbook whose texts are texts, never formulas."""
    require("openpyxl", "openpyxl")
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.writer.excel import ExcelWriter

    book = Workbook(write_only=True)
    sheet = book.create_sheet("mapped")
    sheet.freeze_panes = "A2"

    def to_cell(value: Cell, *, bold: bool = False) -> Any:
        if isinstance(value, str):
            value = value.encode("utf8", "replace").decode("utf8").translate(ILLEGAL)
        cell = WriteOnlyCell(sheet, value=value)
        if isinstance(value, str):
            cell.data_type = "s"  # also "=1+1"
        if bold:
            cell.font = Font(bold=True)
        return cell

    def append_rows() -> None:
        for number, row in enumerate(chain([header], rows), 1):
            # openpyxl would cut a text that Excel cannot hold
            texts = (cell for cell in row if isinstance(cell, str))
            units = [len(text.encode("utf-16-le", "replace")) // 2 for text in texts]
            if number > MOST_ROWS or max(units, default=0) > MOST_UNITS:
                raise SapbertError(
                    "E007",
                    f"{path}: Expected at most {MOST_ROWS - 1:,} rows, and "
                    f"{MOST_UNITS:,} characters in a cell, as Excel can hold, but got "
                    f"more in row {number}. Write CSV or Parquet.",
                )
            sheet.append([to_cell(cell, bold=number == 1) for cell in row])

    try:
        with closing(sheet):  # or it writes to its own file when it is deleted
            append_rows()
        with write_atomically(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as zipped:
            ExcelWriter(book, zipped).save()
    except Exception as error:
        if type(error).__name__ != "SerialisationError":  # of lxml
            raise
        raise no_temporary_space(folder=gettempdir(), reason=error) from None
    finally:
        with suppress(OSError, ValueError, AttributeError):
            sheet._writer.cleanup()  # its temporary file, if the workbook was not saved


def write_parquet(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> None:
    """Write a Parquet file; our columns of numbers are of numbers, others are texts."""
    pa, pq = (require(name, "pyarrow") for name in ("pyarrow", "pyarrow.parquet"))
    numbers = ("_score", "_probability")
    types = [pa.float64() if n.endswith(numbers) else pa.string() for n in header]
    schema = pa.schema(list(zip(header, types, strict=True)))
    cells = (
        [to_valid(cell, type) for cell, type in zip(row, types, strict=True)]
        for row in rows
    )
    with write_atomically(path) as file, pq.ParquetWriter(file, schema) as writer:
        while batch := list(islice(cells, ROWS_AT_ONCE)):
            columns = zip(zip(*batch, strict=True), types, strict=True)
            arrays = [pa.array(column, type) for column, type in columns]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def to_valid(cell: Cell, type: Any) -> Cell:
    """Return a cell for a column of numbers, or of texts without half a surrogate."""
    if cell is None or str(type) == "double":
        return cell
    return plain_text(cell).encode("utf8", "replace").decode()
