"""The tables of concepts.db, and the check that a file has only these."""

import sqlite3
from functools import lru_cache
from itertools import product
from types import NoneType

KINDS = ("language", "source")  # the parts of the origin of a name

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
    rank INTEGER NOT NULL,
    PRIMARY KEY (concept, source, code)
) WITHOUT ROWID;
CREATE TABLE parents (
    concept INTEGER NOT NULL, parent TEXT NOT NULL, PRIMARY KEY (concept, parent)
) WITHOUT ROWID;
CREATE TABLE retired (cui TEXT PRIMARY KEY, concept INTEGER NOT NULL) WITHOUT ROWID;
"""
RANK = "    rank INTEGER NOT NULL,\n"  # of a code; format 2 has none
# Knowledge bases were built without this index before, so a file may lack it.
RETIRED_INDEX = "CREATE INDEX retired_by_concept ON retired (concept)"
INDICES = f"""
CREATE INDEX aliases_by_row ON aliases (row);
CREATE INDEX aliases_by_form ON aliases (form);
CREATE UNIQUE INDEX rows_by_key ON rows (key);
CREATE INDEX concepts_by_type ON types (type);
CREATE INDEX concepts_by_code ON codes (source, code);
CREATE INDEX concepts_by_parent ON parents (parent);
{RETIRED_INDEX};
"""
# Of an overlay: concepts of the knowledge base that are replaced or removed, and how
# often a text was annotated with a concept ("" = with none).
OVERLAY_TABLES = """
CREATE TABLE replaced (concept INTEGER PRIMARY KEY);
CREATE TABLE annotated (
    form TEXT NOT NULL, cui TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (form, cui)
) WITHOUT ROWID;
CREATE INDEX annotated_by_cui ON annotated (cui);
"""

# The types of a column, by letter: text, number, bytes; a capital = may be missing.
COLUMN_TYPES: dict[str, tuple[type, ...]] = {
    "t": (str,),
    "i": (int,),
    "b": (bytes,),
    "T": (str, NoneType),
    "I": (int, NoneType),
}


def read_schema(connection: sqlite3.Connection, database: str) -> set[tuple[str, ...]]:
    """Return type, name, table and SQL of everything but `RETIRED_INDEX`."""
    sql = (
        "SELECT type, name, tbl_name, coalesce(sql, '') AS code "
        f"FROM {database}.sqlite_master WHERE code != ?"
    )
    return set(connection.execute(sql, [RETIRED_INDEX]))


@lru_cache
def expected_schema(*, overlay: bool, ranks: bool) -> frozenset[tuple[str, ...]]:
    """Return the schema of a concepts.db, or of that of an overlay.

    ranks (bool): Codes have ranks.
    """
    connection = sqlite3.connect(":memory:")
    tables = SCHEMA if ranks else SCHEMA.replace(RANK, "")
    try:
        connection.executescript(tables + INDICES + (OVERLAY_TABLES * overlay))
        return frozenset(read_schema(connection, "main"))
    finally:
        connection.close()


@lru_cache
def allowed_types(columns: str) -> frozenset[tuple[type, ...]]:
    """Return the types that the values of a row may have.

    SQLite does not hold a file to the types of its tables.

    columns (str): A letter of `COLUMN_TYPES` for each column.
    """
    return frozenset(product(*(COLUMN_TYPES[letter] for letter in columns)))
