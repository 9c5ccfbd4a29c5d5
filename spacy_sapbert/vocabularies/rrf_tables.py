"""Tables of UMLS's Rich Release Format: their files and rows, and the facts in them.

Types, definitions, parents, brands and retired ids are in tables beside MRCONSO. A
temporary database sorts them by concept, so that they are read in step with MRCONSO.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from ..system.reading import decode_line, read_line_blocks
from .report import Report

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

LookUp = Callable[[str], list[tuple[str, str]]]  # CUI → values and atoms

TABLES = {
    "MRSTY": (("types",), "no semantic types"),
    "MRDEF": (("definitions",), "no definitions"),
    "MRREL": (("parents", "brands"), "no parents and no trade names"),
    "MRCUI": (("retired",), "no retired ids"),
}
# A row of MRREL describes what CUI2 is to CUI1; True if it is the other way round.
BY_REL = {"PAR": ("parents", False), "CHD": ("parents", True)}
BY_RELA = {
    "inverse_isa": ("parents", False),
    "isa": ("parents", True),
    "tradename_of": ("brands", False),
    "has_tradename": ("brands", True),
}
# other mappings of a retired id: deleted, broader, narrower, related, split
MAPPINGS = ("DEL", "RB", "RN", "RO", "SUBX")

Row = list[str]  # the fields of a line, and an empty text after the last bar


class Fact(NamedTuple):
    """A property of a concept.

    kind (str): "types", "definitions", "parents", "brands" or "retired".
    cui (str): The concept.
    value (str): The type, the definition, or the id of another concept.
    atom (str): Of a definition: the AUI.
    rank (int): Of a definition: the place of its source in `source_rank`.
    """

    kind: str
    cui: str
    value: str
    atom: str = ""
    rank: int = 0


def find_table(path: Path, table: str) -> list[Path]:
    """Find the file of a table, or its parts.

    path (Path): The folder of a release, or the MRCONSO file in it.
    table (str): The table, e.g. "MRREL".
    RETURNS (list[Path]): One file, or the parts in order; empty if there is none.
    RAISES (SapbertError): If a part is missing.
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
    """Check that the parts are aa, ab, ac … and all or none of them compressed."""
    for number, part in enumerate(parts):
        name = f"{table}.RRF.{LETTERS[number // 26]}{LETTERS[number % 26]}"
        expected = part.with_name(name + (".gz" if parts[0].suffix == ".gz" else ""))
        if part != expected:
            raise SapbertError(Errors.E107.format(expected=expected, path=part))


def display_path(parts: list[Path], table: str) -> Path:
    """Return the path for errors: of a split file a pattern, `MRCONSO.RRF.*.gz`."""
    if len(parts) == 1:
        return parts[0]
    ending = ".gz" if parts[0].suffix == ".gz" else ""
    return parts[0].with_name(f"{table}.RRF.*{ending}")


def split_rows(
    parts: list[Path], table: str, *, on_error: str, report: Report
) -> Iterator[tuple[int, bytes, Row]]:
    """Split the rows of a table; lines of a split file are numbered through its parts.

    parts (list[Path]): The file, or its parts.
    table (str): The table, e.g. "MRCONSO".
    on_error (str): "fail", or "skip" to count invalid rows and continue.
    report (Report): Counts the rows.
    YIELDS (tuple[int, bytes, Row]): Line number, from 1; the line; and its fields. A
        line may be invalid UTF-8: see `check_utf8`.
    RAISES (SapbertError): With file and line, at the first row with a wrong number of
        fields.
    """
    path = display_path(parts, table)
    columns = len(COLUMNS[table])
    expected = columns + 1
    report.read(path.name, 0)
    for first, lines in read_line_blocks(path, parts=parts):
        report.read(path.name, len(lines))
        for number, line in enumerate(lines, first):
            row = line.decode("utf8", "replace").split("|")
            if len(row) == expected and not row[columns]:
                yield number, line, row
            elif not line:
                report.dropped["blank lines"] += 1
            elif on_error == "fail":
                values = {"expected": columns, "got": len(row) - 1}
                raise SapbertError(Errors.E102.format(path=path, line=number, **values))
            else:
                report.dropped[f"rows of {table} with a wrong number of fields"] += 1


def check_utf8(line: bytes, number: int, path: Path, on_error: str) -> bool:
    """Return whether a line is UTF-8.

    RAISES (SapbertError): If it is not, and `on_error` is "fail".
    """
    try:
        decode_line(line, path, number)
    except SapbertError:
        if on_error == "fail":
            raise
        return False
    return True


