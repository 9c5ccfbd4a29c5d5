"""Writes concepts.db, which is only read afterwards."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ...errors import SapbertError, not_written
from ...linking.text import name_form, name_keys, read_mention, rules_of
from ...vocabularies.concepts import Concept, list_related_codes
from ..database import INDICES, KINDS, OVERLAY_TABLES, SCHEMA

UNKNOWN_ORIGIN = -1  # of a name without language and source
CONCEPTS_AT_ONCE = 2_000  # tokenised together

Item = TypeVar("Item")


@dataclass
class StoreWriter:
    """Writes a concepts.db, whose numbers continue those of the store below.

    Each of the few combinations of languages and sources has a number: an origin.
    """

    connection: sqlite3.Connection
    next_concept: int
    first_row: int
    first_origin: int
    origins: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = field(
        default_factory=dict
    )

    def add(self, concept: Concept, rows: Sequence[int | None]) -> None:
        """Write one concept, and the row of each alias; None = it has none."""
        number, run = self.next_concept, self.connection.executemany
        self.next_concept += 1
        try:
            self.connection.execute(
                "INSERT INTO concepts VALUES (?, ?, ?, ?)",
                (number, concept.cui, concept.name, concept.definition),
            )
        except sqlite3.IntegrityError:
            raise SapbertError(
                "E312",
                f"Expected each concept once, but {concept.cui} comes twice. Unite "
                "the vocabularies with `spacy sapbert concepts`.",
            ) from None
        origins, languages = self.number_origins(concept)
        run(
            "INSERT OR IGNORE INTO keys VALUES (?, ?, ?)",
            (
                (key, number, place)
                for place, alias in enumerate(concept.aliases)
                for text in dict.fromkeys((alias, read_mention(alias)))
                for key in name_keys(text, rules_of(languages[place]))
            ),
        )
        names = enumerate(zip(concept.aliases, rows, origins, strict=True))
        run(
            "INSERT INTO aliases VALUES (?, ?, ?, ?, ?)",
            (
                (number, place, alias, row, origin)
                for place, (alias, row, origin) in names
            ),
        )
        insert = "INSERT OR IGNORE INTO {} VALUES (?, ?)".format
        run(insert("types"), ((number, kind) for kind in concept.types))
        run(insert("parents"), ((number, parent) for parent in concept.parents))
        run(
            "INSERT OR IGNORE INTO retired VALUES (?, ?, ?)",
            ((c, number, concept.retired_by.get(c, "")) for c in concept.retired),
        )
        run(
            "INSERT OR IGNORE INTO codes VALUES (?, ?, ?, ?)",
            (
                (number, source, code, rank)
                for source, codes in concept.codes.items()
                for rank, code in enumerate(codes)
            ),
        )
        run(
            "INSERT OR IGNORE INTO related_codes VALUES (?, ?, ?, ?, ?)",
            (
                (number, *code, rank)
                for rank, code in enumerate(list_related_codes(concept))
            ),
        )

    def add_all(self, concepts: Iterable[Concept], rows: Iterable[int | None]) -> None:
        rest = iter(rows)
        for concept in concepts:
            self.add(concept, [*islice(rest, len(concept.aliases))])

    def number_origins(self, concept: Concept) -> tuple[list[int], list[list[str]]]:
        """Return the number of the origin of each alias, and its languages."""
        origins: list[tuple[list[str], list[str]]] = [([], []) for _ in concept.aliases]
        for kind, values in enumerate((concept.languages, concept.sources)):
            for value, places in values.items():
                for place in places:
                    origins[place][kind].append(value)
        numbers: list[int] = []
        for languages, sources in origins:
            origin = (tuple(languages), tuple(sources))
            new = self.first_origin + len(self.origins)
            known = languages or sources
            numbers.append(
                self.origins.setdefault(origin, new) if known else UNKNOWN_ORIGIN
            )
        return numbers, [languages for languages, _ in origins]

    def create_overlay_tables(self) -> None:
        for statement in OVERLAY_TABLES.split(";\n"):
            self.connection.execute(statement)

    def replace(self, number: int) -> None:
        """Hide a concept of the base, which the overlay replaces or removes."""
        self.connection.execute("INSERT OR IGNORE INTO replaced VALUES (?)", (number,))

    def add_counts(self, table: str, counts: Mapping[tuple[str, str], int]) -> None:
        """Write counts of concepts by text to `annotated` or `votes`."""
        self.connection.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)",
            ((*pair, count) for pair, count in sorted(counts.items())),
        )

    def finish(self, keys: Iterable[bytes]) -> None:
        """Write the keys of the new rows, in order, the origins and the indices."""
        self.connection.create_function("name_form", 1, name_form, deterministic=True)
        self.connection.execute(
            "INSERT INTO by_length (concept, place) SELECT concept, place FROM aliases "
            "ORDER BY length(alias), alias COLLATE NOCASE, concept, place"
        )
        self.connection.execute(
            "INSERT INTO words (rowid, form) SELECT number, name_form(alias) "
            "FROM by_length CROSS JOIN aliases USING (concept, place) ORDER BY number"
        )
        self.connection.execute("INSERT INTO words (words) VALUES ('optimize')")
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
        for statement in INDICES.strip().splitlines():
            self.connection.execute(statement)
        self.connection.execute("COMMIT")


@contextmanager
def create_store(
    path: Path, *, first_concept: int = 0, first_row: int = 0, first_origin: int = 0
) -> Iterator[StoreWriter]:
    """Create a concepts.db in a transaction, which `finish` commits."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            # The file is renamed only when it is complete, so no journal is needed.
            connection.executescript(
                f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA}"
            )
            connection.execute("BEGIN")
            yield StoreWriter(connection, first_concept, first_row, first_origin)
    except sqlite3.Error as error:
        raise not_written(path=path, reason=error) from error


def split_batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    stream = iter(items)
    while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
        yield batch


def not_readable(whose: str, fix: str) -> SapbertError:
    return SapbertError(
        "E311",
        f"Expected at least one name of {whose} that the encoder can read, but got "
        f"none. {fix} Or choose an encoder that was trained on its script.",
    )
