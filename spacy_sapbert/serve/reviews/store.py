"""The documents to review and the decisions on them, in a file of SQLite.

Columns of terms are in the same file; see `kept_columns`.

A decision is on the disk before its request is answered (`synchronous=EXTRA`), so a
process that is killed loses none that was accepted. Decisions are only added; the last
one counts. The file has the texts of the documents; only its owner can read it. A
document is removed only as a whole, with all that was decided on it, when a patient
asks for it.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from shutil import disk_usage
from typing import Any, NamedTuple, TypeVar

from ...errors import SapbertError
from ...io.forks import ProcessLock
from ..problems import RequestError
from .decisions import OPEN, Decision, NewDecision, NewRemark, Remark

T = TypeVar("T")
BUSY, NO_ROOM = 503, 507  # statuses of what cannot be written
LEAST_FREE = 1 << 20  # bytes on the disk of a service that is ready
AT_ONCE = 1_000  # documents that are read together
VERSION = 9  # of the tables
OF = "TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE"
# `same` is equal for equal texts. `spans` has the mentions that a document came with,
# `mentions` what the knowledge base `kb` says of its mentions. `done` has who has
# done a document. `filter` is JSON, of the part of the vocabulary that its mentions
# may be linked to; "" = all of it. `sheet` and `kept` are JSON: a table as it was
# read, and a term with what was found for it.
SCHEMA = f"""
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    same TEXT NOT NULL, time TEXT NOT NULL, text TEXT NOT NULL, spans TEXT,
    filter TEXT NOT NULL, kb TEXT, mentions TEXT
);
CREATE INDEX documents_by_text ON documents (same);
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
    reviewer TEXT NOT NULL, document {OF},
    "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, label TEXT NOT NULL,
    chosen TEXT, settles INTEGER NOT NULL, shown TEXT NOT NULL, kb TEXT NOT NULL
);
CREATE INDEX decisions_by_place ON decisions (document, "start", "end");
CREATE TABLE remarks (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
    reviewer TEXT NOT NULL, document {OF}, "start" INTEGER NOT NULL,
    "end" INTEGER NOT NULL, context TEXT, comment TEXT NOT NULL, asks INTEGER NOT NULL
);
CREATE INDEX remarks_by_place ON remarks (document, "start", "end");
CREATE TABLE done (
    document {OF}, reviewer TEXT, PRIMARY KEY (document, reviewer)
) WITHOUT ROWID;
CREATE TABLE columns (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    time TEXT NOT NULL, kb TEXT NOT NULL, sheet TEXT NOT NULL
);
CREATE TABLE terms (
    of_column TEXT NOT NULL REFERENCES columns (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, kept TEXT NOT NULL, PRIMARY KEY (of_column, number)
) WITHOUT ROWID;
CREATE TABLE choices (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
    reviewer TEXT NOT NULL, of_column TEXT NOT NULL, term INTEGER NOT NULL,
    chosen TEXT, predicate TEXT NOT NULL, in_bulk INTEGER NOT NULL,
    FOREIGN KEY (of_column, term) REFERENCES terms ON DELETE CASCADE
);
CREATE INDEX choices_by_term ON choices (of_column, term);
"""
COLUMNS = ", ".join(f'"{name}"' for name in Decision.model_fields)
WRITTEN = ", ".join(f'"{name}"' for name in NewDecision.model_fields)
VALUES = ", ".join(f":{name}" for name in NewDecision.model_fields)
REMARKED = ", ".join(f'"{name}"' for name in Remark.model_fields)
LAST_REMARKS = """SELECT max(number) FROM remarks
GROUP BY document, "start", "end", reviewer"""
# Mentions at which somebody asks a colleague, by document
QUESTIONS = f"""SELECT document, count(*) FROM (
    SELECT DISTINCT document, "start", "end" FROM remarks
    WHERE asks AND number IN ({LAST_REMARKS})
) GROUP BY document"""
NOTED = ", ".join(f'"{name}"' for name in NewRemark.model_fields)
NOTED_VALUES = ", ".join(f":{name}" for name in NewRemark.model_fields)
# The last decision of a reviewer on a mention counts, and the last one that settles it.
COUNTS = """chosen IS NOT NULL
AND (:reviewer IS NULL OR (reviewer = :reviewer AND NOT settles))
AND NOT EXISTS (
    SELECT 1 FROM decisions AS newer WHERE newer.document = decisions.document
    AND newer."start" = decisions."start" AND newer."end" = decisions."end"
    AND newer.settles = decisions.settles
    AND (newer.settles OR newer.reviewer = decisions.reviewer)
    AND newer.number > decisions.number
)"""


@dataclass(frozen=True)
class ReviewedDocument:
    """A document that was reviewed; its id is computed from its name and text."""

    id: str
    name: str
    text: str
    filter: str = ""  # in JSON; "" = all concepts


class Span(NamedTuple):
    """A mention that a document came with; `cui` = the proposed concept, or ""."""

    start: int
    end: int
    label: str
    cui: str


class NewNote(NamedTuple):
    """A document to add.

    Attributes:
        spans: The mentions that it came with, if it has any.
        filter: The part of the vocabulary that its mentions may be linked to, as JSON
            of `Filter`; "" = all of it.
    """

    name: str
    text: str
    spans: list[Span] | None = None
    filter: str = ""


@dataclass
class Added:
    """What became of documents that were read.

    Attributes:
        documents: Their ids.
        read: Number of documents.
        mentions: Number of the mentions that they came with.
        equal_texts: Of the documents, those whose text another one has too; they are
            kept apart.
        unknown_ids: Of the mentions, those whose id the knowledge base does not have.
        skipped: Of the documents, those that were there, with the same name and text.
    """

    documents: list[str] = field(default_factory=list)
    read: int = 0
    mentions: int = 0
    equal_texts: int = 0
    unknown_ids: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class DocumentCount:
    """A document without its text.

    Attributes:
        mentions: Number that was found in it; None = they were not looked for yet.
        decisions: Number that counts, of a reviewer or of all.
        done: The reviewers who have done it.
        questions: Number of the mentions at which somebody asks a colleague.
    """

    id: str
    name: str
    time: str
    mentions: int | None
    decisions: int
    done: list[str]
    questions: int


def hash_text(*parts: str) -> str:
    """Return 32 hexadecimal digits that are equal for equal texts."""
    data = json.dumps(parts, ensure_ascii=False).encode("utf8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def current_time() -> str:
    """Return the time, with its zone."""
    return datetime.now(tz=UTC).isoformat(timespec="milliseconds")


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
                f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
            )
        elif version != VERSION:
            raise sqlite3.DatabaseError("it was made by another version")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing; it is on the disk at the end."""
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
        """Check that the open file is the one at its path, so that it is kept."""
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
        """Check that a decision can be written now, without writing one."""
        with self.transaction():
            free = disk_usage(self.path.parent).free
        if free < LEAST_FREE:
            raise reviews_not_written("the disk is full", NO_ROOM)

    def query(self, sql: str, values: Any = ()) -> list[Any]:
        """Return the rows of a statement."""
        with self.lock:
            try:
                return self.connection.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                raise reviews_not_written(error, BUSY) from None

    def add_documents(self, notes: Iterable[NewNote]) -> Added:
        """Add documents, all or none; one with the name and text of another is that."""
        added = Added()
        ids: set[str] = set()
        with self.transaction() as connection:
            for note in notes:
                same = hash_text(note.text)
                # Two notes that are equal in all have two names.
                tries = (f"{note.name} ({n})" if n > 1 else note.name for n in count(1))
                name, id = next(
                    (name, id)
                    for name in tries
                    if (id := hash_text(name, note.text)) not in ids
                )
                ids.add(id)
                is_new = connection.execute(
                    "INSERT OR IGNORE INTO documents "
                    "(id, name, text, same, time, filter) VALUES (?, ?, ?, ?, ?, ?)",
                    (id, name, note.text, same, current_time(), note.filter),
                ).rowcount
                connection.execute(
                    "UPDATE documents SET filter = :filter, kb = NULL, mentions = NULL "
                    "WHERE id = :id AND filter != :filter",
                    {"id": id, "filter": note.filter},
                )
                ((equal,),) = connection.execute(
                    "SELECT count(*) FROM documents WHERE same = ?", (same,)
                )
                added.documents.append(id)
                added.read += 1
                added.skipped += not is_new
                added.equal_texts += equal > 1
                if note.spans is not None:
                    added.mentions += len(note.spans)
                    connection.execute(
                        "UPDATE documents SET spans = :spans, kb = NULL, mentions = "
                        "NULL WHERE id = :id AND spans IS NOT :spans",
                        {"id": id, "spans": json.dumps(note.spans)},
                    )
            self.check_room(connection)
        return added

    def check_room(self, connection: sqlite3.Connection) -> None:
        """Check that not too many documents and columns are kept."""
        sql = "SELECT (SELECT count(*) FROM documents) + (SELECT count(*) FROM columns)"
        ((kept,),) = connection.execute(sql)
        if (most := self.most_documents) < kept:
            raise RequestError(
                "E488",
                f"Expected at most {most:,} documents and columns to review, but the "
                "next is one more. Delete some, or start the service with a higher "
                "`--limit kept=NUMBER`.",
                NO_ROOM,
            )

    def document(self, id: str) -> ReviewedDocument | None:
        """Return a document; None if there is none."""
        rows = self.query(
            "SELECT id, name, text, filter FROM documents WHERE id = ?", (id,)
        )
        return ReviewedDocument(*rows[0]) if rows else None

    def with_documents(
        self, by_id: Iterable[tuple[str, T]]
    ) -> Iterator[tuple[ReviewedDocument, T]]:
        """Yield documents in place of their ids, without those that were removed."""
        for id, value in by_id:
            if (document := self.document(id)) is not None:
                yield document, value

    def add_decisions(self, decisions: Iterable[NewDecision]) -> None:
        """Append decisions, all or none; one with a known key is not written again."""
        rows = [
            {**(row := one.model_dump()), "shown": json.dumps(row["shown"])}
            for one in decisions
        ]
        with self.transaction() as connection:
            connection.executemany(
                f"INSERT OR IGNORE INTO decisions (time, {WRITTEN}) "
                f"VALUES ('{current_time()}', {VALUES})",
                rows,
            )

    def add_remarks(self, remarks: Iterable[NewRemark]) -> None:
        """Append remarks, all or none; one with a known key is not written again."""
        with self.transaction() as connection:
            connection.executemany(
                f"INSERT OR IGNORE INTO remarks (time, {NOTED}) "
                f"VALUES ('{current_time()}', {NOTED_VALUES})",
                [one.model_dump() for one in remarks],
            )

    def remarks(self, document: str) -> list[Remark]:
        """Return the last remark of each reviewer on each mention, the oldest first."""
        sql = (
            f"SELECT {REMARKED} FROM remarks WHERE document = ? "
            f"AND number IN ({LAST_REMARKS}) ORDER BY number"
        )
        rows = self.query(sql, (document,))
        names = [*Remark.model_fields]
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [Remark(**{**one, "asks": bool(one["asks"])}) for one in found]

    def latest(
        self, *, document: str | None = None, reviewer: str | None = None
    ) -> list[Decision]:
        """Return the decisions that count, by document, reviewer and place.

        Args:
            document: Id of the one that is meant; None = all.
            reviewer: Whose answers are returned; None = those of all, and what settles.
        """
        where = COUNTS if document is None else f"document = :document AND {COUNTS}"
        rows = self.query(
            f"SELECT {COLUMNS} FROM decisions WHERE {where} "
            'ORDER BY document, reviewer, "start", "end"',
            {"document": document, "reviewer": reviewer},
        )
        names = Decision.model_fields  # the last one is `settles`
        return [
            Decision.model_construct(
                **dict(zip(names, (*values, bool(settles)), strict=True))
            )
            for *values, settles in rows
        ]

    def documents(self, reviewer: str | None = None) -> list[DocumentCount]:
        """Return the documents, the oldest first.

        Args:
            reviewer: Whose decisions are counted; None = those of all.
        """
        sql = (
            f"SELECT document, count(*) FROM decisions WHERE chosen != '{OPEN}' "
            f"AND {COUNTS} GROUP BY document"
        )
        counts = dict(self.query(sql, {"reviewer": reviewer}))
        questions = dict(self.query(QUESTIONS))
        done = self.done()
        sql = (
            "SELECT id, name, time, json_array_length(mentions) FROM documents "
            "ORDER BY number"
        )
        return [
            DocumentCount(
                id=id,
                name=name,
                time=time,
                mentions=mentions,
                decisions=counts.get(id, 0),
                done=done.get(id, []),
                questions=questions.get(id, 0),
            )
            for id, name, time, mentions in self.query(sql)
        ]

    def to_do(self, reviewer: str) -> Iterator[ReviewedDocument]:
        """Yield the documents that a reviewer has not done, the oldest first.

        They are read some at a time, so that others can write meanwhile.
        """
        sql = (
            "SELECT id, name, text, filter FROM documents "
            "WHERE number > :first AND number <= :last AND NOT EXISTS "
            "(SELECT 1 FROM done WHERE document = id AND reviewer = :reviewer) "
            "ORDER BY number"
        )
        ((last,),) = self.query("SELECT ifnull(max(number), 0) FROM documents")
        for first in range(0, last, AT_ONCE):
            values = {"reviewer": reviewer, "first": first, "last": first + AT_ONCE}
            for row in self.query(sql, values):
                yield ReviewedDocument(*row)

    def reviewers(self) -> list[str]:
        """Return the names of those who have decided a mention or done a document."""
        sql = (
            "SELECT reviewer FROM decisions WHERE NOT settles "
            "UNION SELECT reviewer FROM done ORDER BY reviewer"
        )
        return [name for (name,) in self.query(sql)]

    def set_done(self, document: str, reviewer: str, done: bool) -> None:
        """Note that a reviewer has done a document, or has to go on."""
        sql = "DELETE FROM done WHERE document = ? AND reviewer = ?"
        if done:
            sql = "INSERT OR IGNORE INTO done VALUES (?, ?)"
        with self.transaction() as connection:
            connection.execute(sql, (document, reviewer))

    def done(self) -> dict[str, list[str]]:
        """Return the names of who has done each document, sorted."""
        found: dict[str, list[str]] = {}
        sql = "SELECT document, reviewer FROM done ORDER BY document, reviewer"
        for document, name in self.query(sql):
            found.setdefault(document, []).append(name)
        return found

    def proposals(self, document: str) -> list[Span] | None:
        """Return the mentions that a document came with; None = it came without."""
        rows = self.query("SELECT spans FROM documents WHERE id = ?", (document,))
        found = json.loads(rows[0][0] or "null") if rows else None
        return None if found is None else [Span(*span) for span in found]

    def set_links(self, document: str, mentions: list[Any], kb: str) -> None:
        """Keep what a knowledge base says of the mentions of a document.

        Args:
            document: Its id; one that was removed meanwhile stays removed.
            kb: Digest of the knowledge base.
        """
        sql = "UPDATE documents SET kb = ?, mentions = ? WHERE id = ?"
        with self.transaction() as connection:
            connection.execute(sql, (kb, json.dumps(mentions), document))

    def links(self, document: str, kb: str) -> list[Any] | None:
        """Return the mentions of a document; None = they are not known for the `kb`."""
        sql = "SELECT mentions FROM documents WHERE id = ? AND kb = ?"
        rows = self.query(sql, (document, kb))
        return json.loads(rows[0][0]) if rows else None

    def unlinked(self, kb: str) -> list[str]:
        """Return the ids of the documents without links to a knowledge base."""
        sql = "SELECT id FROM documents WHERE kb IS NOT ? ORDER BY number"
        return [id for (id,) in self.query(sql, (kb,))]

    def delete_document(self, id: str) -> None:
        """Remove a document for good, with all that was decided on it."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM documents WHERE id = ?", (id,))

    def forget_links(self, *, kb: str) -> None:
        """Remove the links to all knowledge bases but the one of a digest."""
        sql = "UPDATE documents SET kb = NULL, mentions = NULL WHERE kb != ?"
        with self.transaction() as connection:
            connection.execute(sql, (kb,))

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.connection.close()


def reviews_not_written(reason: object, status: int) -> RequestError:
    return RequestError(
        "E491",
        f"Expected to use the file of reviews, but got: {reason}. Make room on its "
        "disk or end what uses it, and send the request again.",
        status,
    )
