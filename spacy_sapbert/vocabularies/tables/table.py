"""Vocabularies in tables: CSV, TSV and Excel, with columns by name."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ...errors import SapbertError
from ...io.tables.columns import Columns, Layout, choose_columns
from ...io.tables.delimited import Row
from ...linking.languages import language_code
from ..concepts import clean_name
from ..facts import CODE, DEFINITION, KEEP, NAME, PARENT, RETIRED, TYPE, Fact
from ..options import ReadOptions
from ..report import Report
from .columns import CODES, ID, ROLES, STATUS, SYNONYMS
from .delimited import read_rows
from .release import Release

KINDS = {"type": TYPE, "parent": PARENT, "retired": RETIRED}
PREFERRED = "P"  # status of a name
COMMENT = "#"  # before what stands above the names of the columns


def read_table(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read concepts of a table; rows with the same id are one concept.

    Args:
        path: CSV, TSV or text with other delimiters, plain or `.gz`; or a spreadsheet.
            The first row has the names of the columns, unless it is a known table
            without them. Rows may end early.
    """
    known = ROLES.find_file(path) if options.columns is None else None
    rows = read_rows(
        path,
        options.delimiter or (known and known.delimiter) or None,
        report,
        quoted=known is None,
        encoding=options.encoding,
        comment=options.comment or (known.comment if known else ""),
    )
    comments: list[Row] = []
    for number, first in rows:
        if known is None and first and first[0].startswith(COMMENT):
            comments.append((number, first))
            continue
        columns, in_comment = find_columns(path, number, first, comments, options)
        if in_comment or not columns.header:
            rows = chain([(number, first)], rows)
        else:
            report.leave_header(path.name)
        if (note := columns.describe()) not in report.notes:
            report.notes.append(note)
        yield from row_facts(rows, columns, len(first), options.separator, path, report)


def read_meddra(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the tables of a release of MedDRA; the terms of the lowest level are names.

    Args:
        path: `pt.asc`, or its folder.
    """
    release = Release(path, "pt.asc", report)
    for layout in ROLES.layouts:
        if layout.name == "MedDRA":
            for file in release.find(layout.files):
                yield from read_table(file, report, options)


def find_columns(
    path: Path, number: int, first: list[str], comments: list[Row], options: ReadOptions
) -> tuple[Columns, bool]:
    """Return the columns, and whether the comments above the table name them."""
    wrong = None
    headers = [(number, first)]
    for line, cells in reversed(comments):
        if len(cells) == len(first):
            headers.append((line, [cells[0].lstrip(f"{COMMENT} "), *cells[1:]]))
    for line, header in headers:
        try:
            columns = choose_columns(path, line, header, ROLES, options.columns)
            return columns, header is not first
        except SapbertError as error:
            wrong = error  # of the highest comment, which is rather the header
    assert wrong is not None
    raise wrong


def row_facts(
    rows: Iterator[Row],
    columns: Columns,
    width: int,
    separator: str | None,
    path: Path,
    report: Report,
) -> Iterator[Fact]:
    """Yield the facts of each valid row; the last fields of a row may be absent."""
    layout = columns.layout or Layout("", "")
    separator = layout.separator if separator is None else separator
    places = [columns.find(role) for role in (ID, "language", STATUS)]
    id_place, language_place, status_place = places
    assert id_place is not None
    for number, fields in rows:
        if len(fields) > width:
            report.bad_line(path, number, f"{width} fields, as the first row")
            continue
        if len(fields) < width:
            report.counts["rows with fewer fields"] += 1
            fields += [""] * (width - len(fields))
        if not columns.keeps(fields):
            report.dropped["rows that are not current or approved"] += 1
            continue
        cui = fields[id_place].strip()
        if not cui:
            report.bad_line(path, number, f"an id in column {id_place + 1}")
            continue
        cui = layout.prefix + cui
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
                    elif role == "type":
                        yield Fact(cui, TYPE, part)
                    else:
                        said = "the column of retired ids" if role == RETIRED else ""
                        yield Fact(cui, KINDS[role], layout.prefix + part, source=said)


def split_values(cell: str, separator: str | None) -> Iterator[str]:
    """Yield the values of a cell; see `read_table`."""
    if separator is None:
        separator = "|" if "|" in cell else ";"
    return filter(None, map(str.strip, cell.split(separator)))