def read_rows(
    parts: list[Path], table: str, *, on_error: str, report: Report
) -> Iterator[Row]:
    """Read the valid rows of a table; see `split_rows`."""
    path = display_path(parts, table)
    rows = split_rows(parts, table, on_error=on_error, report=report)
    for number, line, row in rows:
        if line.isascii() or check_utf8(line, number, path, on_error):
            yield row
        else:
            report.dropped[f"rows of {table} that are not UTF-8"] += 1


def read_side_tables(
    database: sqlite3.Connection,
    path: Path,
    *,
    source_rank: Sequence[str],
    suppressed: bool,
    on_error: str,
    report: Report,
) -> dict[str, LookUp]:
    """Read the tables beside MRCONSO that exist.

    database (sqlite3.Connection): The temporary database.
    path (Path): The folder of the release, or the MRCONSO file in it.
    source_rank (Sequence[str]): Sources of definitions, the preferred first.
    suppressed (bool): Keep suppressed rows.
    on_error (str): "fail", or "skip" to count invalid rows and continue.
    report (Report): Counts the rows, and notes the tables that do not exist.
    RETURNS (dict[str, LookUp]): By the kind of `Fact`. A look-up has to be called with
        ascending ids.
    """
    ranks = {source: rank for rank, source in enumerate(source_rank)}
    parsers: dict[str, Callable[[Row, Report], Fact | None]] = {
        "MRSTY": lambda row, _: Fact("types", row[0], row[1]),
        "MRDEF": partial(parse_definition, ranks=ranks, suppressed=suppressed),
        "MRREL": partial(parse_relation, suppressed=suppressed),
        "MRCUI": parse_retired_id,
    }
    look_ups: dict[str, LookUp] = {}
    for table, (kinds, missing) in TABLES.items():
        parts = find_table(path, table)
        if not parts:
            report.notes.append(f"{table}.RRF is not there: {missing}.")
            continue
        rows = read_rows(parts, table, on_error=on_error, report=report)
        parsed = (parsers[table](row, report) for row in rows)
        database.execute(f"CREATE TABLE {table} (kind, cui, value, atom, rank)")
        database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", filter(None, parsed)
        )
        order = "rank, rowid" if table == "MRDEF" else "value"
        distinct = "" if table == "MRDEF" else "DISTINCT"
        for kind in kinds:
            look_ups[kind] = make_look_up(
                database.execute(
                    f"SELECT {distinct} cui, value, atom FROM {table} "
                    f"WHERE kind = ? ORDER BY cui, {order}",
                    [kind],
                )
            )
    return look_ups


def make_look_up(rows: Iterator[tuple[str, str, str]]) -> LookUp:
    """Make a function that returns the rows of a concept.

    rows (Iterator[tuple[str, str, str]]): CUI, value and atom, sorted by CUI.
    RETURNS (LookUp): Its calls have to be in the order of the CUIs.
    """
    head = next(rows, None)

    def look_up(cui: str) -> list[tuple[str, str]]:
        nonlocal head
        found = []
        while head is not None and head[0] <= cui:
            if head[0] == cui:
                found.append((head[1], head[2]))
            head = next(rows, None)
        return found

    return look_up


def parse_definition(
    row: Row, report: Report, *, ranks: dict[str, int], suppressed: bool
) -> Fact | None:
    """Parse a row of MRDEF."""
    cui, atom, _, _, source, text, suppress, *_ = row
    if suppress != "N" and not suppressed:
        report.dropped["suppressed definitions"] += 1
        return None
    return Fact("definitions", cui, text, atom, ranks.get(source, len(ranks)))


def parse_relation(row: Row, report: Report, *, suppressed: bool) -> Fact | None:
    """Parse a row of MRREL: a parent, a brand, or None."""
    cui, _, _, rel, other, _, _, rela, *_ = row
    kind, is_reversed = BY_REL.get(rel) or BY_RELA.get(rela) or ("", False)
    if not kind:
        return None
    if row[14] not in ("N", "") and not suppressed:
        report.dropped["suppressed relations"] += 1
        return None
    if cui == other:
        report.dropped["relations of a concept to itself"] += 1
        return None
    return Fact(kind, other, cui) if is_reversed else Fact(kind, cui, other)


def parse_retired_id(row: Row, report: Report) -> Fact | None:
    """Parse a row of MRCUI; only a synonym (`SY`) has the same meaning."""
    retired, _, mapping, _, _, cui, *_ = row
    if mapping == "SY":
        return Fact("retired", cui, retired)
    known = mapping if mapping in MAPPINGS else "something else"
    report.dropped[f"retired ids that map as {known}"] += 1
    return None
