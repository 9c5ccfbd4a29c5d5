"""The rows of a spreadsheet: Excel and OpenDocument."""

import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, BinaryIO

from ...errors import SapbertError
from ..plugins import require
from ..reading import RECORD_BYTES, check_unpacked, open_to_read

ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
MEMORY = 1 << 30  # of the process that reads
Cell = str | float | bool | date | None
PROGRAM = Path(__file__).with_name("calamine_rows.py")


def text_of(cell: Cell) -> str:
    """Return a cell as text: a number as it is stored, so that 250.00 is "250"."""
    return "" if cell is None else str(cell)


def parse_cell(value: Any) -> Cell:
    """Return a cell as the program prints it: dates are in lists."""
    if not isinstance(value, list):
        return value
    has_time = "T" in value[0]
    return (datetime if has_time else date).fromisoformat(value[0])


def read_cells(
    path: Path, *, note: Callable[[str], None] | None = None
) -> Iterator[tuple[int, list[Cell]]]:
    """Read the rows of the first visible sheet.

    Of formulas the stored result is read.

    Args:
        note: Called with a sentence about the sheets that are not read.

    Yields:
        Number of the row, from 1, and its cells up to the last that is not empty; rows
        without any are left out.

    Raises:
        SapbertError: If python-calamine is not installed, the file is damaged or no
            spreadsheet, it needs too much memory, or a number may be an id that was
            rounded.
    """
    require("python_calamine", "python-calamine")
    with open_to_read(path) as file:
        check_unpacked(path, path.stat().st_size, unpacked_bytes(file))
        # -P: modules beside the program have names of the standard library
        command = [sys.executable, "-P", str(PROGRAM), str(MEMORY), str(RECORD_BYTES)]
        with Popen(command, stdin=file, stdout=PIPE, stderr=DEVNULL) as process:
            assert process.stdout is not None
            reason = f"it is damaged, or needs more than {MEMORY >> 20} MiB of memory"
            try:
                for line in process.stdout:
                    if not line.endswith(b"\n"):  # the process was ended
                        break
                    row = json.loads(line)
                    if not isinstance(row, list):
                        reason = row
                        break
                    number, cells = row
                    if number:
                        yield number, [*map(parse_cell, cells)]
                    elif cells[1:] and note is not None:
                        names = ", ".join(repr(name[:40]) for name in cells[1:11])
                        note(f"Other sheets are not read: {names}.")
            finally:
                process.kill()
    if reason is not None:
        raise SapbertError(
            "E150",
            f"{path}: Expected a spreadsheet of Excel or OpenDocument, but {reason}. "
            "Correct it, or save it as CSV in UTF-8 and pass that file.",
        )


def unpacked_bytes(file: BinaryIO) -> int:
    """Return how much an archive declares to unpack to; 0 if it is no archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            return sum(member.file_size for member in archive.infolist())
    except Exception:  # zipfile raises almost any for a wrong directory
        return 0
