"""Tables that `map` wrote, in which a person has chosen the concepts of terms."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from ..formats.gold import NO_ID, split_ids
from .columns import CHOSEN, TERM, find_columns
from .tables import ENDINGS, read_rows


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

    Args:
        path: CSV, TSV, `.xlsx` or `.parquet`.

    Raises:
        SapbertError: If a column is missing, or nothing is chosen.
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
