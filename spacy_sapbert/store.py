"""concepts.db: the concepts and names of a knowledge base, in SQLite."""

import os
import sqlite3
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence
from urllib.parse import quote

from .concepts import Concept
from .errors import Errors, SapbertError
from .forms import name_form

FILE = "concepts.db"
ASKED_AT_ONCE = 500  # values in one SQL statement

SCHEMA = """
CREATE TABLE concepts (
    id INTEGER PRIMARY KEY, cui TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    definition TEXT
);
CREATE TABLE aliases (
    concept INTEGER NOT NULL, place INTEGER NOT NULL, alias TEXT NOT NULL,
    form TEXT NOT NULL, row INTEGER, PRIMARY KEY (concept, place)
) WITHOUT ROWID;
CREATE TABLE rows (row INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE types (
    concept INTEGER NOT NULL, type TEXT NOT NULL, PRIMARY KEY (concept, type)
) WITHOUT ROWID;
CREATE TABLE codes (
    concept INTEGER NOT NULL, source TEXT NOT NULL, code TEXT NOT NULL,
    PRIMARY KEY (concept, source, code)
) WITHOUT ROWID;
CREATE TABLE parents (
    concept INTEGER NOT NULL, parent TEXT NOT NULL, PRIMARY KEY (concept, parent)
) WITHOUT ROWID;
CREATE TABLE retired (cui TEXT PRIMARY KEY, concept INTEGER NOT NULL) WITHOUT ROWID;
"""
INDICES = """
CREATE INDEX aliases_by_row ON aliases (row);
CREATE INDEX aliases_by_form ON aliases (form);
CREATE UNIQUE INDEX rows_by_key ON rows (key);
"""


class Entry(NamedTuple):
    """One alias of one concept on a row of the index.

    row (int): The row.
    cui (str): The concept.
    name (str): Its preferred name.
    alias (str): The alias.
    preferred (bool): Whether the alias is the preferred name.
    """

    row: int
    cui: str
    name: str
    alias: str
    preferred: bool


def create_store(path: Path) -> sqlite3.Connection:
    """Begin a concepts.db that is filled from an empty file.

    path (Path): The file to create.
    RETURNS (sqlite3.Connection): Open, with the tables, inside a transaction.
    """
    connection = sqlite3.connect(path)
    # The file takes its final name only when it is whole, so no journal is needed.
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
    connection.executescript(SCHEMA)
    connection.execute("BEGIN")
    return connection


def add_concept(
    connection: sqlite3.Connection,
    number: int,
    concept: Concept,
    rows: Sequence[Optional[int]],
) -> None:
    """Write one concept.

    connection (sqlite3.Connection): From `create_store`.
    number (int): Of the concept, from 0.
    concept (Concept): The concept.
    rows (Sequence[Optional[int]]): The row of each alias; None if it has none.
    RAISES (SapbertError): If the concept is there already.
    """
    try:
        connection.execute(
            "INSERT INTO concepts VALUES (?, ?, ?, ?)",
            (number, concept.cui, concept.name, concept.definition),
        )
    except sqlite3.IntegrityError:
        raise SapbertError(Errors.E312.format(cui=concept.cui)) from None
    connection.executemany(
        "INSERT INTO aliases VALUES (?, ?, ?, ?, ?)",
        (
            (number, place, alias, name_form(alias), row)
            for place, (alias, row) in enumerate(
                zip(concept.aliases, rows, strict=True)
            )
        ),
    )
    insert = "INSERT OR IGNORE INTO {} VALUES (?, ?)".format
    connection.executemany(insert("types"), ((number, t) for t in concept.types))
    connection.executemany(insert("parents"), ((number, p) for p in concept.parents))
    connection.executemany(
        insert("retired"), ((cui, number) for cui in concept.retired)
    )
    connection.executemany(
        "INSERT OR IGNORE INTO codes VALUES (?, ?, ?)",
        (
            (number, source, code)
            for source, codes in concept.codes.items()
            for code in codes
        ),
    )


