"""Columns of terms that are kept, and what reviewers choose, in the file of reviews.

A column is kept as it was mapped: table, terms, and what was found for each. Choices
are only added, as decisions are; the last one of a reviewer on a term counts.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ...formats.gold import NIL
from ...mapping.lookup import Found
from ..columns import MOST_ROWS, JsonCell
from ..lookup import FoundConcept
from ..problems import wrong_request
from .decisions import LONGEST_NAME, Name, Request
from .store import ReviewStore, current_time, hash_text

LONGEST_WHY = 1_000  # characters of a sentence
MOST_VERDICTS = MOST_ROWS  # of a term, which may be in all rows
Short = Annotated[str, Field(max_length=LONGEST_NAME)]
# The last choice of a reviewer on a term counts.
COUNTS = """reviewer = :reviewer AND NOT EXISTS (
    SELECT 1 FROM choices AS newer WHERE newer.of_column = choices.of_column
    AND newer.term = choices.term AND newer.reviewer = choices.reviewer
    AND newer.number > choices.number
) AND chosen IS NOT NULL"""


class Sheet(Request):
    """A table as it was read.

    Attributes:
        place: Of the column with the terms.
        subject: The name of the column with the ids of the rows; "" = none.
    """

    header: list[str]
    rows: Annotated[list[list[JsonCell]], Field(max_length=MOST_ROWS)]
    place: Annotated[int, Field(ge=0)]
    subject: str = ""


class TermVerdict(Request):
    """Whether an id of the table is right for its term."""

    id: Short
    verdict: Short
    why: Annotated[str, Field(max_length=LONGEST_WHY)]


class KeptTerm(BaseModel):
    """A term of a column, what was found for it, and verdicts on ids of its rows."""

    term: str
    found: Found
    verdicts: Annotated[list[TermVerdict], Field(max_length=MOST_VERDICTS)] = []


class NewColumn(Request):
    """A column to keep, as it was mapped.

    Attributes:
        kb: The digest of the knowledge base, as /column/map answers it.
        terms: The different terms of the rows, in their order.
    """

    name: Name
    kb: Short
    sheet: Sheet
    terms: Annotated[list[KeptTerm], Field(min_length=1, max_length=MOST_ROWS)]

    def check(self) -> None:
        """Check that the parts fit each other."""
        sheet, width = self.sheet, len(self.sheet.header)
        if sheet.place >= width or {*map(len, sheet.rows)} - {width}:
            raise wrong_request("`rows` as wide as `header`, with `place` inside")
        if sheet.subject and sheet.subject not in sheet.header:
            raise wrong_request("`subject` to be one of `header`")
        if len({one.term for one in self.terms}) < len(self.terms):
            raise wrong_request("each of `terms` once")


class Choice(Request):
    """What a reviewer says of a term.

    Attributes:
        term: Its place in `terms` of the column.
        chosen: An id, "NIL" = no concept of the vocabulary, or null to withdraw the
            choice before.
        predicate: What the chosen concept is to the term; "" = not said.
        in_bulk: The concept was sure, and accepted with others: it is no choice of a
            person in a download.
    """

    reviewer: Name
    term: Annotated[int, Field(ge=0, lt=MOST_ROWS)]
    chosen: Name | None
    predicate: Literal["", "exact", "broad", "narrow", "related"] = ""
    in_bulk: bool = False


class NewChoice(Choice):
    """A choice to write; `key` is a random text, with which it is written once."""

    key: Annotated[str, Field(pattern=r"^[\w-]{8,64}$")]


class KeptColumn(BaseModel):
    """A column, and what a reviewer has chosen.

    Attributes:
        concepts: Those that were chosen, which terms may not have as candidates.
    """

    id: str
    name: str
    kb: str
    sheet: Sheet
    terms: list[KeptTerm]
    decisions: list[Choice]
    concepts: list[FoundConcept]


@dataclass(frozen=True)
class ColumnCount:
    """A column without its table.

    Attributes:
        terms: Their number.
        decisions: Number of the terms that a reviewer has decided.
    """

    id: str
    name: str
    time: str
    terms: int
    decisions: int


def add_column(store: ReviewStore, column: NewColumn) -> str:
    """Keep a column, and return its id; an equal one is that column."""
    sheet = column.sheet.model_dump_json()
    id = hash_text(column.name, column.kb, sheet)
    with store.transaction() as connection:
        is_new = connection.execute(
            "INSERT OR IGNORE INTO columns (id, name, time, kb, sheet) "
            "VALUES (?, ?, ?, ?, ?)",
            (id, column.name, current_time(), column.kb, sheet),
        ).rowcount
        if is_new:
            connection.executemany(
                "INSERT INTO terms VALUES (?, ?, ?)",
                (
                    (id, number, one.model_dump_json())
                    for number, one in enumerate(column.terms)
                ),
            )
            store.check_room(connection)
    return id


def list_columns(store: ReviewStore, reviewer: str | None) -> list[ColumnCount]:
    """Return the columns, the oldest first, with what a reviewer has decided."""
    rows = store.query(
        "SELECT id, name, time, "
        "(SELECT count(*) FROM terms WHERE of_column = id), "
        f"(SELECT count(*) FROM choices WHERE of_column = id AND {COUNTS}) "
        "FROM columns ORDER BY number",
        {"reviewer": reviewer},
    )
    return [ColumnCount(*row) for row in rows]


def latest_choices(store: ReviewStore, id: str, reviewer: str | None) -> list[Choice]:
    """Return the choices of a reviewer that count, by term."""
    rows = store.query(
        "SELECT reviewer, term, chosen, predicate, in_bulk FROM choices "
        f"WHERE of_column = :id AND {COUNTS} ORDER BY term",
        {"id": id, "reviewer": reviewer},
    )
    return [
        Choice.model_construct(
            reviewer=reviewer,
            term=term,
            chosen=chosen,
            predicate=predicate,
            in_bulk=bool(in_bulk),
        )
        for reviewer, term, chosen, predicate, in_bulk in rows
    ]


def read_column(store: ReviewStore, id: str) -> tuple[str, str, str, list[str]] | None:
    """Return name and `kb` of a column, and its sheet and terms, which are JSON.

    They are not parsed: 20,000 terms have some 20 MB of candidates.
    """
    rows = store.query("SELECT name, kb, sheet FROM columns WHERE id = ?", (id,))
    if not rows:
        return None
    sql = "SELECT kept FROM terms WHERE of_column = ? ORDER BY number"
    return *rows[0], [kept for (kept,) in store.query(sql, (id,))]


def read_candidates(store: ReviewStore, id: str, term: int) -> set[str] | None:
    """Return the ids of the candidates of a term; None = there is no such term."""
    sql = "SELECT kept FROM terms WHERE of_column = ? AND number = ?"
    rows = store.query(sql, (id, term))
    if not rows:
        return None
    found: Any = json.loads(rows[0][0])["found"]
    return {NIL, *(one["cui"] for one in found["candidates"])}


def add_choices(store: ReviewStore, id: str, choices: Iterable[NewChoice]) -> None:
    """Append choices, all or none; one with a known key is not written again.

    What is accepted in bulk is not written over a choice that a person has made: the
    page that accepts it may not know of it yet.
    """
    rows = [{"id": id, "time": current_time(), **dict(one)} for one in choices]
    with store.transaction() as connection:
        connection.executemany(
            "INSERT OR IGNORE INTO choices "
            "(time, key, reviewer, of_column, term, chosen, predicate, in_bulk) SELECT "
            ":time, :key, :reviewer, :id, :term, :chosen, :predicate, :in_bulk "
            "WHERE NOT :in_bulk OR NOT EXISTS (SELECT 1 FROM choices "
            f"WHERE of_column = :id AND term = :term AND NOT in_bulk AND {COUNTS})",
            rows,
        )


def delete_column(store: ReviewStore, id: str) -> bool:
    """Remove a column and its choices for good; return whether it was there."""
    with store.transaction() as connection:
        sql = "DELETE FROM columns WHERE id = ?"
        return connection.execute(sql, (id,)).rowcount > 0
