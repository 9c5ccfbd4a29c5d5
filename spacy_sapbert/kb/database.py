"""A read-only connection to concepts.db, guarded against damaged and hostile files."""

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from ..errors import Errors, SapbertError
from ..system.forks import ProcessLock
from .schema import allowed_types, expected_schema, read_schema

DEADLINE = 120.0  # seconds for one statement
STEPS = 100_000  # of SQLite between two looks at the clock
MAX_VALUE = 1 << 28  # bytes of a value
# No page is mapped, so that a file that is cut while it is read is an error and no
# signal. Functions and virtual tables of the file are not called.
SETTINGS = """
PRAGMA query_only = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
"""
CODES = "concept, source, code, rank"
UNRANKED = "concept, source, code, 0 AS rank"
# With an overlay, temporary views with the names of the tables hide the concepts that
# the overlay replaces and add those that it has.
OVERLAY_VIEW = (
    "CREATE TEMP VIEW {table} AS SELECT {main} FROM main.{table} "
    "WHERE {column} NOT IN (SELECT concept FROM overlay.replaced) "
    "UNION ALL SELECT {overlay} FROM overlay.{table};"
)
OVERLAY_VIEWS = "".join(
    OVERLAY_VIEW.format(table=table, column=column, main="*", overlay="*")
    for table, column in (
        ("concepts", "id"),
        ("aliases", "concept"),
        ("types", "concept"),
        ("parents", "concept"),
        ("retired", "concept"),
    )
) + "".join(
    f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} "
    f"UNION ALL SELECT * FROM overlay.{table};"
    for table in ("rows", "origins")
)

Check = Callable[[], None]


def accept_files() -> None:
    """Accept the files as they are; see `Database`."""


def read_only_uri(path: Path) -> str:
    """Return the URI by which SQLite opens a file that does not change."""
    return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"


def is_encodable(text: str) -> bool:
    """Return whether SQLite takes a text: it has no lone surrogate.

    Python has them in arguments of a command that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Database:
    """One connection that all threads of a process share.

    A connection for each thread would be opened later, when another file may have the
    path. A forked child opens its own.

    path (Path): The concepts.db.
    overlay (Path | None): The concepts.db of an overlay.
    check_files (Callable[[], None]): Raises an error if the paths name other files than
        those that were verified; called before and after they are opened.
    deadline (float): Seconds for one statement.
    RAISES (SapbertError): If a file cannot be read, or has other tables.
    """

    def __init__(
        self,
        path: Path,
        overlay: Path | None = None,
        *,
        check_files: Check = accept_files,
        deadline: float = DEADLINE,
    ) -> None:
        self.path = path
        self.overlay = overlay
        self.check_files = check_files
        self.deadline = deadline
        self.lock = ProcessLock()
        self.size = 0
        self.until = 0.0  # when the statement that runs is stopped
        self.process = os.getpid()
        try:
            self.connection = self.connect()
        except sqlite3.Error as error:
            raise self.damaged(str(error)) from error

    def connect(self) -> sqlite3.Connection:
        """Open a connection and check the tables."""
        self.check_files()
        connection = sqlite3.connect(
            read_only_uri(self.path), uri=True, check_same_thread=False
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        connection.set_progress_handler(lambda: monotonic() > self.until, STEPS)
        self.until = monotonic() + self.deadline
        connection.executescript(SETTINGS)
        main = self.find_codes(connection, "main")
        views = f"CREATE TEMP VIEW codes AS SELECT {main} FROM main.codes;"
        if self.overlay is not None:
            uri = read_only_uri(self.overlay)
            connection.execute("ATTACH DATABASE ? AS overlay", [uri])
            codes = {"main": main, "overlay": self.find_codes(connection, "overlay")}
            views = OVERLAY_VIEW.format(table="codes", column="concept", **codes)
            views += OVERLAY_VIEWS
        connection.execute("PRAGMA query_only = OFF")
        connection.executescript(views)
        connection.execute("PRAGMA query_only = ON")
        paths = [self.path, *([self.overlay] if self.overlay else [])]
        try:
            self.size = sum(path.stat().st_size for path in paths)  # bytes
        except OSError as error:  # the folder was replaced meanwhile
            raise self.damaged(str(error)) from error
        self.check_files()
        return connection

    def find_codes(self, connection: sqlite3.Connection, name: str) -> str:
        """Return the columns of the codes of a database, after a check of its tables.

        name (str): "main" or "overlay".
        RAISES (SapbertError): If it has other tables.
        """
        found = read_schema(connection, name)
        for columns in (CODES, UNRANKED):
            if found == expected_schema(
                overlay=name == "overlay", ranks=columns == CODES
            ):
                return columns
        raise self.damaged("it has other tables, views or triggers")

    def query(
        self, sql: str, values: Sequence[Any] = (), *, columns: str
    ) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows.

        sql (str), values (Sequence[Any]): The statement and the values of its `?`.
        columns (str): The types of the result; see `schema.COLUMN_TYPES`.
        RAISES (SapbertError): If the file is damaged, a value has another type, or the
            deadline has passed.
        """
        try:
            with self.lock:
                if self.process != os.getpid():
                    self.connection = self.connect()
                    self.process = os.getpid()
                self.until = monotonic() + self.deadline
                found = self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(str(error)) from error
        if not {tuple(map(type, row)) for row in found} <= allowed_types(columns):
            raise self.damaged("a value has another type than its column")
        return found

    def damaged(self, reason: str) -> SapbertError:
        """Return the error for a file that is not as it should be."""
        return SapbertError(Errors.E349.format(path=self.path, reason=reason))