def finish_store(connection: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Write the keys of the rows and the indices, and close the file.

    connection (sqlite3.Connection): From `create_store`.
    keys (Iterable[bytes]): The key of row 0, row 1, …
    """
    connection.executemany("INSERT INTO rows VALUES (?, ?)", enumerate(keys))
    for statement in INDICES.strip().splitlines():
        connection.execute(statement)
    connection.execute("COMMIT")
    connection.close()


class Store:
    """Reads a concepts.db; one connection a process and thread, opened when needed.

    folder (Path): Of the knowledge base.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.open = threading.local()

    def query(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Ask the file; a connection is never carried across a fork."""
        if getattr(self.open, "process", None) != os.getpid():
            uri = f"file:{quote(str(self.path.absolute()))}?mode=ro&immutable=1"
            self.open.connection = sqlite3.connect(uri, uri=True)
            self.open.process = os.getpid()
        connection: sqlite3.Connection = self.open.connection
        return connection.execute(sql, values)

    def query_many(self, sql: str, values: Iterable[Any]) -> Iterator[Any]:
        """Ask for many values; `{}` in the statement stands for their list."""
        distinct = list(dict.fromkeys(values))
        for start in range(0, len(distinct), ASKED_AT_ONCE):
            part = distinct[start : start + ASKED_AT_ONCE]
            yield from self.query(sql.format(", ".join("?" * len(part))), part)

    def entries(self, rows: Iterable[int]) -> Dict[int, List[Entry]]:
        """Give every alias of every concept on some rows.

        rows (Iterable[int]): The rows.
        RETURNS (Dict[int, List[Entry]]): By row, in the order of CUI and alias.
        """
        found: Dict[int, List[Entry]] = defaultdict(list)
        for row, cui, name, alias, place in self.query_many(
            "SELECT row, cui, name, alias, place FROM aliases "
            "JOIN concepts ON concepts.id = aliases.concept WHERE row IN ({})",
            (int(row) for row in rows),
        ):
            found[row].append(Entry(row, cui, name, alias, place == 0))
        for entries in found.values():
            entries.sort(key=lambda entry: (entry.cui, entry.alias))
        return dict(found)

    def rows_of_keys(self, keys: Iterable[bytes]) -> Dict[bytes, int]:
        """Find which tokenised names are rows.

        keys (Iterable[bytes]): From `build.name_key`.
        RETURNS (Dict[bytes, int]): Those that are.
        """
        sql = "SELECT key, row FROM rows WHERE key IN ({})"
        return dict(self.query_many(sql, keys))

    def types(self, cuis: Iterable[str]) -> Dict[str, List[str]]:
        """Give the semantic types of some concepts.

        cuis (Iterable[str]): Their ids.
        RETURNS (Dict[str, List[str]]): By id; without those that have none.
        """
        found: Dict[str, List[str]] = defaultdict(list)
        for cui, kind in self.query_many(
            "SELECT cui, type FROM types JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY type",
            cuis,
        ):
            found[cui].append(kind)
        return dict(found)

    def spellings(self, forms: Iterable[str]) -> Dict[str, List[str]]:
        """Find which normalised forms are names, and how these are written.

        forms (Iterable[str]): From `forms.name_form`.
        RETURNS (Dict[str, List[str]]): The aliases of each form that is a name, sorted.
        """
        found: Dict[str, set] = defaultdict(set)
        sql = "SELECT form, alias FROM aliases WHERE form IN ({})"
        for form, alias in self.query_many(sql, forms):
            found[form].add(alias)
        return {form: sorted(aliases) for form, aliases in found.items()}

    def concept(self, cui: str) -> Optional[Concept]:
        """Look a concept up by its id, or by one that was retired for it.

        cui (str): The id.
        RETURNS (Optional[Concept]): The concept, if there is one.
        """
        row = self.query("SELECT id FROM concepts WHERE cui = ?", [cui]).fetchone()
        if row is None:
            sql = "SELECT concept FROM retired WHERE cui = ?"
            row = self.query(sql, [cui]).fetchone()
        return None if row is None else self.numbered_concept(row[0])

    def concepts(self) -> Iterator[Concept]:
        """Give all concepts, in the order in which they were added."""
        for (number,) in self.query("SELECT id FROM concepts ORDER BY id").fetchall():
            yield self.numbered_concept(number)

    def numbered_concept(self, number: int) -> Concept:
        """Read one concept whole.

        number (int): Of the concept.
        RETURNS (Concept): The concept.
        """

        def column(sql: str) -> List[str]:
            return [value for (value,) in self.query(sql, [number])]

        sql = "SELECT cui, definition FROM concepts WHERE id = ?"
        cui, definition = self.query(sql, [number]).fetchone()
        codes: Dict[str, List[str]] = defaultdict(list)
        sql = "SELECT source, code FROM codes WHERE concept = ? ORDER BY source, code"
        for source, code in self.query(sql, [number]):
            codes[source].append(code)
        return Concept(
            cui=cui,
            aliases=column(
                "SELECT alias FROM aliases WHERE concept = ? ORDER BY place"
            ),
            types=column("SELECT type FROM types WHERE concept = ? ORDER BY type"),
            codes=dict(codes),
            parents=column(
                "SELECT parent FROM parents WHERE concept = ? ORDER BY parent"
            ),
            definition=definition,
            retired=column("SELECT cui FROM retired WHERE concept = ? ORDER BY cui"),
        )
