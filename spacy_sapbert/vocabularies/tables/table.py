"""Vocabularies in tables of your own: CSV, TSV and Excel, with columns by name."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ...io.tables.delimited import Row
from ...io.tables.spreadsheets import ENDINGS as EXCEL
from ...linking.languages import language_code
from ..concepts import clean_name
from ..facts import CODE, DEFINITION, KEEP, NAME, PARENT, RETIRED, TYPE, Fact
from ..options import ReadOptions
from ..report import Report
from .columns import CODES, ID, STATUS, SYNONYMS, Columns, choose_columns
from .delimited import read_rows, read_sheet

KINDS = {"type": TYPE, "parent": PARENT, "retired": RETIRED}
PREFERRED = "P"  # status of a name


def read_table(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read concepts of a table; rows with the same id are one concept.

    Args:
        path: CSV, TSV or text with semicolons or bars between fields, plain or `.gz`;
            or a spreadsheet. The first row has the names of the columns.
    """
    is_excel = path.suffix.lower() in EXCEL
    rows = (
        read_sheet(path, report)
        if is_excel
        else read_rows(path, None, report, quoted=True, encoding=options.encoding)
    )
    number, first = next(rows, (1, []))
    if not first:
        return
    chosen = choose_columns(path, number, first, options.columns)
    report.notes.append(chosen.describe(first))
    if not chosen.has_header:
        rows = chain([(number, first)], rows)
    yield from row_facts(
        rows, chosen, options.separator, path, report, exact=not is_excel
    )


def row_facts(
    rows: Iterator[Row],
    columns: Columns,
    separator: str | None,
    path: Path,
    report: Report,
    *,
    exact: bool,
) -> Iterator[Fact]:
    """Yield the facts of each valid row.

    If not `exact`, rows may be shorter than the first one.
    """
    id_place = columns.find(ID)
    language_place, status_place = columns.find("language"), columns.find(STATUS)
    assert id_place is not None
    last = max(column.place for column in columns.chosen)
    for number, fields in rows:
        if not exact:
            fields += [""] * (last + 1 - len(fields))
        if exact and len(fields) != columns.width:
            report.bad_line(path, number, f"{columns.width} fields, as the first row")
            continue
        cui = fields[id_place].strip()
        if not cui:
            report.bad_line(path, number, f"an id in column {id_place + 1}")
            continue
        yield Fact(cui, KEEP)  # a concept without a name is counted
        language = ""
        if language_place is not None:
            language = language_code(fields[language_place])
        for role, place, source in columns.chosen:
            value = fields[place].strip()
            if not value or role in (ID, "language", STATUS):
                continue
            if role == "name":
                other = status_place is not None and fields[status_place] != PREFERRED
                yield Fact(cui, NAME, value, int(other), language=language)
            elif role == "definition":
                yield Fact(cui, DEFINITION, clean_name(value))
            else:
                for part in split_values(value, separator):
                    if role == SYNONYMS:
                        yield Fact(cui, NAME, part, 1, language=language)
                    elif role == CODES:
                        yield Fact(cui, CODE, part, source=source)
                    else:
                        said = "the column of retired ids" if role == RETIRED else ""
                        yield Fact(cui, KINDS[role], part, source=said)


def split_values(cell: str, separator: str | None) -> Iterator[str]:
    """Yield the values of a cell; see `read_table`."""
    if separator is None:
        separator = "|" if "|" in cell else ";"
    return filter(None, map(str.strip, cell.split(separator)))
