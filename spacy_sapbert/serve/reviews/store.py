"""The decisions of reviewers, in a file of SQLite to which is only appended.

A decision is on the disk before its request is answered (`synchronous=EXTRA`), so a
process that is killed loses none that was accepted. The file has the texts of the
documents; only its owner can read it. A document is removed only as a whole, with all
that was decided on it, when a patient asks for it.
"""

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import disk_usage
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from ...errors import SapbertError
from ...io.forks import ProcessLock
from ..problems import RequestError

BUSY, NO_ROOM = 503, 507  # statuses of what cannot be written
LEAST_FREE = 1 << 20  # bytes on the disk of a service that is ready
VERSION = 3  # of the tables
NO_MENTION = "NO_MENTION"  # chosen for a text that is not a mention
AGREED = "agreed"  # stands for a reviewer in exports: what holds of a document
# `proposals` has the mentions that a document came with, `links` what the knowledge
# base says of its mentions: it is computed again for another version.
SCHEMA = """
CREATE TABLE documents (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, time TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, time TEXT NOT NULL,
    reviewer TEXT NOT NULL, document TEXT NOT NULL REFERENCES documents (id),
    "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, label TEXT NOT NULL,
    chosen TEXT, shown TEXT NOT NULL, kb TEXT NOT NULL, settles INTEGER NOT NULL
);
CREATE INDEX decisions_by_document ON decisions (document, reviewer);
CREATE TABLE done (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, reviewer TEXT NOT NULL,
    document TEXT NOT NULL REFERENCES documents (id), done INTEGER NOT NULL
);
CREATE TABLE proposals (
    document TEXT PRIMARY KEY REFERENCES documents (id), spans TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE links (
    document TEXT PRIMARY KEY REFERENCES documents (id), kb TEXT NOT NULL,
    mentions TEXT NOT NULL
) WITHOUT ROWID;
"""
REMAIN = (
    "CREATE TRIGGER documents_remain BEFORE DELETE ON documents "
    "BEGIN SELECT raise(ABORT, 'documents are only added'); END;",
    "CREATE TRIGGER decisions_remain BEFORE DELETE ON decisions "
    "BEGIN SELECT raise(ABORT, 'decisions are only added'); END;",
)
TRIGGERS = f"""
CREATE TRIGGER documents_stay BEFORE UPDATE ON documents
    BEGIN SELECT raise(ABORT, 'documents are only added'); END;
CREATE TRIGGER decisions_stay BEFORE UPDATE ON decisions
    BEGIN SELECT raise(ABORT, 'decisions are only added'); END;
{"".join(REMAIN)}
"""
OF_DOCUMENTS = ("done", "proposals", "links", "decisions")  # tables
# The last decision of a reviewer on a mention counts, and the last one that settles it.
LATEST = """
SELECT number, time, reviewer, document, "start", "end", label, chosen, shown, kb,
    settles
FROM decisions WHERE number IN (
    SELECT max(number) FROM decisions
    GROUP BY iif(settles, NULL, reviewer), settles, document, "start", "end"
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
    """A document without its text.

    Attributes:
        mentions: Number that was found in it; None = they were not looked for yet.
        decisions: Number that counts, of a reviewer or of all.
        done: The reviewers who have done it.
    """

    id: str
    name: str
    characters: int
    time: str
    mentions: int | None
    decisions: int
    done: list[str]


class Span(NamedTuple):
    """A mention that a document came with; `cui` = the proposed concept, or ""."""

    start: int
    end: int
    label: str
    cui: str


class ShownCandidate(TypedDict):
    """A candidate that a reviewer saw."""

    cui: str
    score: float | None


@dataclass(frozen=True)
class Decision:
    """What a reviewer chose for a mention.

    Attributes:
        start, end: Offsets in characters.
        chosen: Id of a concept, "NIL", `NO_MENTION`, or None = the decision before is
            withdrawn.
        kb: Digest of the knowledge base that they come from.
        settles: It says what holds where reviewers differ, and is no answer of
            `reviewer`, who only wrote it.
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
    settles: bool


