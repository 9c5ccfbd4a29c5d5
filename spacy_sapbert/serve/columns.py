"""A column of terms on the page: tables are read, mapped and written as by `map`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from ..errors import SapbertError
from ..formats.mention_tables import CHOSEN
from ..io.tables.files import ENDINGS, read_cell, read_rows, write_table
from ..io.tables.formulas import AsRead
from ..io.tables.spreadsheets import Cell, text_of
from ..kb.knowledge_base import KnowledgeBase
from ..mapping.decisions import apply_choice, list_mapping
from ..mapping.lookup import Found
from ..mapping.run import list_cells, list_columns
from ..vocabularies.sssom import make_subject, write_sssom
from .encodings import BINARY, to_utf8
from .problems import (
    INVALID,
    MISSING,
    RequestError,
    check_format,
    too_much_in_request,
    wrong_request,
)
from .requests import LONGEST_VALUE

MOST_ROWS = 20_000  # more are for the command `map`
SSSOM_FORMAT = "sssom.tsv"
FORMATS: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    SSSOM_FORMAT: "text/tab-separated-values; charset=utf-8",
}
PREDICATE = "match_predicate"  # how the choice of a person is meant
TEXTS = (".csv", ".tsv", ".txt")
Text = Annotated[str, Field(max_length=LONGEST_VALUE)]


class DateCell(TypedDict):
    """A date, or a date and a time, as ISO 8601 has it."""

    date: str


JsonCell = str | bool | int | float | DateCell | None


@dataclass(frozen=True)
class Table:
    """A header, and rows with as many cells, which have the types of the file."""

    header: list[str]
    rows: list[list[JsonCell]]


class MappedTerm(BaseModel):
    """What /column/map found for a term, and what a person chose.

    Attributes:
        chosen: An id, "NIL", or "" = nothing.
        predicate: What the chosen concept is to the term; "" = not said.
    """

    model_config = ConfigDict(extra="forbid")

    found: Found
    chosen: Text = ""
    predicate: Literal["", "exact", "broad", "narrow", "related"] = ""


class MappedTable(BaseModel):
    """A table, and its terms with what was shown for them; nothing is looked up again.

    Attributes:
        terms: The term of each row; "" = it has none.
        kb: The digest of the knowledge base, as /column/map answers it.
        subject: The column with the ids of the rows, for SSSOM; "" = none.
        reviewer: Who chose, for SSSOM.
    """

    model_config = ConfigDict(extra="forbid")

    header: list[str]
    rows: list[list[JsonCell]]
    terms: list[str]
    mapped: dict[str, MappedTerm]
    kb: Text
    subject: Text = ""
    reviewer: Text = ""

    def check(self) -> None:
        """Check that the parts fit each other."""
        widths = {len(self.header), *map(len, self.rows)}
        if len(self.rows) != len(self.terms) or len(widths) > 1:
            raise wrong_request("as many `terms` as `rows`, each as wide as `header`")
        if not self.mapped.keys() >= {*self.terms} - {""}:
            raise wrong_request("each of `terms` in `mapped`")
        if self.subject and self.subject not in self.header:
            raise wrong_request("`subject` to be one of `header`")


def read_table(ending: str, data: bytes) -> Table:
    """Read a table that was dropped on the page.

    Args:
        ending: Of the name of the file, one of `ENDINGS`.

    Raises:
        RequestError: If it is no table, or has too many rows.
        SapbertError: If a library is missing.
    """
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
    """Return a cell that a browser sends back."""
    if not isinstance(cell, dict):
        return AsRead(cell) if isinstance(cell, str) else cell
    text = cell["date"]
    try:
        return (datetime if "T" in text else date).fromisoformat(text)
    except ValueError:
        raise wrong_request("dates of ISO 8601 in `rows`") from None


def write_mapped(
    kb: KnowledgeBase, format: str, table: MappedTable, *, reviewer: str = ""
) -> bytes:
    """Return a mapped table as a file.

    Args:
        format: A key of `FORMATS`.
        reviewer: Who chose, for SSSOM.

    Raises:
        SapbertError: If the format is unknown, the parts of the table do not fit, or a
            library is missing.
    """
    check_format(format, FORMATS)
    table.check()
    with TemporaryDirectory(prefix="sapbert-table-") as folder:
        path = Path(folder) / f"mapped.{format}"
        if format == SSSOM_FORMAT:
            mappings = list_mappings(kb, table, reviewer)
            with path.open("wb") as file:
                write_sssom(file, mappings, table.kb)
        else:
            k = max([1, *(len(o.found.candidates) for o in table.mapped.values())])
            header = [*map(AsRead, table.header), *list_columns(k), PREDICATE]
            write_table(path, header, list_rows(kb, table, k))
        return path.read_bytes()


def list_rows(kb: KnowledgeBase, table: MappedTable, k: int) -> Iterator[list[Cell]]:
    """Yield the rows with the columns of `map`.

    The concept is what a person chose, else a sure link; what was proposed stands in
    the columns of the candidates. A row without a term has empty cells.
    """
    columns, width = list_columns(k), len(list_columns(0))
    place = columns.index(CHOSEN)
    for row, term in zip(table.rows, table.terms, strict=True):
        cells: list[Cell] = [None] * (len(columns) + 1)
        if term:
            one = table.mapped[term]
            answer = apply_choice(kb, term, one.found, one.chosen)
            if not one.chosen:
                answer = replace(answer, cui=one.found.final)
            cells = list_cells(term, answer, 0)
            cells += [*list_cells(term, one.found, k)[width:], one.predicate]
            if one.predicate in ("", "exact"):  # `teach` reads it
                cells[place] = one.chosen
        yield [*map(from_json, row), *cells]


def list_mappings(
    kb: KnowledgeBase, table: MappedTable, reviewer: str
) -> Iterator[list[Cell] | None]:
    """Yield the mapping of each row, as SSSOM has it."""
    today = datetime.now(tz=UTC).date()
    for row, term in zip(table.rows, table.terms, strict=True):
        if not term:
            continue
        one = table.mapped[term]
        subject = ""
        if table.subject:
            cell = from_json(row[table.header.index(table.subject)])
            subject = make_subject(read_cell(cell), table.subject)
        found = apply_choice(kb, term, one.found, one.chosen)
        predicate = one.predicate
        yield list_mapping(
            term, found, today, reviewer, subject=subject, predicate=predicate
        )
