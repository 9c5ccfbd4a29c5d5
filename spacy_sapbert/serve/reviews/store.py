"""The decisions of reviewers, in a file of SQLite to which is only appended.

A decision is on the disk before its request is answered (`synchronous=EXTRA`), so a
process that is killed loses none that was accepted. The file has the texts of the
documents; only its owner can read it.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import disk_usage
from typing import Any

from typing_extensions import TypedDict

from ...errors import Errors, SapbertError
from ...io.forks import ProcessLock
from ..problems import RequestError

BUSY, NO_ROOM = 503, 507  # statuses of what cannot be written
LEAST_FREE = 1 << 20  # bytes on the disk of a service that is ready
VERSION = 1  # of the tables
SCHEMA = """
CREATE TABLE documents (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, time TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, time TEXT NOT NULL,
    reviewer TEXT NOT NULL, document TEXT NOT NULL REFERENCES documents (id),
    "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, label TEXT NOT NULL,
    chosen TEXT, shown TEXT NOT NULL, kb TEXT NOT NULL
);
CREATE INDEX decisions_by_document ON decisions (document, reviewer);
CREATE TRIGGER documents_stay BEFORE UPDATE ON documents
    BEGIN SELECT raise(ABORT, 'documents are only added'); END;
CREATE TRIGGER documents_remain BEFORE DELETE ON documents
    BEGIN SELECT raise(ABORT, 'documents are only added'); END;
CREATE TRIGGER decisions_stay BEFORE UPDATE ON decisions
    BEGIN SELECT raise(ABORT, 'decisions are only added'); END;
CREATE TRIGGER decisions_remain BEFORE DELETE ON decisions
    BEGIN SELECT raise(ABORT, 'decisions are only added'); END;
"""
# The last decision of a reviewer on a mention counts.
LATEST = """
SELECT number, time, reviewer, document, "start", "end", label, chosen, shown, kb
FROM decisions WHERE number IN (
    SELECT max(number) FROM decisions GROUP BY reviewer, document, "start", "end"
) AND chosen IS NOT NULL
"""


@dataclass(frozen=True)
class ReviewedDocument:
    """A document that was reviewed; its id is computed from its text."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class DocumentCount:
    """A document without its text, and the number of its decisions that count."""

    id: str
    name: str
    characters: int
    time: str
    decisions: int


class ShownCandidate(TypedDict):
    """A candidate that a reviewer saw."""

    cui: str
    score: float | None


@dataclass(frozen=True)
class Decision:
    """What a reviewer chose for a mention.

    Attributes:
        start, end: Offsets in characters.
        chosen: Id of a concept, "NIL", or None = the decision before is withdrawn.
        kb: Digest of the knowledge base that they come from.
    """

    number: int
    time: str
    reviewer: str
    document: str
    start: int
    end: int
    label: str
    chosen: str | None
    shown: list[ShownCandidate]
    kb: str


