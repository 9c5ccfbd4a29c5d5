"""concepts.db: the concepts and names of a knowledge base, in SQLite."""

import hashlib
import os
import sqlite3
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
)
from urllib.parse import quote

from ..vocabularies.concepts import Concept

FILE = "concepts.db"
ASKED_AT_ONCE = 500  # values in one SQL statement
KINDS = ("language", "source")  # what the origin of a name tells


class Entry(NamedTuple):
    """One alias of one concept on a row of the index.

    row (int): The row.
    cui (str): The concept.
    name (str): Its preferred name.
    alias (str): The alias.
    preferred (bool): Whether the alias is the preferred name.
    concept (int): Number of the concept.
    origin (int): Number of the languages and sources that the alias has.
    """

    row: int
    cui: str
    name: str
    alias: str
    preferred: bool
    concept: int = -1
    origin: int = -1


def name_key(pieces: Sequence[int]) -> bytes:
    """Name a row of the index by its wordpieces.

    pieces (Sequence[int]): Ids, special ones included.
    RETURNS (bytes): 16 bytes, equal for equal wordpieces.
    """
    ids = array("q", pieces).tobytes()
    return hashlib.blake2b(ids, digest_size=16).digest()


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
        # In order: neighbours are likely to lie on the same page of the file.
        distinct = sorted({*values})
        for start in range(0, len(distinct), ASKED_AT_ONCE):
            part = distinct[start : start + ASKED_AT_ONCE]
            yield from self.query(sql.format(", ".join("?" * len(part))), part)

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows.

        rows (Iterable[int]): The rows.
        RETURNS (dict[int, list[Entry]]): By row, in the order of CUI and alias.
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

    def rows_of(self, cui: str) -> list[int]:
        """Return the rows of the names of a concept, ascending."""
        sql = (
            "SELECT DISTINCT row FROM aliases JOIN concepts ON id = concept "
            "WHERE cui = ? AND row IS NOT NULL ORDER BY row"
        )
        return [row for (row,) in self.query(sql, [cui])]

    def rows_of_keys(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Find which tokenised names are rows.

        keys (Iterable[bytes]): From `build.name_key`.
        RETURNS (dict[bytes, int]): Those that are.
        """
        sql = "SELECT key, row FROM rows WHERE key IN ({})"
        return dict(self.query_many(sql, keys))

    def types(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the semantic types of some concepts.

        cuis (Iterable[str]): Their ids.
        RETURNS (dict[str, list[str]]): By id; without those that have none.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for cui, kind in self.query_many(
            "SELECT cui, type FROM types JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY type",
            cuis,
        ):
            found[cui].append(kind)
        return dict(found)

    def codes(self, cuis: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Return the codes of some concepts.

        cuis (Iterable[str]): Their ids.
        RETURNS (dict[str, dict[str, list[str]]]): By id and source; without those that
            have none.
        """
        found: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for cui, source, code in self.query_many(
            "SELECT cui, source, code FROM codes JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY source, code",
            cuis,
        ):
            found[cui].setdefault(source, []).append(code)
        return dict(found)

    def cuis_of_code(self, source: str, code: str) -> list[str]:
        """Find the concepts that a code of a source means, sorted by id."""
        sql = (
            "SELECT cui FROM codes JOIN concepts ON id = concept "
            "WHERE source = ? AND code = ? ORDER BY cui"
        )
        return [cui for (cui,) in self.query(sql, [source, code])]

    def parents(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the ids one step up of some concepts; without those that have none."""
        found: dict[str, list[str]] = defaultdict(list)
        for cui, parent in self.query_many(
            "SELECT cui, parent FROM parents JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY parent",
            cuis,
        ):
            found[cui].append(parent)
        return dict(found)

    def children(self, cui: str) -> list[str]:
        """Return the ids one step down of a concept, sorted."""
        sql = (
            "SELECT cui FROM parents JOIN concepts ON id = concept "
            "WHERE parent = ? ORDER BY cui"
        )
        return [child for (child,) in self.query(sql, [cui])]

    def origins(self, kind: str) -> dict[int, list[str]]:
        """Return the languages, or the sources, of each origin of names.

        kind (str): One of `KINDS`.
        RETURNS (dict[int, list[str]]): By number of the origin.
        """
        found: dict[int, list[str]] = defaultdict(list)
        sql = "SELECT origin, value FROM origins WHERE kind = ? ORDER BY value"
        for origin, value in self.query(sql, [kind]):
            found[origin].append(value)
        return dict(found)

    def spellings(self, forms: Iterable[str]) -> dict[str, list[str]]:
        """Find which normalised forms are names, and how these are written.

        forms (Iterable[str]): From `forms.name_form`.
        RETURNS (dict[str, list[str]]): The aliases of each form that is a name, sorted.
        """
        found: dict[str, set] = defaultdict(set)
        sql = "SELECT form, alias FROM aliases WHERE form IN ({})"
        for form, alias in self.query_many(sql, forms):
            found[form].add(alias)
        return {form: sorted(aliases) for form, aliases in found.items()}

    def bearers(self, form: str) -> list[tuple[str, str]]:
        """Return the concepts whose names have a form, and these names."""
        sql = (
            "SELECT cui, alias FROM aliases JOIN concepts ON id = concept "
            "WHERE form = ? ORDER BY cui, alias"
        )
        return list(self.query(sql, [form]))

    def cuis(self) -> Iterator[str]:
        """Return the ids of all concepts, in the order in which they were added."""
        for (cui,) in self.query("SELECT cui FROM concepts ORDER BY id").fetchall():
            yield cui

    def concept(self, cui: str) -> Concept | None:
        """Look a concept up by its id, or by one that was retired for it.

        cui (str): The id.
        RETURNS (Concept | None): The concept, if there is one.
        """
        row = self.query("SELECT id FROM concepts WHERE cui = ?", [cui]).fetchone()
        if row is None:
            sql = "SELECT concept FROM retired WHERE cui = ?"
            row = self.query(sql, [cui]).fetchone()
        return None if row is None else self.numbered_concept(row[0])

    def current_cuis(self, cuis: Iterable[str]) -> dict[str, str]:
        """Find which ids were retired, and for which concepts."""
        sql = (
            "SELECT retired.cui, concepts.cui FROM retired "
            "JOIN concepts ON id = concept WHERE retired.cui IN ({})"
        )
        return dict(self.query_many(sql, cuis))

    def concepts(self) -> Iterator[Concept]:
        """Return all concepts, in the order in which they were added."""
        for (number,) in self.query("SELECT id FROM concepts ORDER BY id").fetchall():
            yield self.numbered_concept(number)

    def numbered_concept(self, number: int) -> Concept:
        """Read one concept whole.

        number (int): Of the concept.
        RETURNS (Concept): The concept.
        """

        def column(sql: str) -> list[str]:
            return [value for (value,) in self.query(sql, [number])]

        sql = "SELECT cui, definition FROM concepts WHERE id = ?"
        cui, definition = self.query(sql, [number]).fetchone()
        codes: dict[str, list[str]] = defaultdict(list)
        places: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}
        for kind, value, place in self.query(
            "SELECT kind, value, place FROM aliases "
            "JOIN origins ON origins.origin = aliases.origin "
            "WHERE concept = ? ORDER BY value, place",
            [number],
        ):
            places[kind].setdefault(value, []).append(place)
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
            languages=places["language"],
            sources=places["source"],
        )
