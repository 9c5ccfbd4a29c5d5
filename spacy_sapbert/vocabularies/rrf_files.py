"""The files of UMLS's Rich Release Format, and the names of their columns."""

import re
from pathlib import Path

from ..errors import Errors, SapbertError

# fmt: off
COLUMNS: dict[str, tuple[str, ...]] = {
    "MRCONSO": (
        "CUI", "LAT", "TS", "LUI", "STT", "SUI", "ISPREF", "AUI", "SAUI", "SCUI",
        "SDUI", "SAB", "TTY", "CODE", "STR", "SRL", "SUPPRESS", "CVF",
    ),
    "MRREL": (
        "CUI1", "AUI1", "STYPE1", "REL", "CUI2", "AUI2", "STYPE2", "RELA", "RUI",
        "SRUI", "SAB", "SL", "RG", "DIR", "SUPPRESS", "CVF",
    ),
    "MRSTY": ("CUI", "TUI", "STN", "STY", "ATUI", "CVF"),
    "MRDEF": ("CUI", "AUI", "ATUI", "SATUI", "SAB", "DEF", "SUPPRESS", "CVF"),
    "MRCUI": ("CUI1", "VER", "REL", "RELA", "MAPREASON", "CUI2", "MAPIN"),
}
# fmt: on
PART = r"\.RRF\.[a-z]{2}(\.gz)?$"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def find_columns(table: str, *names: str) -> list[int]:
    """Return the places of columns in a row.

    table (str): The table, e.g. "MRCONSO".
    names (str): The columns.
    RETURNS (list[int]): Their indices.
    """
    return [COLUMNS[table].index(name) for name in names]


def find_table(path: Path, table: str) -> list[Path]:
    """Find the file of a table, or the parts that it was split into.

    path (Path): The folder of a release, or the MRCONSO file in it.
    table (str): The table, e.g. "MRREL".
    RETURNS (list[Path]): One file, or the parts in order; empty if there is none.
    RAISES (SapbertError): If a part in the middle is missing.
    """
    if path.is_file() and table == "MRCONSO" and not re.search(PART, path.name):
        return [path]
    folder = path if path.is_dir() else path.parent
    for place in (folder, folder / "META"):
        for name in (f"{table}.RRF", f"{table}.RRF.gz"):
            if (place / name).is_file():
                return [place / name]
        parts = sorted(
            part
            for part in place.glob(f"{table}.RRF.*")
            if re.fullmatch(re.escape(table) + PART, part.name)
        )
        if parts:
            check_parts(parts, table)
            return parts
    return []


def check_parts(parts: list[Path], table: str) -> None:
    """Check that parts follow each other without a gap: aa, ab, ac …

    parts (list[Path]): The parts, sorted.
    table (str): The table, for the names.
    RAISES (SapbertError): If one is missing, or some are compressed and some not.
    """
    for number, part in enumerate(parts):
        name = f"{table}.RRF.{LETTERS[number // 26]}{LETTERS[number % 26]}"
        expected = part.with_name(name + (".gz" if parts[0].suffix == ".gz" else ""))
        if part != expected:
            raise SapbertError(Errors.E107.format(expected=expected, path=part))


def name_parts(parts: list[Path], table: str) -> Path:
    """Name a file, or all its parts at once: lines are counted through the parts.

    parts (list[Path]): The file, or its parts.
    table (str): The table.
    RETURNS (Path): For a split file a pattern, e.g. `MRCONSO.RRF.*.gz`.
    """
    if len(parts) == 1:
        return parts[0]
    return parts[0].with_name(
        f"{table}.RRF.*" + (".gz" if parts[0].suffix == ".gz" else "")
    )