def document_id(text: str) -> str:
    """Return the id of a text: 32 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def current_time() -> str:
    """Return the time, with its zone."""
    return datetime.now(tz=UTC).isoformat(timespec="milliseconds")


def read_shown(text: str) -> list[ShownCandidate]:
    """Read the candidates that a reviewer saw; a score that is no number is None."""
    shown: list[ShownCandidate] = json.loads(text, parse_constant=lambda _: None)
    return shown


class ReviewStore:
    """Reads and appends decisions; all threads share one connection.

    Args:
        path: The file; it is created if it is missing.
        most_documents: That are kept; more are refused.

    Raises:
        SapbertError: If it is something else, or cannot be written.
    """

    def __init__(self, path: Path, *, most_documents: int = 100_000) -> None:
        self.path = path
        self.most_documents = most_documents
        self.lock = ProcessLock()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self.connection = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None
            )
            self.prepare()
            self.opened = path.stat()
        except (OSError, sqlite3.Error) as error:
            raise SapbertError(Errors.E466.format(path=path, reason=error)) from None

    def prepare(self) -> None:
        """Create the tables of a new file, and check those of another."""
        run = self.connection.execute
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA journal_mode = DELETE")  # one file has all, so a copy too
        run("PRAGMA synchronous = EXTRA")  # also that the journal is deleted
        run("PRAGMA foreign_keys = ON")
        ((version,),) = run("PRAGMA user_version").fetchall()
        ((tables,),) = run("SELECT count(*) FROM sqlite_master").fetchall()
        if not tables:
            self.connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif version != VERSION:
            raise sqlite3.DatabaseError("it has other tables")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; it is on the disk at the end.

        Raises:
            RequestError: If it cannot be written, or is no longer at its path.
        """
        with self.lock:
            self.check_path()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self.connection
                except BaseException:
                    if self.connection.in_transaction:  # SQLite may have ended it
                        self.connection.execute("ROLLBACK")
                    raise
                self.connection.execute("COMMIT")
            except sqlite3.Error as error:
                full = error.sqlite_errorname == "SQLITE_FULL"
                status = NO_ROOM if full else BUSY
                raise RequestError(Errors.E491.format(reason=error), status) from None

    def check_path(self) -> None:
        """Check that the open file is the one at its path, so that it is kept.

        Raises:
            RequestError: If it was moved, deleted or replaced.
        """
        try:
            same = os.path.samestat(self.path.stat(), self.opened)
        except OSError:
            same = False
        if not same:
            raise RequestError(Errors.E490, 503)

    def check_ready(self) -> None:
        """Check that a decision can be written now, without writing one.

        Raises:
            RequestError: If the file is gone, read-only or locked, or the disk is full.
        """
        with self.transaction():
            free = disk_usage(self.path.parent).free
        if free < LEAST_FREE:
            raise RequestError(Errors.E491.format(reason="the disk is full"), NO_ROOM)

    def query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a statement."""
        with self.lock:
            return self.connection.execute(sql, values).fetchall()

    def add_document(self, name: str, text: str) -> str:
        """Add a document unless it is there, and return its id."""
        id = document_id(text)
        with self.transaction() as connection:
            ((kept,),) = connection.execute("SELECT count(*) FROM documents")
            if kept >= self.most_documents and self.document(id) is None:
                text = Errors.E488.format(limit=self.most_documents)
                raise RequestError(text, NO_ROOM)
            connection.execute(
                "INSERT OR IGNORE INTO documents VALUES (?, ?, ?, ?)",
                (id, name, text, current_time()),
            )
        return id

    def document(self, id: str) -> ReviewedDocument | None:
        """Return a document; None if there is none."""
        rows = self.query("SELECT id, name, text FROM documents WHERE id = ?", (id,))
        return ReviewedDocument(*rows[0]) if rows else None

    def add_decision(
        self,
        *,
        key: str,
        reviewer: str,
        document: str,
        start: int,
        end: int,
        label: str,
        chosen: str | None,
        shown: list[ShownCandidate],
        kb: str,
    ) -> None:
        """Append a decision; see `Decision`.

        Args:
            key: Of the request: one that is repeated is written once.
        """
        values = (key, current_time(), reviewer, document, start, end, label, chosen)
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO decisions (key, time, reviewer, document, "
                '"start", "end", label, chosen, shown, kb) '
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, json.dumps(shown), kb),
            )

    def latest(
        self, *, document: str | None = None, reviewer: str | None = None
    ) -> list[Decision]:
        """Return the decisions that count, by document, reviewer and place."""
        sql, values = LATEST, []
        for column, value in (("document", document), ("reviewer", reviewer)):
            if value is not None:
                sql += f" AND {column} = ?"
                values.append(value)
        rows = self.query(
            f'{sql} ORDER BY document, reviewer, "start", "end"', (*values,)
        )
        return [Decision(*(*row[:8], read_shown(row[8]), row[9])) for row in rows]

    def documents(self) -> list[DocumentCount]:
        """Return the documents, the oldest first."""
        counts: dict[str, int] = {}
        for decision in self.latest():
            counts[decision.document] = counts.get(decision.document, 0) + 1
        sql = "SELECT id, name, length(text), time FROM documents ORDER BY time, id"
        return [
            DocumentCount(*(*row, counts.get(row[0], 0))) for row in self.query(sql)
        ]

    def reviewers(self) -> list[str]:
        """Return the names of the reviewers."""
        sql = "SELECT DISTINCT reviewer FROM decisions ORDER BY reviewer"
        return [name for (name,) in self.query(sql)]

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.connection.close()
