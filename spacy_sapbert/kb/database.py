"""concepts.db: its tables, and a read-only connection to it and to an overlay."""

import os
import re
import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import SapbertError
from ..io.forks import ProcessLock

KINDS = ("language", "source")  # the parts of the origin of a name

# `words` is an index of the words of the names as `text.name_form` folds them, without
# a copy of their text. Its rows are numbered by the length of the names, so that a
# search reads the shortest first and stops; `by_length` says which name a row is.
SCHEMA = """
CREATE TABLE concepts (
    id INTEGER PRIMARY KEY, cui TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    definition TEXT
) STRICT;
CREATE TABLE aliases (
    concept INTEGER NOT NULL, place INTEGER NOT NULL, alias TEXT NOT NULL,
    row INTEGER, origin INTEGER NOT NULL,
    PRIMARY KEY (concept, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE by_length (
    number INTEGER PRIMARY KEY, concept INTEGER NOT NULL, place INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (
    form, content = '', prefix = '1 2 3',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
CREATE TABLE keys (
    key INTEGER NOT NULL, concept INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (key, concept, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE origins (
    origin INTEGER NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (origin, kind, value)
) STRICT, WITHOUT ROWID;
CREATE TABLE rows (row INTEGER PRIMARY KEY, key BLOB NOT NULL) STRICT;
CREATE TABLE types (
    concept INTEGER NOT NULL, type TEXT NOT NULL, PRIMARY KEY (concept, type)
) STRICT, WITHOUT ROWID;
CREATE TABLE codes (
    concept INTEGER NOT NULL, source TEXT NOT NULL, code TEXT NOT NULL,
    rank INTEGER NOT NULL,
    PRIMARY KEY (concept, source, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE related_codes (
    concept INTEGER NOT NULL, relation TEXT NOT NULL, source TEXT NOT NULL,
    code TEXT NOT NULL, rank INTEGER NOT NULL,
    PRIMARY KEY (concept, source, code)
) STRICT, WITHOUT ROWID;
CREATE TABLE parents (
    concept INTEGER NOT NULL, parent TEXT NOT NULL, PRIMARY KEY (concept, parent)
) STRICT, WITHOUT ROWID;
CREATE TABLE retired (
    cui TEXT PRIMARY KEY, concept INTEGER NOT NULL, said TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
# `aliases_by_row` has what a search reads of the names on a row, so that it does not
# look for each in `aliases` too.
INDICES = """
CREATE INDEX aliases_by_row ON aliases (row, alias, origin);
CREATE UNIQUE INDEX rows_by_key ON rows (key);
CREATE INDEX concepts_by_type ON types (type);
CREATE INDEX concepts_by_code ON codes (source, code);
CREATE INDEX concepts_by_related_code ON related_codes (source, code);
CREATE INDEX concepts_by_parent ON parents (parent);
CREATE INDEX retired_by_concept ON retired (concept);
"""
# Of an overlay: concepts of the knowledge base that are replaced or removed, how often
# a text was annotated with a concept ("" = with none), and how many documents say what
# a mention means, by `list_keys`.
OVERLAY_TABLES = """
CREATE TABLE replaced (concept INTEGER PRIMARY KEY) STRICT;
CREATE TABLE annotated (
    form TEXT NOT NULL, cui TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (form, cui)
) STRICT, WITHOUT ROWID;
CREATE TABLE votes (
    key TEXT NOT NULL, cui TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (key, cui)
) STRICT, WITHOUT ROWID;
CREATE INDEX annotated_by_cui ON annotated (cui);
CREATE INDEX keys_by_concept ON keys (concept);
"""
# `sqlite3` decodes what SQLite says of a damaged file, which may be no UTF-8.
DAMAGED = (sqlite3.Error, UnicodeDecodeError)
# No page is mapped, so that a file that is cut while it is read is an error and no
# signal. Functions of the file are not called.
SETTINGS = """
PRAGMA query_only = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA temp_store = MEMORY;
"""
WORDS = re.compile("words_[a-z]+")  # tables in which SQLite keeps `words`
# With an overlay, temporary views with the names of the tables hide the concepts that
# the overlay replaces and add those that it has.
OVERLAY_VIEWS = "".join(
    f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} "
    f"WHERE {column} NOT IN (SELECT concept FROM overlay.replaced) "
    f"UNION ALL SELECT * FROM overlay.{table};"
    for table, column in (
        ("concepts", "id"),
        ("aliases", "concept"),
        ("keys", "concept"),
        ("types", "concept"),
        ("codes", "concept"),
        ("related_codes", "concept"),
        ("parents", "concept"),
        ("retired", "concept"),
    )
) + "".join(
    f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} "
    f"UNION ALL SELECT * FROM overlay.{table};"
    for table in ("rows", "origins")
)


def list_schema(connection: sqlite3.Connection, name: str) -> set[tuple[str, ...]]:
    """Return type and SQL of what "main" or "overlay" has."""
    rows = connection.execute(f"SELECT type, name, sql FROM {name}.sqlite_master")
    return {
        (type, table if WORDS.fullmatch(table) and type == "table" else str(sql))
        for type, table, sql in rows
    }


@cache
def known_schema(name: str) -> set[tuple[str, ...]]:
    """Return what `list_schema` returns for a file that we wrote."""
    with closing(sqlite3.connect(":memory:")) as connection:
        tables = OVERLAY_TABLES if name == "overlay" else ""
        connection.executescript(SCHEMA + tables + INDICES)
        return list_schema(connection, "main")


def read_only_uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"


def is_encodable(text: str) -> bool:
    """Return whether SQLite takes a text: arguments may have lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Database:
    """One connection, which all threads share; a forked child opens its own."""

    def __init__(
        self,
        path: Path,
        overlay: Path | None = None,
        *,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self.check = check  # an error if a forked child opens other files
        self.overlay = overlay
        self.lock = ProcessLock()
        self.process = os.getpid()
        try:
            self.connection = self.connect()
        except DAMAGED as error:
            raise self.damaged(str(error)) from error

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            read_only_uri(self.path), uri=True, check_same_thread=False
        )
        connection.executescript(SETTINGS)
        self.check_schema(connection, "main")
        if self.overlay is not None:
            uri = read_only_uri(self.overlay)
            connection.execute("ATTACH DATABASE ? AS overlay", [uri])
            self.check_schema(connection, "overlay")
            connection.execute("PRAGMA query_only = OFF")
            connection.executescript(OVERLAY_VIEWS)
            connection.execute("PRAGMA query_only = ON")
        return connection

    def check_schema(self, connection: sqlite3.Connection, name: str) -> None:
        """Raise an error if "main" or "overlay" has other tables than we write.

        SQL of the file would run with a view, a trigger or a generated column.
        """
        if list_schema(connection, name) != known_schema(name):
            raise self.damaged("it has other tables", name)

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; a damaged file is a SapbertError."""
        with self.use() as connection:
            return connection.execute(sql, values).fetchall()

    def stream(
        self, sql: str, values: Sequence[Any] = ()
    ) -> Generator[tuple[Any, ...], None, None]:
        """Yield the rows of a statement; other threads wait until all are read."""
        with self.use() as connection:
            yield from connection.execute(sql, values)

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection of this process to one thread at a time."""
        try:
            with self.lock:
                if self.process != os.getpid():
                    self.connection = self.connect()
                    self.check()
                    self.process = os.getpid()
                yield self.connection
        except DAMAGED as error:
            raise self.damaged(str(error)) from error

    def damaged(self, reason: str, name: str = "main") -> SapbertError:
        path = self.overlay if name == "overlay" else self.path
        return SapbertError(
            "E306",
            f"{path}: Expected a whole database of concepts, but {reason}. Copy or "
            "build the knowledge base again.",
        )