class NewDecision(TypedDict):
    """A decision to write; see `Decision`.

    Attributes:
        key: Of the request: one that is repeated is written once.
    """

    key: str
    reviewer: str
    document: str
    start: int
    end: int
    label: str
    chosen: str | None
    shown: list[ShownCandidate]
    kb: str
    settles: bool


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
            raise SapbertError(
                "E466",
                f"{path}: Expected a file of reviews that can be written, but got: "
                f"{error}. Pass another `--reviews`.",
            ) from None

    def prepare(self) -> None:
        """Create the tables of a new file, and check those of another."""
        run = self.connection.execute
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA journal_mode = DELETE")  # one file has all, so a copy too
        run("PRAGMA synchronous = EXTRA")  # also that the journal is deleted
        run("PRAGMA foreign_keys = ON")
        run("PRAGMA secure_delete = ON")  # what is removed is overwritten
        ((version,),) = run("PRAGMA user_version").fetchall()
        ((tables,),) = run("SELECT count(*) FROM sqlite_master").fetchall()
        if not tables:
            self.connection.executescript(
                f"BEGIN; {SCHEMA} {TRIGGERS} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif version != VERSION:
            raise sqlite3.DatabaseError("it was made by another version")

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
                raise reviews_not_written(error, status) from None

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
            raise RequestError(
                "E490",
                "Expected the file of reviews at its path, but it was moved, deleted "
                "or replaced while it is open, so nothing is written. Put it back, "
                "or start the service again.",
                503,
            )

    def check_ready(self) -> None:
        """Check that a decision can be written now, without writing one.

        Raises:
            RequestError: If the file is gone, read-only or locked, or the disk is full.
        """
        with self.transaction():
            free = disk_usage(self.path.parent).free
        if free < LEAST_FREE:
            raise reviews_not_written("the disk is full", NO_ROOM)

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
                raise RequestError(
                    "E488",
                    f"Expected at most {self.most_documents:,} documents to review, "
                    "but the next is one more. Delete documents, or start the "
                    "service with a higher `--limit kept=NUMBER`.",
                    NO_ROOM,
                )
            connection.execute(
                "INSERT OR IGNORE INTO documents VALUES (?, ?, ?, ?)",
                (id, name, text, current_time()),
            )
        return id

    def document(self, id: str) -> ReviewedDocument | None:
        """Return a document; None if there is none."""
        rows = self.query("SELECT id, name, text FROM documents WHERE id = ?", (id,))
        return ReviewedDocument(*rows[0]) if rows else None

    def add_decisions(self, decisions: Iterable[NewDecision]) -> None:
        """Append decisions, all or none; one with a known key is not written again."""
        rows = [
            (
                *(one["key"], current_time(), one["reviewer"], one["document"]),
                *(one["start"], one["end"], one["label"], one["chosen"]),
                *(json.dumps(one["shown"]), one["kb"], one["settles"]),
            )
            for one in decisions
        ]
        with self.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO decisions (key, time, reviewer, document, "
                '"start", "end", label, chosen, shown, kb, settles) '
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def latest(
        self, *, document: str | None = None, reviewer: str | None = None
    ) -> list[Decision]:
        """Return the decisions that count, by document, reviewer and place.

        Args:
            reviewer: Whose answers are returned; None = those of all, and what settles.
        """
        sql, values = LATEST, []
        if reviewer is not None:
            sql += " AND NOT settles"
        for column, value in (("document", document), ("reviewer", reviewer)):
            if value is not None:
                sql += f" AND {column} = ?"
                values.append(value)
        rows = self.query(
            f'{sql} ORDER BY document, reviewer, "start", "end"', (*values,)
        )
        return [
            Decision(*(*row[:8], read_shown(row[8]), row[9], bool(row[10])))
            for row in rows
        ]

    def documents(self, reviewer: str | None = None) -> list[DocumentCount]:
        """Return the documents, the oldest first.

        Args:
            reviewer: Whose decisions are counted; None = all.
        """
        counts = Counter(one.document for one in self.latest(reviewer=reviewer))
        done = self.done()
        sql = (
            "SELECT id, name, length(text), time, json_array_length(mentions) "
            "FROM documents LEFT JOIN links ON document = id ORDER BY time, id"
        )
        return [
            DocumentCount(*(*row, counts[row[0]], done.get(row[0], [])))
            for row in self.query(sql)
        ]

    def reviewers(self) -> list[str]:
        """Return the names of those who have answered."""
        sql = (
            "SELECT DISTINCT reviewer FROM decisions WHERE NOT settles "
            "ORDER BY reviewer"
        )
        return [name for (name,) in self.query(sql)]

    def set_done(self, document: str, reviewer: str, done: bool) -> None:
        """Note that a reviewer has done a document, or has to go on."""
        with self.transaction() as connection:
            connection.execute(
                "INSERT INTO done (time, reviewer, document, done) VALUES (?, ?, ?, ?)",
                (current_time(), reviewer, document, done),
            )

    def done(self) -> dict[str, list[str]]:
        """Return who has done each document."""
        sql = (
            "SELECT document, reviewer FROM done WHERE done AND number IN "
            "(SELECT max(number) FROM done GROUP BY reviewer, document) "
            "ORDER BY document, reviewer"
        )
        found: dict[str, list[str]] = {}
        for document, reviewer in self.query(sql):
            found.setdefault(document, []).append(reviewer)
        return found

    def set_proposals(self, document: str, spans: Iterable[Span]) -> None:
        """Keep the mentions that a document came with, instead of those before."""
        text = json.dumps([*spans])
        with self.transaction() as connection:
            connection.execute("DELETE FROM links WHERE document = ?", (document,))
            connection.execute(
                "INSERT OR REPLACE INTO proposals VALUES (?, ?)", (document, text)
            )

    def proposals(self, document: str) -> list[Span] | None:
        """Return the mentions that a document came with; None = it came without."""
        sql = "SELECT spans FROM proposals WHERE document = ?"
        rows = self.query(sql, (document,))
        return [Span(*span) for span in json.loads(rows[0][0])] if rows else None

    def set_links(self, links: Mapping[str, list[Any]], kb: str) -> None:
        """Keep what a knowledge base says of the mentions of documents.

        Args:
            links: The mentions by id of the document.
            kb: Digest of the knowledge base.
        """
        rows = [(id, kb, json.dumps(found)) for id, found in links.items()]
        with self.transaction() as connection:
            sql = "INSERT OR REPLACE INTO links VALUES (?, ?, ?)"
            connection.executemany(sql, rows)

    def links(self, document: str, kb: str) -> list[Any] | None:
        """Return the mentions of a document; None = they are not known for the `kb`."""
        sql = "SELECT mentions FROM links WHERE document = ? AND kb = ?"
        rows = self.query(sql, (document, kb))
        return json.loads(rows[0][0]) if rows else None

    def unlinked(self, kb: str) -> list[str]:
        """Return the ids of the documents without links to a knowledge base."""
        sql = (
            "SELECT id FROM documents LEFT JOIN links ON document = id AND kb = ? "
            "WHERE document IS NULL ORDER BY time, id"
        )
        return [id for (id,) in self.query(sql, (kb,))]

    def delete_document(self, id: str, *, kb: str) -> None:
        """Remove a document for good, with all that was decided on it.

        Links of other documents may have its texts as names that were taught.

        Args:
            kb: Digest of the knowledge base in use; links to others are removed.
        """
        with self.transaction() as connection:
            connection.execute("DROP TRIGGER documents_remain")
            connection.execute("DROP TRIGGER decisions_remain")
            for table in OF_DOCUMENTS:
                connection.execute(f"DELETE FROM {table} WHERE document = ?", (id,))
            connection.execute("DELETE FROM links WHERE kb != ?", (kb,))
            connection.execute("DELETE FROM documents WHERE id = ?", (id,))
            for trigger in REMAIN:
                connection.execute(trigger)

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.connection.close()


def reviews_not_written(reason: object, status: int) -> RequestError:
    return RequestError(
        "E491",
        f"Expected to write the file of reviews, but got: {reason}. Make room on its "
        "disk or end what uses it, and send the request again.",
        status,
    )
