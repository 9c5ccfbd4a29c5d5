"""concepts.db: the concepts and names of a knowledge base, in SQLite."""

import hashlib
import os
import sqlite3
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..linking.candidates import Entry
from ..vocabularies.concepts import Concept

FILE = "concepts.db"
QUERY_VALUES = 500  # values in one SQL statement
KINDS = ("language", "source")  # the parts of the origin of a name

OVERLAY_VIEWS = (
    "PRAGMA temp_store = MEMORY;"
    + "".join(
        f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} "
        f"WHERE {column} NOT IN (SELECT concept FROM overlay.replaced) "
        f"UNION ALL SELECT * FROM overlay.{table};"
        for table, column in (
            ("concepts", "id"),
            ("aliases", "concept"),
            ("types", "concept"),
            ("codes", "concept"),
            ("parents", "concept"),
            ("retired", "concept"),
        )
    )
    + "".join(
        f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} "
        f"UNION ALL SELECT * FROM overlay.{table};"
        for table in ("rows", "origins")
    )
)


def read_only_uri(path: Path) -> str:
    """Return the URI by which SQLite opens a file that does not change."""
    return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"


def name_key(token_ids: Sequence[int]) -> bytes:
    """Return the key of a row: 16 bytes, equal for equal token ids."""
    ids = array("q", token_ids).tobytes()
    return hashlib.blake2b(ids, digest_size=16).digest()


