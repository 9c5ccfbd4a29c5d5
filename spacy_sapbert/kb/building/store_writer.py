"""Writes concepts.db, which is only read afterwards."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import Errors, SapbertError
from ...linking.surface_forms import name_form
from ...vocabularies.concepts import Concept
from ..schema import INDICES, KINDS, OVERLAY_TABLES, SCHEMA

UNKNOWN_ORIGIN = -1  # of a name without language and source


class StoreWriter:
    """Writes a concepts.db. Numbers continue those of the store that it belongs over.

    connection (sqlite3.Connection): From `create_store`.
    first_concept (int): Number of the first concept.
    first_row (int): Number of the first row.
    first_origin (int): Number of the first origin. There are few combinations of
        languages and sources, so each combination has a number.
    extends (bool): The file has concepts already, of which some may be written again.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        first_concept: int = 0,
        first_row: int = 0,
        first_origin: int = 0,
        *,
        extends: bool = False,
    ) -> None:
        self.extends = extends
        self.connection = connection
        self.next_concept = first_concept
        self.first_row = first_row
        self.first_origin = first_origin
        self.origins: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}

    def add(self, concept: Concept, rows: Sequence[int | None]) -> None:
        """Write one concept.

        concept (Concept): The concept.
        rows (Sequence[int | None]): The row of each alias; None = it has none.
        RAISES (SapbertError): If a concept with this id was written before.
        """
        number, run = self.remove(concept.cui), self.connection.executemany
        try:
            self.connection.execute(
                "INSERT INTO concepts VALUES (?, ?, ?, ?)",
                (number, concept.cui, concept.name, concept.definition),
            )
        except sqlite3.IntegrityError:
            raise SapbertError(Errors.E312.format(cui=concept.cui)) from None
        origins = self.number_origins(concept)
        names = enumerate(zip(concept.aliases, rows, origins, strict=True))
        run(
            "INSERT INTO aliases VALUES (?, ?, ?, ?, ?, ?)",
            (
                (number, place, alias, name_form(alias), row, origin)
                for place, (alias, row, origin) in names
            ),
        )
        insert = "INSERT OR IGNORE INTO {} VALUES (?, ?)".format
        run(insert("types"), ((number, kind) for kind in concept.types))
        run(insert("parents"), ((number, parent) for parent in concept.parents))
        run(insert("retired"), ((cui, number) for cui in concept.retired))
        run(
            "INSERT OR IGNORE INTO codes VALUES (?, ?, ?, ?)",
            (
                (number, source, code, rank)
                for source, codes in concept.codes.items()
                for rank, code in enumerate(codes)
            ),
        )

    def remove(self, cui: str) -> int:
        """Remove what an overlay that is continued has of a concept.

        Returns:
            The number of the concept, or the next number.
        """
        if not self.extends:
            self.next_concept += 1
            return self.next_concept - 1
        run = self.connection.execute
        found = run("SELECT id FROM concepts WHERE cui = ?", (cui,)).fetchone()
        if found is None:
            self.next_concept += 1
            return self.next_concept - 1
        for table in ("aliases", "types", "codes", "parents", "retired"):
            run(f"DELETE FROM {table} WHERE concept = ?", found)
        run("DELETE FROM concepts WHERE id = ?", found)
        return int(found[0])

    def number_origins(self, concept: Concept) -> list[int]:
        """Return the number of the languages and sources of each alias."""
        found: list[tuple[list[str], list[str]]] = [([], []) for _ in concept.aliases]
        for kind, values in enumerate((concept.languages, concept.sources)):
            for value, places in values.items():
                for place in places:
                    found[place][kind].append(value)
        return [
            self.origins.setdefault(
                (tuple(languages), tuple(sources)),
                self.first_origin + len(self.origins),
            )
            if languages or sources
            else UNKNOWN_ORIGIN
            for languages, sources in found
        ]

    def create_overlay_tables(self) -> None:
        """Create the tables that only an overlay has."""
        for statement in OVERLAY_TABLES.split(";\n"):
            self.connection.execute(statement)

    def replace(self, number: int) -> None:
        """Hide a concept of the base, which the overlay replaces or removes."""
        self.connection.execute("INSERT OR IGNORE INTO replaced VALUES (?)", (number,))

    def add_annotated(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Write how often each form was annotated with each concept."""
        self.connection.executemany(
            "INSERT INTO annotated VALUES (?, ?, ?)",
            ((*pair, count) for pair, count in sorted(counts.items())),
        )

    def finish(self, keys: Iterable[bytes]) -> None:
        """Write the keys of the rows, the origins and the indices.

        keys (Iterable[bytes]): Keys of the new rows, in order.
        """
        self.connection.executemany(
            "INSERT OR IGNORE INTO origins VALUES (?, ?, ?)",
            (
                (number, kind, value)
                for origin, number in self.origins.items()
                for kind, values in zip(KINDS, origin, strict=True)
                for value in values
            ),
        )
        self.connection.executemany(
            "INSERT INTO rows VALUES (?, ?)", enumerate(keys, self.first_row)
        )
        for statement in INDICES.strip().splitlines() * (not self.extends):
            self.connection.execute(statement)
        self.connection.execute("COMMIT")


@contextmanager
def open_writer(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file for one transaction.

    RAISES (SapbertError): If the system refuses, e.g. because the disk is full.
    """
    try:
        connection = sqlite3.connect(path)
        try:
            # The file is renamed only when it is complete, so no journal is needed.
            connection.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            )
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SapbertError(Errors.E004.format(path=path, reason=error)) from error


@contextmanager
def create_store(path: Path, **first: Any) -> Iterator[StoreWriter]:
    """Create a concepts.db.

    path (Path): The file.
    first (int): Numbers to begin with; see `StoreWriter`.
    YIELDS (StoreWriter): Inside a transaction; `finish` commits it.
    RAISES (SapbertError): If the system refuses, e.g. because the disk is full.
    """
    with open_writer(path) as connection:
        connection.executescript(SCHEMA)
        connection.execute("BEGIN")
        yield StoreWriter(connection, **first)


@contextmanager
def extend_store(path: Path, **first: Any) -> Iterator[StoreWriter]:
    """Open the concepts.db of an overlay to continue it; see `create_store`."""
    with open_writer(path) as connection:
        connection.execute("BEGIN")
        yield StoreWriter(connection, extends=True, **first)
