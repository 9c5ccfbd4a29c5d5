"""The rows of a workbook of Excel: `.xlsx`, in bounded memory."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from ..errors import SapbertError
from .plugins import require
from .reading import (
    BLOCK_BYTES,
    RECORD_BYTES,
    USUAL_BYTES,
    check_unpacked,
    open_to_read,
)

ROWS = 1 << 20  # of a sheet: the limit of Excel
SHARED_BYTES = 2 * RECORD_BYTES  # of the texts that cells share, which are in memory
MEMBERS = 10_000  # files of a workbook
TAGS = 1 << 18  # between the ends of rows or of shared texts; 16,384 cells have 98,304
# of each row and each shared text an empty element stays in memory
MOST_RECORDS = 1 << 22
RECORDS = (b"<row", b"<x:row", b"<si", b"<x:si")
RECORD_ENDS = (b"</row>", b"</x:row>", b"</si>", b"</x:si>")
TAIL = 8  # bytes of a block that are searched with the next one
REFUSED = (b"<!DOCTYPE", b"<!ENTITY")
ERRORS = ("#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NULL!", "#NUM!")
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def check_workbook(path: Path, archive: zipfile.ZipFile) -> None:
    """Check that a workbook unpacks to what memory holds, and declares no entities.

    Raises:
        SapbertError: If it does not.
    """
    members = archive.infolist()
    if len(members) > MEMBERS:
        raise wrong_workbook(path=path, reason="too many parts")
    # what is read of a member ends at its declared size
    unpacked = sum(member.file_size for member in members)
    check_unpacked(path, path.stat().st_size, unpacked)
    for member in members:
        if "sharedstrings" in member.filename.lower() and (
            member.file_size > SHARED_BYTES
        ):
            reason = f"more than {SHARED_BYTES >> 20} MiB of texts; save it as CSV"
            raise wrong_workbook(path=path, reason=reason)
        if not member.filename.lower().endswith((".xml", ".rels", ".vml")):
            continue
        with archive.open(member) as file:
            if reason := find_hostile(file):
                raise wrong_workbook(path=path, reason=reason)


def find_hostile(file: IO[bytes]) -> str:
    """Return what is wrong with a part of a workbook, for an error, or "".

    openpyxl keeps the elements of a row, of a shared text, and of all other parts.
    """
    before = file.read(2)
    if before in UTF16_MARKS:
        return "XML in UTF-16"
    records = tags = since = 0
    while block := file.read(BLOCK_BYTES):
        data = before + block
        if any(mark in data for mark in REFUSED):
            return "XML that declares something"
        begun = sum(map(block.count, RECORDS))
        records += begun
        if end := max(map(data.rfind, RECORD_ENDS)) + 1:
            tags = data.count(b"<", end)
        else:
            tags += block.count(b"<") - begun  # empty rows are no cells
        closed = block.rfind(b">")
        since = since + len(block) if closed < 0 else len(block) - closed
        if records > MOST_RECORDS:
            return "too many rows or texts; save it as CSV"
        if tags > TAGS or since > USUAL_BYTES:
            return "a row, a text or a tag that is too large"
        before = data[-TAIL:]
    return ""


def read_workbook(
    path: Path, *, note: Callable[[str], None] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of the first visible sheet.

    Numbers are written as Excel stores them, so that a code 250.00 in a cell of numbers
    is "250". Of formulas the stored result is read.

    Args:
        note: Called with a sentence about the sheets that are not read.

    Yields:
        Number of the row, from 1, and its cells as texts; rows without any are left
        out.

    Raises:
        SapbertError: If openpyxl is not installed, or the file is damaged or no
            workbook.
    """
    openpyxl = require("openpyxl", "openpyxl")
    with ExitStack() as stack:
        file = stack.enter_context(open_to_read(path))
        try:
            check_workbook(path, stack.enter_context(zipfile.ZipFile(file)))
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            stack.callback(book.close)
            sheets = [
                sheet for sheet in book.worksheets if sheet.sheet_state == "visible"
            ]
            sheet, *others = sheets or book.worksheets
            if others and note is not None:
                names = ", ".join(repr(other.title[:40]) for other in others[:10])
                note(f"Other sheets are not read: {names}.")
            # a file may declare any size; the rows then end at their last cells
            sheet.reset_dimensions()
            rows = sheet.iter_rows(max_row=ROWS, values_only=True)
            for number, cells in enumerate(rows, 1):
                values = [text_of(cell) for cell in cells]
                if any(values):
                    yield number, values
        except SapbertError:
            raise
        except (
            *(zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError),
            *(TypeError, IndexError, AttributeError, SyntaxError, OverflowError),
            *(NotImplementedError, RuntimeError, OSError),
        ) as error:
            # the errors of openpyxl for invalid XML and for parts that do not exist
            reason = f"it is damaged ({type(error).__name__})"
            raise wrong_workbook(path=path, reason=reason) from None


def text_of(cell: Any) -> str:
    """Return the value of a cell as text, without lone surrogates."""
    if cell is None or cell in ERRORS:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).encode("utf8", "replace").decode("utf8").strip()


def wrong_workbook(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E150",
        f"{path}: Expected a workbook of Excel, but got: {reason}. Save it as CSV in "
        "UTF-8 and pass that file.",
    )