class Store:
    """Reads a concepts.db and, over it, the concepts.db of an overlay.

    Each process and thread has a connection of its own, opened when first used. With an
    overlay, temporary views with the names of the tables hide the concepts that the
    overlay replaces and add those that it has.

    folder (Path): Of the knowledge base.
    overlay (Path | None): Folder of the overlay.
    """

    def __init__(self, folder: Path, overlay: Path | None = None) -> None:
        self.path = folder / FILE
        self.overlay = None if overlay is None else overlay / FILE
        self.open = threading.local()

    def query(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement; a connection is never used after a fork."""
        if getattr(self.open, "process", None) != os.getpid():
            connection = sqlite3.connect(read_only_uri(self.path), uri=True)
            if self.overlay is not None:
                uri = read_only_uri(self.overlay)
                connection.execute("ATTACH DATABASE ? AS overlay", [uri])
                connection.executescript(OVERLAY_VIEWS)
            self.open.connection = connection
            self.open.process = os.getpid()
        connection = self.open.connection
        return connection.execute(sql, values)

    def query_many(self, sql: str, values: Iterable[Any]) -> Iterator[Any]:
        """Run a statement for many values; `{}` in it stands for their list."""
        # In order: neighbours are likely to be on the same page of the file.
        distinct = sorted({*values})
        for start in range(0, len(distinct), QUERY_VALUES):
            part = distinct[start : start + QUERY_VALUES]
            yield from self.query(sql.format(", ".join("?" * len(part))), part)

    def column(self, sql: str, value: Any) -> list[Any]:
        """Return the first column of a query with one value."""
        return [row[0] for row in self.query(sql, [value])]

    def lists(self, sql: str, values: Iterable[Any]) -> dict[Any, list[Any]]:
        """Return the second column of a query as lists, by the first column."""
        found: dict[Any, list[Any]] = defaultdict(list)
        for key, value in self.query_many(sql, values):
            found[key].append(value)
        return dict(found)

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows.

        RETURNS (dict[int, list[Entry]]): By row, in the order of CUI and alias; rows
            without names are left out.
        """
        found: dict[int, list[Entry]] = defaultdict(list)
        for row, cui, name, alias, place, concept, origin in self.query_many(
            "SELECT row, cui, name, alias, place, concept, origin FROM aliases "
            "JOIN concepts ON concepts.id = aliases.concept WHERE row IN ({})",
            (int(row) for row in rows),
        ):
            entry = Entry(row, cui, name, alias, place == 0, concept, origin)
            found[row].append(entry)
        for entries in found.values():
            entries.sort(key=lambda entry: (entry.cui, entry.alias))
        return dict(found)

    def entries_of(self, cui: str) -> list[Entry]:
        """Return the names of a concept that are on rows of the index."""
        sql = (
            "SELECT row FROM aliases JOIN concepts ON id = concept "
            "WHERE cui = ? AND row IS NOT NULL ORDER BY row"
        )
        by_row = self.entries(self.column(sql, cui))
        return [entry for row in by_row.values() for entry in row if entry.cui == cui]

    def rows_of_keys(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Return the row of each key (from `name_key`) that has one."""
        sql = "SELECT key, row FROM rows WHERE key IN ({})"
        return dict(self.query_many(sql, keys))

    def types(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the semantic types by concept; those without types are left out."""
        sql = (
            "SELECT cui, type FROM types JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY type"
        )
        return self.lists(sql, cuis)

    def codes(self, cuis: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Return the codes by concept and source; concepts without are left out."""
        found: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for cui, source, code in self.query_many(
            "SELECT cui, source, code FROM codes JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY source, code",
            cuis,
        ):
            found[cui].setdefault(source, []).append(code)
        return dict(found)

    def cuis_of_code(self, source: str, code: str) -> list[str]:
        """Return the ids of the concepts with a code of a source, sorted."""
        sql = (
            "SELECT cui FROM codes JOIN concepts ON id = concept "
            "WHERE source = ? AND code = ? ORDER BY cui"
        )
        return [cui for (cui,) in self.query(sql, [source, code])]

    def parents(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the ids of the parents by concept; those without are left out."""
        sql = (
            "SELECT cui, parent FROM parents JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY parent"
        )
        return self.lists(sql, cuis)

    def children(self, cui: str) -> list[str]:
        """Return the ids of the children of a concept, sorted."""
        sql = (
            "SELECT cui FROM parents JOIN concepts ON id = concept "
            "WHERE parent = ? ORDER BY cui"
        )
        return self.column(sql, cui)

    def origins(self, kind: str) -> dict[int, list[str]]:
        """Return the values of one of `KINDS` by number of the origin."""
        found: dict[int, list[str]] = defaultdict(list)
        sql = "SELECT origin, value FROM origins WHERE kind = ? ORDER BY value"
        for origin, value in self.query(sql, [kind]):
            found[origin].append(value)
        return dict(found)

    def spellings(self, forms: Iterable[str]) -> dict[str, list[str]]:
        """Return the aliases of each normalised form that is a name.

        forms (Iterable[str]): From `surface_forms.name_form`.
        RETURNS (dict[str, list[str]]): Distinct aliases, sorted, by form.
        """
        sql = "SELECT form, alias FROM aliases WHERE form IN ({})"
        found = self.lists(sql, forms)
        return {form: sorted({*aliases}) for form, aliases in found.items()}

    def concept(self, cui: str) -> Concept | None:
        """Return the concept with an id or retired id; None if there is none."""
        for sql in (
            "SELECT id FROM concepts WHERE cui = ?",
            "SELECT concept FROM retired WHERE cui = ?",
        ):
            if row := self.query(sql, [cui]).fetchone():
                return self.read_concept(row[0])
        return None

    def current_cuis(self, cuis: Iterable[str]) -> dict[str, str]:
        """Return the current id of each id that was retired."""
        sql = (
            "SELECT retired.cui, concepts.cui FROM retired "
            "JOIN concepts ON id = concept WHERE retired.cui IN ({})"
        )
        return dict(self.query_many(sql, cuis))

    def concepts(self) -> Iterator[Concept]:
        """Yield all concepts in the order in which they were added."""
        for (number,) in self.query("SELECT id FROM concepts ORDER BY id").fetchall():
            yield self.read_concept(number)

    def read_concept(self, number: int) -> Concept:
        """Read one concept by its number."""
        sql = "SELECT cui, definition FROM concepts WHERE id = ?"
        cui, definition = self.query(sql, [number]).fetchone()
        places: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}
        for kind, value, place in self.query(
            "SELECT kind, value, place FROM aliases "
            "JOIN origins ON origins.origin = aliases.origin "
            "WHERE concept = ? ORDER BY value, place",
            [number],
        ):
            places[kind].setdefault(value, []).append(place)
        codes: dict[str, list[str]] = defaultdict(list)
        sql = "SELECT source, code FROM codes WHERE concept = ? ORDER BY source, code"
        for source, code in self.query(sql, [number]):
            codes[source].append(code)
        table = "SELECT {0} FROM {1} WHERE concept = ? ORDER BY {0}".format
        return Concept(
            cui=cui,
            aliases=self.column(
                "SELECT alias FROM aliases WHERE concept = ? ORDER BY place", number
            ),
            types=self.column(table("type", "types"), number),
            codes=dict(codes),
            parents=self.column(table("parent", "parents"), number),
            definition=definition,
            retired=self.column(table("cui", "retired"), number),
            languages=places["language"],
            sources=places["source"],
        )
