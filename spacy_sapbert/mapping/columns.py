"""The columns of a mapped table: written with links, read with choices of a person."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from ..formats.gold import NO_ID, split_ids
from ..io.tables import describe_header
from .lookup import Found
from .tables import ENDINGS, Cell, read_rows

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
    """Return the cells of `list_columns`; a person fills `chosen`.

    The first candidate is given even if the term has no concept.
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
    """
    keys = [column.strip().casefold() for column in header]
    wanted = [None if name is None else name.strip().casefold() for name in names]
    places = [keys.index(key) if key in keys else None for key in wanted]
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


class Reviewed(NamedTuple):
    """A term and what a person has chosen for it.

    Attributes:
        row: Its row in the table, from 1 = the header.
        parts: The ids; see `split_ids`. Empty = no concept.
    """

    row: int
    term: str
    parts: list[list[str]]


def is_mapped(path: Path) -> bool:
    """Return whether a file is a table that `map` wrote."""
    if not path.is_file() or not path.name.lower().endswith(tuple(ENDINGS)):
        return False
    try:
        return {TERM, CHOSEN} <= {*next(read_rows(path), [])}
    except SapbertError:
        return False


def read_reviewed(path: Path) -> Iterator[Reviewed]:
    """Read the terms of a table of `map` for which something is chosen.

    `match_chosen` has an id, several with bars between them of which one is right, or
    NIL. Terms where it is empty are left out.
    """
    rows = read_rows(path)
    header = next(rows, [])
    term_place, chosen_place = find_columns(path, header, (TERM, CHOSEN))
    assert term_place is not None
    assert chosen_place is not None
    empty = True
    for number, row in enumerate(rows, 2):
        term = row[term_place].strip()
        chosen = row[chosen_place].strip()
        if term and chosen:
            empty = False
            yield Reviewed(number, term, [] if chosen in NO_ID else split_ids(chosen))
    if empty:
        raise SapbertError(
            "E444",
            f"{path}: Expected chosen ids in the column `match_chosen`, but it is "
            "empty. Write an id, or NIL, for each term that you have reviewed.",
        )
