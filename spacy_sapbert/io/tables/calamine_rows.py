"""Print the rows of the spreadsheet at the standard input as lines of JSON.

A program: `excel.py` runs it in a process of its own. Calamine keeps a sheet in memory,
with a copy of each text that cells share, and a small file can declare more cells than
any memory holds. The limits here end this process, and not that of the caller.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import Any

from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

CPU_SECONDS = 300  # 1,000,000 rows of 16 cells take some 20
INEXACT, LONGEST_ID = 1e15, 1e19  # a spreadsheet keeps 15 digits of a number


class Refused(Exception):
    """A reason for the error of the caller."""


def read_rows(most_characters: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield 0 and the names of the sheets, then number and cells of each row."""
    sys.stdin.buffer.seek(0)
    book = CalamineWorkbook.from_filelike(sys.stdin.buffer)
    sheets = [s for s in book.sheets_metadata if s.typ == SheetTypeEnum.WorkSheet]
    visible = [s.name for s in sheets if s.visible == SheetVisibleEnum.Visible]
    names = visible or [sheet.name for sheet in sheets]
    yield 0, names
    sheet = book.get_sheet_by_name(names[0])
    before = [""] * (sheet.start or (0, 0))[1]
    for number, cells in enumerate(sheet.iter_rows(), 1):
        values = [*before, *(value_of(cell, number) for cell in cells)]
        if sum(len(str(value)) for value in values) > most_characters:
            raise Refused(f"row {number} is too large")
        while values and values[-1] == "":  # all rows are as wide as the widest
            values.pop()
        if values:
            yield number, values


def value_of(cell: Any, number: int) -> Any:
    """Return the value of a cell: a text, a number, a boolean, or a date in a list."""
    if isinstance(cell, float) and cell.is_integer():
        if INEXACT <= abs(cell) < LONGEST_ID:
            digits = "a number of more than 15 digits, which a spreadsheet rounds"
            raise Refused(f"row {number} has {digits} (ids must be texts)")
        cell = int(cell) if abs(cell) < INEXACT else cell
    if isinstance(cell, (bool, int, float)):
        return cell
    if isinstance(cell, date):
        return [cell.isoformat()]
    return str(cell).strip()


def limit_memory(memory: int) -> None:
    """Limit the memory and the time of this process, where the system can."""
    with suppress(ImportError, OSError, ValueError):  # Windows, macOS
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    limit_memory(int(sys.argv[1]))
    end = None
    try:
        for row in read_rows(int(sys.argv[2])):
            sys.stdout.write(json.dumps(row) + "\n")
    except Refused as error:
        end = str(error)
    except Exception as error:
        end = f"it cannot be read ({type(error).__name__})"
    sys.stdout.write(json.dumps(end) + "\n")
