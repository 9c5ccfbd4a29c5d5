"""concepts.db, written: from an empty file to one that is only read from then on."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import Errors, SapbertError
from ..vocabularies.concepts import Concept
from .store import KINDS
from .surface_forms import name_form

SCHEMA = """
CREATE TABLE concepts (
    id INTEGER PRIMARY KEY, cui TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
    definition TEXT
);
CREATE TABLE aliases (
    concept INTEGER NOT NULL, place INTEGER NOT NULL, alias TEXT NOT NULL,
    form TEXT NOT NULL, row INTEGER, origin INTEGER NOT NULL,
    PRIMARY KEY (concept, place)
) WITHOUT ROWID;
CREATE TABLE origins (
    origin INTEGER NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (origin, kind, value)
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
CREATE INDEX concepts_by_type ON types (type);
CREATE INDEX concepts_by_code ON codes (source, code);
CREATE INDEX concepts_by_parent ON parents (parent);
"""


# Languages and sources that a name has → the number of that combination: there are few
# of them, also where there are millions of names.
Origin = tuple[tuple[str, ...], tuple[str, ...]]
Origins = dict[Origin, int]


def number_origins(concept: Concept, origins: Origins) -> list[int]:
    """Number the languages and sources of each name of a concept.

    concept (Concept): The concept.
    origins (Origins): The numbers so far; new ones are added.
    RETURNS (list[int]): A number for each alias.
    """
    found: list[tuple[list[str], list[str]]] = [([], []) for _ in concept.aliases]
    for kind, values in enumerate((concept.languages, concept.sources)):
        for value, places in values.items():
            for place in places:
                found[place][kind].append(value)
    return [
        origins.setdefault((tuple(languages), tuple(sources)), len(origins))
        for languages, sources in found
    ]


@contextmanager
def create_store(path: Path) -> Iterator[sqlite3.Connection]:
    """Begin a concepts.db that is filled from an empty file.

    path (Path): The file to create.
    YIELDS (sqlite3.Connection): Open, with the tables, inside a transaction.
    RAISES (SapbertError): If the system refuses, e.g. a full disk.
    """
    try:
        connection = sqlite3.connect(path)
        try:
            # The file takes its name only when it is whole, so no journal is needed.
            connection.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            )
            connection.executescript(SCHEMA)
            connection.execute("BEGIN")
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SapbertError(Errors.E004.format(path=path, reason=error)) from error


def add_concept(
    connection: sqlite3.Connection,
    number: int,
    concept: Concept,
    rows: Sequence[int | None],
    origins: Origins,
) -> None:
    """Write one concept.

    connection (sqlite3.Connection): From `create_store`.
    number (int): Of the concept, from 0.
    concept (Concept): The concept.
    rows (Sequence[int | None]): The row of each alias; None if it has none.
    origins (Origins): Of the names so far; those of this concept are added.
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
        "INSERT INTO aliases VALUES (?, ?, ?, ?, ?, ?)",
        (
            (number, place, alias, name_form(alias), row, origin)
            for place, (alias, row, origin) in enumerate(
                zip(
                    concept.aliases, rows, number_origins(concept, origins), strict=True
                )
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


def finish_store(
    connection: sqlite3.Connection, keys: Iterable[bytes], origins: Origins
) -> None:
    """Write the keys of the rows, the origins and the indices.

    connection (sqlite3.Connection): From `create_store`.
    keys (Iterable[bytes]): The key of row 0, row 1, …
    origins (Origins): Of all names.
    """
    connection.executemany(
        "INSERT INTO origins VALUES (?, ?, ?)",
        (
            (number, kind, value)
            for origin, number in origins.items()
            for kind, values in zip(KINDS, origin, strict=True)
            for value in values
        ),
    )
    connection.executemany("INSERT INTO rows VALUES (?, ?)", enumerate(keys))
    for statement in INDICES.strip().splitlines():
        connection.execute(statement)
    connection.execute("COMMIT")
