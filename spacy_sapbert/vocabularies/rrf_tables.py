"""The tables beside MRCONSO: types, definitions, parents, brands and retired ids.

Each goes through a scratch database that sorts it, and comes back in step with MRCONSO,
so that none of them is ever held in memory.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from .report import Report
from .rrf_files import find_table
from .rrf_reading import read_rows
from .rrf_rows import Rows

Values = tuple[str, ...]
LookUp = Callable[[str], list[Values]]

WITHOUT = {
    "MRSTY": "no semantic types",
    "MRDEF": "no definitions",
    "MRREL": "no parents and no trade names",
    "MRCUI": "no retired ids",
}
SIDES = {
    "MRSTY": ("types",),
    "MRDEF": ("definitions",),
    "MRREL": ("parents", "brands"),
    "MRCUI": ("retired",),
}
# how a retired id maps: deleted, broader, narrower, related, split
MAPPINGS = ("DEL", "RB", "RN", "RO", "SUBX")


def read_sides(
    scratch: sqlite3.Connection,
    path: Path,
    *,
    sources: Sequence[str],
    suppressed: bool,
    on_error: str,
    report: Report,
) -> dict[str, LookUp]:
    """Read the tables beside MRCONSO, those that are there.

    scratch (sqlite3.Connection): Where they are sorted.
    path (Path): The folder of the release, or the MRCONSO file in it.
    sources (Sequence[str]): Sources in the order in which their definitions count.
    suppressed (bool): Whether suppressed rows count too.
    on_error (str): "fail", or "skip" to count bad rows and go on.
    report (Report): Counts the rows, and notes the tables that are not there.
    RETURNS (dict[str, LookUp]): By what is in the tables that are there (see `SIDES`):
        give the rows of a concept, when asked in the order of the ids.
    """
    looks: dict[str, LookUp] = {}
    for table, without in WITHOUT.items():
        parts = find_table(path, table)
        if not parts:
            report.notes.append(f"{table}.RRF is not there: {without}.")
            continue
        for side in SIDES[table]:
            columns = (
                "cui, rank, value, atom" if side == "definitions" else "cui, value"
            )
            scratch.execute(f"CREATE TABLE {side} ({columns})")
        for rows in read_rows(parts, table, on_error=on_error, report=report):
            if table == "MRSTY":
                insert(scratch, "types", rows.texts("CUI"), rows.texts("TUI"))
            elif table == "MRDEF":
                insert_definitions(scratch, rows, sources, suppressed, report)
            elif table == "MRREL":
                insert_relations(scratch, rows, suppressed, report)
            else:
                insert_retired(scratch, rows, report)
        for side in SIDES[table]:
            order = f"SELECT DISTINCT cui, value FROM {side} ORDER BY cui, value"
            if side == "definitions":
                order = f"SELECT cui, value, atom FROM {side} ORDER BY cui, rank, rowid"
            looks[side] = make_look_up(scratch.execute(order))
    return looks


def insert(scratch: sqlite3.Connection, side: str, *columns: Sequence[object]) -> None:
    """Put values into a scratch table.

    scratch (sqlite3.Connection): The database.
    side (str): The table.
    columns (Sequence[object]): Its columns, equally long.
    """
    places = ", ".join("?" * len(columns))
    rows = zip(*columns, strict=True)
    scratch.executemany(f"INSERT INTO {side} VALUES ({places})", rows)


def make_look_up(values: Iterator[Values]) -> LookUp:
    """Make sorted rows answer in step with another sorted file.

    values (Iterator[Values]): Rows that begin with an id, sorted by it.
    RETURNS (LookUp): From an id to its rows, without the id; each id asked for must
        be greater than the one before.
    """
    head = next(values, None)

    def look_up(cui: str) -> list[Values]:
        nonlocal head
        found = []
        while head is not None and head[0] <= cui:
            if head[0] == cui:
                found.append(head[1:])
            head = next(values, None)
        return found

    return look_up


def insert_definitions(
    scratch: sqlite3.Connection,
    rows: Rows,
    sources: Sequence[str],
    suppressed: bool,
    report: Report,
) -> None:
    """Keep definitions with the ranks of their sources and with their atoms."""
    if not suppressed:
        rows = drop(rows, rows.equal("SUPPRESS", "N"), "suppressed definitions", report)
    ranks = {source: rank for rank, source in enumerate(sources)}
    insert(
        scratch,
        "definitions",
        rows.texts("CUI"),
        [ranks.get(source, len(ranks)) for source in rows.texts("SAB")],
        rows.texts("DEF"),
        rows.texts("AUI"),
    )


def insert_relations(
    scratch: sqlite3.Connection, rows: Rows, suppressed: bool, report: Report
) -> None:
    """Keep parents and brands.

    A row says what CUI2 is to CUI1: `PAR` that it is a parent, `tradename_of` that it
    is a brand. `CHD` and `has_tradename` say the same the other way round.
    """
    children = rows.equal("REL", "CHD")
    parents = rows.equal("REL", "PAR")
    children |= rows.equal("RELA", "isa") & ~parents
    parents |= rows.equal("RELA", "inverse_isa") & ~children
    brands = rows.equal("RELA", "tradename_of") & ~parents & ~children
    ingredients = rows.equal("RELA", "has_tradename") & ~parents & ~children
    for side, mask, concept, other in (
        ("parents", parents, "CUI1", "CUI2"),
        ("parents", children, "CUI2", "CUI1"),
        ("brands", brands, "CUI1", "CUI2"),
        ("brands", ingredients, "CUI2", "CUI1"),
    ):
        found = rows[mask]
        if not suppressed:
            kept = found.equal("SUPPRESS", "N", "")
            found = drop(found, kept, "suppressed relations", report)
        ones, twos = found.texts(concept), found.texts(other)
        others = np.array([one != two for one, two in zip(ones, twos)], dtype=bool)  # noqa: B905
        found = drop(found, others, "relations of a concept to itself", report)
        insert(scratch, side, found.texts(concept), found.texts(other))


def insert_retired(scratch: sqlite3.Connection, rows: Rows, report: Report) -> None:
    """Keep ids that mean the same as a newer one (`SY`), and count the others."""
    same = rows.equal("REL", "SY")
    for mapping in rows[~same].texts("REL"):
        known = mapping if mapping in MAPPINGS else "something else"
        report.dropped[f"retired ids that map as {known}"] += 1
    insert(scratch, "retired", rows[same].texts("CUI2"), rows[same].texts("CUI1"))


def drop(rows: Rows, kept: np.ndarray, rule: str, report: Report) -> Rows:
    """Keep the rows of a mask, and count the others under a rule."""
    report.dropped[rule] += len(rows) - int(np.count_nonzero(kept))
    return rows[kept]
