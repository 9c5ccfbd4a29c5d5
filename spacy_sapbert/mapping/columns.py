"""The columns of a mapped table: links of terms → rows."""

import json
from collections.abc import Sequence
from pathlib import Path

from ..errors import SapbertError
from ..io.tables import describe_header
from .found import Found
from .tables import Cell

PREFIX = "match_"  # of all columns that a mapping adds, so that no others are lost
FIRST = (
    *("term", "chosen", "status", "id", "name", "alias", "score", "probability"),
    *("codes", "note", "read_as"),
)
OTHERS = ("id", "name", "score")  # of the second candidate and those after it
TERM, CHOSEN = f"{PREFIX}term", f"{PREFIX}chosen"


def list_columns(k: int) -> list[str]:
    """Return the names of the columns that are added for k candidates."""
    others = [f"{rank}_{name}" for rank in range(2, k + 1) for name in OTHERS]
    return [f"{PREFIX}{name}" for name in (*FIRST, *others)]


def list_cells(term: str, found: Found, k: int) -> list[Cell]:
    """Return the cells of `list_columns`.

    `chosen` is empty: a person fills it. The first candidate is given also if the term
    has no concept, `status` then says so.
    """
    first = found.candidates[0] if found.candidates else None
    cells: list[Cell] = [term, "", found.status]
    if first is None:
        cells += [None] * 6
    else:
        codes = json.dumps(first["codes"], ensure_ascii=False) if first["codes"] else ""
        cells += [first["cui"], first["name"], first["alias"], first["score"]]
        cells += [first["probability"], codes]
    cells += [found.note, found.read_as]
    for rank in range(1, k):
        if rank < len(found.candidates):
            other = found.candidates[rank]
            cells += [other["cui"], other["name"], other["score"]]
        else:
            cells += [None, None, None]
    return cells


def find_columns(
    path: Path, header: Sequence[str], names: Sequence[str | None]
) -> list[int | None]:
    """Return the places of columns, whatever the case of their names.

    Args:
        names: None = a column that is not wanted.

    Raises:
        SapbertError: If one is missing.
    """
    places = [None if name is None else find_column(header, name) for name in names]
    for name, place in zip(names, places, strict=True):
        if name is not None and place is None:
            known = describe_header(
                header, is_header=any(p is not None for p in places)
            )
            raise SapbertError(
                "E443",
                f"{path}: Expected a column {name!r}, but it has {known}. Name one of "
                "its columns, or write a first row with the names of the columns.",
            )
    return places


def find_column(header: Sequence[str], name: str) -> int | None:
    """Return the place of a column, whatever the case of its name; None = absent."""
    keys = [column.strip().casefold() for column in header]
    key = name.strip().casefold()
    return keys.index(key) if key in keys else None
