"""Rows of spreadsheets, and files that no memory could hold."""

import datetime
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io import reading
from spacy_sapbert.io.tables.files import open_rows

SHEET = "xl/worksheets/sheet1.xml"


READ = """
import resource
import sys
from pathlib import Path
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.tables.files import open_rows

for path in sys.argv[1:]:
    try:
        list(open_rows(Path(path)))
    except SapbertError as error:
        print(error.code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def write_book(path: Path, *rows: list[Any]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def change_sheet(path: Path, old: bytes, new: bytes) -> None:
    """Write a workbook again with other bytes in its sheet."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    assert old in parts[SHEET]
    parts[SHEET] = parts[SHEET].replace(old, new, 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name, data)


def test_open_rows_of_excel_has_cells_as_texts_and_numbers_of_rows(tmp_path):
    book = openpyxl.Workbook()
    hidden = book.active
    hidden.sheet_state = "hidden"
    hidden["A1"] = "hidden"
    sheet = book.create_sheet("codes")
    book.active = 1
    book.create_sheet("notes")
    sheet["B2"] = "0012"
    sheet["C2"], sheet["D2"] = 250.0, 0.5
    sheet["E2"] = True
    sheet["F2"] = datetime.date(2026, 1, 31)
    sheet["B4"] = "=1+1"  # without a stored result
    sheet["C4"] = " a\nb "
    sheet["D4"], sheet["E4"] = 73211009, "#N/A"
    sheet["E4"].data_type = "e"
    path = tmp_path / "codes.xlsx"
    book.save(path)
    notes: list[str] = []
    assert list(open_rows(path, note=notes.append)) == [
        (2, ["", "0012", "250", "0.5", "True", "2026-01-31"]),
        (4, ["", "", "a\nb", "73211009", "", ""]),
    ]
    assert notes == ["Other sheets are not read: 'notes'."]


def test_open_rows_of_excel_97(tmp_path):
    xlwt = pytest.importorskip("xlwt", reason="xlwt is not installed")
    book = xlwt.Workbook()
    sheet = book.add_sheet("codes")
    for column, value in enumerate(("0012", 250.0, "fever")):
        sheet.write(1, column, value)
    book.save(str(tmp_path / "codes.xls"))
    rows = list(open_rows(tmp_path / "codes.xls"))
    assert rows == [(2, ["0012", "250", "fever"])]


def test_open_rows_an_id_that_was_rounded_is_an_error(tmp_path):
    """An id of an extension of SNOMED CT has up to 18 digits, and a number has 15."""
    path = write_book(tmp_path / "codes.xlsx", ["id"], ["999000041000000102"])
    assert [cells for _, cells in open_rows(path)][1] == ["999000041000000102"]
    path = write_book(tmp_path / "codes.xlsx", ["id"], [999000041000000102])
    with pytest.raises(SapbertError, match=r"E150.*row 2.*15 digits.*texts"):
        list(open_rows(path))


# A cell in each corner: calamine makes all between them.
HUGE = [
    b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    b'<row r="9999999999"><c r="ZZZZZZZ9"><v>1</v></c></row>',
]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs limits of Linux")
def test_open_rows_what_no_memory_holds_is_an_error(tmp_path, new_process):
    paths = []
    for number, rows in enumerate(HUGE):
        path = write_book(tmp_path / f"{number}.xlsx", ["id", "name"], ["X", "fever"])
        change_sheet(path, b"</sheetData>", rows + b"</sheetData>")
        paths.append(path)
    # A new process begins with the memory of its parent, so that one has to be small.
    done = new_process.python(READ, *paths, check=True)
    for line in done.stdout.splitlines():
        code, peak = line.split()
        assert (code, int(peak) <= 1 << 20) == ("E150", True)  # KiB
    assert len(done.stdout.splitlines()) == len(HUGE)


def test_open_rows_what_unpacks_to_far_more_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    path = write_book(tmp_path / "codes.xlsx", ["id"], ["X"])
    blanks = b" " * (4 << 20)
    change_sheet(path, b"<sheetData>", b"<sheetData>" + blanks)
    with pytest.raises(SapbertError, match="E007"):
        list(open_rows(path))
    # a directory that declares less than there is
    data = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        size = file.getinfo(SHEET).file_size.to_bytes(4, "little")
    path.write_bytes(data.replace(size, (1000).to_bytes(4, "little")))
    with pytest.raises(SapbertError, match="E150"):
        list(open_rows(path))
