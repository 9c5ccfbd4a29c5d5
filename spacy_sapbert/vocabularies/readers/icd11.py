"""ICD-11: the simple tabulation and the linearization of the WHO, as text or workbook.

Source: icd.who.int/browse, Info, spreadsheet file; icd.who.int/dev11/downloads.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ...io.tables.delimited import Row
from ...linking.languages import language_code
from ..facts import CODE, NAME, PARENT, Fact
from ..options import ReadOptions
from ..report import Report
from ..tables.delimited import read_rows, select_columns

SOURCE = "ICD11"
COLUMNS = ("Title", "ClassKind", "Code", "BlockId", "ChapterNo")
URI = "Foundation URI"
VERSION = re.compile(r"version:\s*(.*)", re.IGNORECASE)  # the last cell of the header
LANGUAGE = re.compile(
    r"-([a-z]{2})\.", re.IGNORECASE
)  # SimpleTabulation-ICD-11-MMS-en.txt
DEPTH = 100  # levels; the published files have 12


def read_icd11(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the titles of ICD-11; chapters and blocks are concepts too, without a code.

    The id is the code, of a block its `BlockId`, of a chapter `Chapter` and its number,
    and of other groups the number in their URI. The linearization repeats a category
    under each of its parents.
    """
    ending = LANGUAGE.search(path.name)
    language = language_code(ending[1]) if ending else ""
    above: list[str] = []  # the ids of the levels above the row
    rows = read_version(read_rows(path, "\t", report, quoted=True), report)
    for number, (title, kind, code, block, chapter, uri) in select_columns(
        rows, path, COLUMNS, report, optional=[URI]
    ):
        name = title.lstrip("- ")  # a mark for each level above it
        depth = title[: len(title) - len(name)].count("-")
        id = code or block
        if not id and kind.lower() == "chapter" and chapter:
            id = f"Chapter {chapter}"
        id = id or uri.rpartition("/")[2]
        if not id or depth > DEPTH:
            expected = f"a code, and at most {DEPTH} levels"
            report.bad_line(path, number, expected)
            continue
        del above[depth:]
        above += [""] * (depth - len(above))
        if parent := next(filter(None, reversed(above)), ""):
            yield Fact(id, PARENT, parent)
        above.append(id)
        yield Fact(id, NAME, name, source=SOURCE, language=language)
        if code:
            yield Fact(id, CODE, code, source=SOURCE)


def read_version(rows: Iterator[Row], report: Report) -> Iterator[Row]:
    """Yield rows without the version at the end of the header.

    In the rows below it there may be an empty cell, or none.
    """
    number, header = next(rows, (1, []))
    if version := VERSION.fullmatch(header[-1]) if header else None:
        report.add_release(SOURCE, version[1])
        header = header[:-1]
    yield number, header
    for number, cells in rows:
        is_longer = version and len(cells) == len(header) + 1
        yield number, cells[:-1] if is_longer else cells
