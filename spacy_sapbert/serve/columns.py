"""A column of terms on the page: tables are read, mapped and written as by `map`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from typing_extensions import TypedDict

from ..errors import SapbertError
from ..formats.gold import NIL
from ..formats.mention_tables import CHOSEN
from ..io.excel import Cell, text_of
from ..kb.knowledge_base import KnowledgeBase
from ..mapping import sssom
from ..mapping.lookup import Found
from ..mapping.run import list_cells, list_columns
from ..mapping.tables import ENDINGS, read_rows, write_table
from .encodings import BINARY, to_utf8
from .problems import INVALID, MISSING, RequestError, check_format, too_much_in_request

MOST_ROWS = 20_000  # more are for the command `map`
SSSOM_FORMAT = "sssom.tsv"
FORMATS: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    SSSOM_FORMAT: "text/tab-separated-values; charset=utf-8",
}
# What holds: the choice of a person, else a sure link; and how it is meant.
FINAL, PREDICATE = "match_final", "match_predicate"
TEXTS = (".csv", ".tsv", ".txt")


class DateCell(TypedDict):
    """A date, or a date and a time, as ISO 8601 has it."""

    date: str


JsonCell = str | bool | int | float | DateCell | None


@dataclass(frozen=True)
class Table:
    """A header, and rows with as many cells, which have the types of the file."""

    header: list[str]
    rows: list[list[JsonCell]]


@dataclass(frozen=True)
class Choice:
    """What a person chose for a row.

    Attributes:
        chosen: An id, "NIL", or "" = nothing.
        predicate: One of `sssom.PREDICATES`, or "".
        subject: The id of the row, or "".
    """

    chosen: str
    predicate: str
    subject: str


def read_table(name: str, data: bytes) -> Table:
    """Read a table that was dropped on the page.

    Args:
        name: Of the file; only its ending is used.

    Raises:
        RequestError: If it is no table, or has too many rows.
        SapbertError: If a library is missing.
    """
    ending = next((e for e in ENDINGS if name.lower().endswith(e)), ".csv")
    data = to_utf8(data)
    if data.startswith(BINARY) and ending in TEXTS:
        known, other = ", ".join(ENDINGS), "another"
        raise RequestError(
            "E110",
            f"Expected a table with an ending of {known}, but got {other}. Rename it.",
            INVALID,
        )
    with TemporaryDirectory(prefix="sapbert-table-") as folder:
        path = Path(folder) / f"table{ending}"
        path.write_bytes(data)
        try:
            rows = [*islice(read_rows(path), MOST_ROWS + 2)]
        except SapbertError as error:
            if error.code == MISSING:
                raise
            text = error.text.replace(str(path), path.name)
            raise RequestError(error.code, text, INVALID) from None
    if len(rows) > MOST_ROWS + 1:
        got = len(rows) - 1
        raise too_much_in_request(MOST_ROWS, "rows", got)
    header, *others = rows or [[]]
    return Table([*map(text_of, header)], [[*map(to_json, row)] for row in others])


def to_json(cell: Cell) -> JsonCell:
    """Return a cell for a browser."""
    return DateCell(date=cell.isoformat()) if isinstance(cell, date) else cell


def from_json(cell: JsonCell) -> Cell:
    """Return a cell that a browser sends back.

    Raises:
        ValueError: If a date is none.
    """
    if not isinstance(cell, dict):
        return cell
    text = cell["date"]
    return (datetime if "T" in text else date).fromisoformat(text)


def write_mapped(
    kb: KnowledgeBase,
    format: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    terms: Sequence[str],
    found: Mapping[str, Found],
    choices: Sequence[Choice],
    *,
    digest: str,
    reviewer: str = "",
) -> bytes:
    """Return a mapped table as a file.

    Args:
        format: A key of `FORMATS`.
        rows, terms, choices: Equally many.
        found: What was shown for each term; nothing is looked up again.
        digest: Of the knowledge base in which it was found.
        reviewer: Who chose.

    Raises:
        SapbertError: If the format is unknown, or a library is missing.
    """
    check_format(format, FORMATS)
    with TemporaryDirectory(prefix="sapbert-table-") as folder:
        path = Path(folder) / f"mapped.{format}"
        if format == SSSOM_FORMAT:
            today = datetime.now(tz=UTC).date()
            mappings = (
                sssom.list_cells(
                    term,
                    apply_choice(kb, found[term], choice.chosen),
                    today,
                    reviewer,
                    subject=choice.subject,
                    predicate=choice.predicate,
                )
                for term, choice in zip(terms, choices, strict=True)
            )
            with path.open("wb") as file:
                sssom.write_sssom(file, mappings, digest)
        else:
            k = max((len(one.candidates) for one in found.values()), default=1)
            added = list_columns(max(k, 1))
            place = added.index(CHOSEN)
            table: list[list[Cell]] = []
            for row, term, choice in zip(rows, terms, choices, strict=True):
                new = list_cells(term, found[term], max(k, 1))
                is_exact = choice.predicate in ("", "exact")
                new[place] = choice.chosen if is_exact else ""  # `teach` reads it
                final = choice.chosen or found[term].final
                table.append([*row, *new, final, choice.predicate])
            write_table(path, [*header, *added, FINAL, PREDICATE], table)
        return path.read_bytes()


def apply_choice(kb: KnowledgeBase, found: Found, chosen: str) -> Found:
    """Return what was found, with the concept that a person chose in its place."""
    if not chosen:
        return found
    if chosen == NIL:
        return found._replace(cui=None, note=None, status=sssom.NO_CONCEPT)
    same = [one for one in found.candidates if one["cui"] == chosen]
    concept = kb.concept(chosen)
    if not same and concept is not None:
        same = [
            {
                "cui": concept.cui,
                "name": concept.name,
                "alias": concept.name,
                "score": 0.0,
                "rank": 1,
                "types": concept.types,
                "codes": concept.codes,
                "tie": None,
                "probability": None,
            }
        ]
    status = sssom.CHOSEN
    return found._replace(cui=chosen, status=status, note=None, candidates=same)
