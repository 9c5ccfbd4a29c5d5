"""The first rows of tables: the names of columns in errors, and where they are."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...errors import SapbertError
from ..terminal import printable

# Words of columns that tables of terms, texts and codes have. An error may show them.
COLUMN_WORDS = frozenset(
    re.findall(
        r"\w+",
        "abstract age author body category chapter class code codes column comment "
        "concept context count cui data date definition description diagnosis disease "
        "doc document drug encounter end field file finding format gender group hadm "
        "icd id identifier ids index key kind label lang language length level line "
        "link list mapping match meaning medication mention mesh message modifier "
        "name nr no note notes number object offset omop parent patient pmid position "
        "predicate preferred probability procedure record report row score section "
        "sentence sex snomed source span start status study subject symbol symptom "
        "synonym synonyms system term terms text texts title tui type types umls unit "
        "url user value version visit vocabulary ward word year",
    )
)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ID = re.compile(r"[A-Za-z_]{0,20}[:.]?[A-Za-z]{0,8}-?\d[\w.:/-]{0,30}")
MOST_LISTED, LONGEST_LISTED = 20, 40  # columns in an error, and characters of each
MOST_CELLS = 100  # of a first row with a column that is looked for: more may be texts


def list_columns(names: Iterable[str]) -> str:
    """Return the names of columns for an error, the first of many."""
    listed = [printable(name[:LONGEST_LISTED]).strip() for name in names]
    more = ["…"] if len(listed) > MOST_LISTED else []
    return ", ".join([*listed[:MOST_LISTED], *more])


def is_known_column(name: str) -> bool:
    """Return whether a name has only `COLUMN_WORDS`, as "note_id" and "codeSystem"."""
    words = {word.lower() for word in WORDS.findall(name)}
    rest = WORDS.sub("", name).strip(" _-.:#/()")
    return bool(words) and words <= COLUMN_WORDS and not rest


def describe_header(header: Sequence[str], *, is_header: bool) -> str:
    """Return the first row of a table for an error.

    Args:
        is_header: One of its cells is the name of a column that is looked for. Else the
            table may lack a header, and have texts of people in its first row. Of these
            only words are shown that columns usually have.
    """
    if not header:
        return "no columns, or wrong quotes in the first row"
    short = all(len(c) <= LONGEST_LISTED and c.isprintable() for c in header)
    known = [*filter(is_known_column, header)]
    if len(known) == len(header) or (is_header and short and len(header) <= MOST_CELLS):
        return f"the columns {list_columns(header)}"
    cells = "1 cell" if len(header) == 1 else f"{len(header)} cells"
    shown = f"{list_columns(known)} and others, " if known else ""
    return f"{cells} in the first row, {shown}not shown here since they may be texts"


def show_id(text: str) -> str:
    """Return an id for an error; what does not look like one may be of a patient."""
    return repr(text) if ID.fullmatch(text) else "one that does not look like an id"


def column_key(name: str) -> str:
    """Return the form of a column's name that is equal for equal names."""
    return "".join(filter(str.isalnum, name.casefold()))


def find_places(header: Sequence[str], name: str) -> list[int]:
    """Return the places of a column by its name, or by one that is nearly so."""
    same = [place for place, other in enumerate(header) if other.strip() == name]
    key = column_key(name)
    return same or [p for p, other in enumerate(header) if column_key(other) == key]


def find_columns(
    path: Path | str,
    header: Sequence[str],
    names: Sequence[str | None],
    fix: str = "Name one of its columns, or write a first row with their names.",
) -> list[int | None]:
    """Return the places of columns, whatever the case of their names; None has none.

    Args:
        path: With the line of the header, if errors show it.
        fix: How to correct that a column is missing.
    """
    places = [next(iter(find_places(header, n)), None) if n else None for n in names]
    pairs = zip(names, places, strict=True)
    if missing := [name for name, place in pairs if name and place is None]:
        is_header = any(place is not None for place in places)
        raise missing_columns(path, header, missing, fix, is_header=is_header)
    return places


def missing_columns(
    path: Path | str,
    header: Sequence[str],
    missing: Sequence[str],
    fix: str,
    *,
    is_header: bool,
) -> SapbertError:
    """Return the error of columns that a table lacks; see `describe_header`."""
    what = "a column" if len(missing) == 1 else "the columns"
    known = describe_header([*map(str.strip, header)], is_header=is_header)
    return SapbertError(
        "E410",
        f"{path}: Expected {what} {' and '.join(map(repr, missing))}, but it has "
        f"{known}. {fix}",
    )
