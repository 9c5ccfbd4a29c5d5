"""concepts.db: the concepts and names of a knowledge base, in SQLite."""

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..linking.candidates import Entry
from ..linking.name_variants import Names
from ..linking.surface_forms import is_abbreviation
from ..vocabularies.concepts import Concept
from .database import Database, is_encodable
from .folder.records import Counts, OverlayRecord
from .schema import KINDS

QUERY_VALUES = 500  # values in one SQL statement
OF_CONCEPTS = (
    "SELECT cui, {0} FROM {1} JOIN concepts ON id = concept "
    "WHERE cui IN ({{}}) ORDER BY {0}"
)


def name_key(token_ids: Sequence[int]) -> bytes:
    """Return the key of a row: 16 bytes, equal for equal token ids."""
    ids = array("q", token_ids).tobytes()
    return hashlib.blake2b(ids, digest_size=16).digest()


class Store:
    """Reads concepts and names, with SQL that stands here alone.

    Args:
        database: The concepts.db, with or without an overlay.
        counts: Of the knowledge base as it was built.
        overlay: Of the overlay.
    """

    def __init__(
        self, database: Database, counts: Counts, overlay: OverlayRecord | None = None
    ) -> None:
        self.database = database
        self.query = database.query
        self.base_rows = counts.rows
        self.base_concepts = counts.concepts
        self.total_rows = counts.rows + (overlay.rows if overlay else 0)

    @cached_property
    def total_concepts(self) -> int:
        """One more than the greatest number of a concept."""
        names = ["main", *(["overlay"] if self.database.overlay else [])]
        last = "SELECT coalesce(max(id), -1) + 1 FROM {}.concepts"
        return max(self.query(last.format(name))[0][0] for name in names)

    def check(self) -> None:
        """Read the whole of the file, and check that it is consistent.

        Raises:
            SapbertError: If SQLite finds a damage, or a number is not one of meta.json.
        """
        names = ["main", *(["overlay"] if self.database.overlay else [])]
        for name in names:
            ((result,),) = self.query(f"PRAGMA {name}.quick_check(1)")
            if result != "ok":
                raise self.database.damaged(result)
        self.check_numbers("main.concepts", "id", range(self.base_concepts), all=True)
        self.check_numbers("main.rows", "row", range(self.base_rows), all=True)
        self.check_numbers("main.aliases", "row", range(self.base_rows))
        if len(names) > 1:
            added = range(self.base_rows, self.total_rows)
            self.check_numbers("overlay.rows", "row", added, all=True)
            self.check_numbers("overlay.aliases", "row", range(self.total_rows))

    def check_numbers(
        self, table: str, column: str, expected: range, *, all: bool = False
    ) -> None:
        """Check the least and the greatest number of an indexed column.

        Args:
            expected: Where the numbers must be.
            all: The first and the last of these numbers must be there.
        """
        sql = "SELECT (SELECT min({0}) FROM {1}), (SELECT max({0}) FROM {1})"
        ((low, high),) = self.query(sql.format(column, table))
        found = range(0) if low is None else range(low, high + 1)
        inside = not found or (found[0] in expected and found[-1] in expected)
        if not inside or (all and found != expected):
            raise self.database.damaged(
                f"`{table.partition('.')[2]}.{column}` has other numbers than meta.json"
            )

    def query_many(self, sql: str, values: Iterable[Any]) -> Iterator[Any]:
        """Run a statement for many values; `{}` in it stands for their list."""
        # In order: neighbours are likely to be on the same page of the file.
        distinct = sorted({*values})
        for start in range(0, len(distinct), QUERY_VALUES):
            part = distinct[start : start + QUERY_VALUES]
            marks = ", ".join("?" * len(part))
            yield from self.query(sql.format(marks), part)

    def column(self, sql: str, value: Any) -> list[Any]:
        """Return the first column of a query with one value."""
        return [row[0] for row in self.query(sql, [value])]

    def lists(self, sql: str, values: Iterable[Any]) -> dict[str, list[str]]:
        """Return the second column of a query as lists, by the first column."""
        found: dict[str, list[str]] = defaultdict(list)
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
            found[row].append(Entry(row, cui, name, alias, place == 0, concept, origin))
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
        return self.lists(OF_CONCEPTS.format("type", "types"), cuis)

    def codes(self, cuis: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Return the codes by concept and source, in order; others are left out."""
        found: dict[str, dict[str, list[str]]] = defaultdict(dict)
        # With an overlay SQLite reads all codes if `rank` is not selected too.
        for cui, source, code, _ in self.query_many(
            "SELECT cui, source, code, rank FROM codes JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY source, rank, code",
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
        return self.lists(OF_CONCEPTS.format("parent", "parents"), cuis)

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

    def spellings(
        self, forms: Iterable[str], *, without: Iterable[int] = ()
    ) -> dict[str, list[str]]:
        """Return the aliases of each normalised form that is a name.

        forms (Iterable[str]): From `surface_forms.name_form`.
        without (Iterable[int]): Origins of names that do not count.
        RETURNS (dict[str, list[str]]): Distinct aliases, sorted, by form.
        """
        numbers = ", ".join(str(int(number)) for number in sorted(without))
        sql = "SELECT form, alias FROM aliases WHERE form IN ({}) "
        found = self.lists(f"{sql}AND origin NOT IN ({numbers})", forms)
        return {form: sorted({*aliases}) for form, aliases in found.items()}

    def starts_of_names(self, starts: Iterable[str]) -> set[str]:
        """Return with which of some texts the normalised form of a name starts."""
        sql = (
            "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM aliases "
            "WHERE form >= value AND form < value || char(1114111))"
        )
        return {*self.column(sql, json.dumps([*starts]))}

    def names(
        self, forms: Iterable[str], *, without: Iterable[int] = ()
    ) -> dict[str, Names]:
        """Return the rows and concepts of each form that is a name; see `spellings`.

        Abbreviations do not count, since they must be written exactly so.
        """
        numbers = ", ".join(str(int(number)) for number in sorted(without))
        sql = (
            "SELECT form, alias, row, concept FROM aliases "
            "WHERE form IN ({}) AND row IS NOT NULL "
        )
        found: dict[str, Names] = {}
        for form, alias, row, concept in self.query_many(
            f"{sql}AND origin NOT IN ({numbers})", forms
        ):
            if not is_abbreviation(alias):
                names = found.setdefault(form, Names(set(), set()))
                names.rows.add(row)
                names.concepts.add(concept)
        return found

    def concept(self, cui: str) -> Concept | None:
        """Return the concept with an id or retired id; None if there is none."""
        if not is_encodable(cui):
            return None
        for sql in (
            "SELECT id FROM concepts WHERE cui = ?",
            "SELECT concept FROM retired WHERE cui = ?",
        ):
            for number in self.column(sql, cui):
                return self.read_concept(number)
        return None

    def current_cuis(self, cuis: Iterable[str]) -> dict[str, str]:
        """Return the current id of each id that was retired."""
        sql = (
            "SELECT retired.cui, concepts.cui FROM retired "
            "JOIN concepts ON id = concept WHERE retired.cui IN ({})"
        )
        return dict(self.query_many(sql, filter(is_encodable, cuis)))

    def known_cuis(self, cuis: Iterable[str]) -> set[str]:
        """Return those ids that are of a concept, or were retired for one."""
        cuis = [*filter(is_encodable, cuis)]
        sql = "SELECT cui FROM concepts WHERE cui IN ({})"
        current = {cui for (cui,) in self.query_many(sql, cuis)}
        return current | self.current_cuis(cuis).keys()

    def cuis(self) -> Iterator[str]:
        """Yield the ids of all concepts in the order in which they were added."""
        sql = "SELECT cui FROM concepts ORDER BY id"
        return (cui for (cui,) in self.query(sql))

    def count_concepts(self) -> int:
        """Return the number of concepts."""
        ((count,),) = self.query("SELECT count(*) FROM concepts")
        return int(count)

    def concepts(self) -> Iterator[Concept]:
        """Yield all concepts in the order in which they were added."""
        sql = "SELECT id FROM concepts ORDER BY id"
        for (number,) in self.query(sql):
            yield self.read_concept(number)

    def read_concept(self, number: int) -> Concept:
        """Read one concept by its number."""
        sql = "SELECT cui, definition FROM concepts WHERE id = ?"
        found = self.query(sql, [number])
        sql = "SELECT place, alias FROM aliases WHERE concept = ? ORDER BY place"
        names = self.query(sql, [number])
        if not found or not names or any(i != n for i, (n, _) in enumerate(names)):
            raise self.database.damaged(f"concept {number} is not complete")
        ((cui, definition),) = found
        places: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}
        for kind, value, place in self.query(
            "SELECT kind, value, place FROM aliases "
            "JOIN origins ON origins.origin = aliases.origin "
            "WHERE concept = ? ORDER BY value, place",
            [number],
        ):
            if kind in places:
                places[kind].setdefault(value, []).append(place)
        table = "SELECT {0} FROM {1} WHERE concept = ? ORDER BY {0}".format
        return Concept(
            cui=cui,
            aliases=[alias for _, alias in names],
            types=self.column(table("type", "types"), number),
            codes=self.codes([cui]).get(cui, {}),
            parents=self.column(table("parent", "parents"), number),
            definition=definition,
            retired=self.column(table("cui", "retired"), number),
            languages=places["language"],
            sources=places["source"],
        )

    def numbers(self, sql: str, values: Sequence[Any] = ()) -> np.ndarray:
        """Return the distinct numbers of a column, ascending, int64. Shape: (n,)."""
        # Some filters leave millions of rows: no list of tuples is made of them.
        found = np.fromiter(
            (n for (n,) in self.database.stream(sql, values)), dtype=np.int64
        )
        return np.unique(found)

    def next_origin(self) -> int:
        """Return one more than the greatest number of an origin."""
        sql = "SELECT coalesce(max(origin), -1) + 1 FROM origins"
        return int(self.query(sql)[0][0])

    def numbers_of_cuis(self, cuis: Iterable[str]) -> dict[str, int]:
        """Return the number of each concept by its present id."""
        sql = "SELECT cui, id FROM concepts WHERE cui IN ({})"
        return dict(self.query_many(sql, cuis))

    def names_of_cuis(self, cuis: Iterable[str]) -> dict[str, str]:
        """Return the preferred name of each concept by its present id."""
        sql = "SELECT cui, name FROM concepts WHERE cui IN ({})"
        return dict(self.query_many(sql, cuis))

    def preferred_names(self, page: int) -> Iterator[tuple[str, str]]:
        """Yield id and preferred name of every concept, by id, `page` at a time."""
        sql = "SELECT cui, name FROM concepts WHERE cui > ? ORDER BY cui LIMIT ?"
        last = ""
        while found := self.query(sql, [last, page]):
            yield from found
            last = found[-1][0]

    def aliases(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the names of concepts by id."""
        sql = "SELECT cui, alias FROM aliases JOIN concepts ON id = concept "
        return self.lists(f"{sql} WHERE cui IN ({{}})", cuis)

    def roots(self, most: int) -> list[tuple[str, str]]:
        """Return id and name of concepts with children and without parents, by name."""
        sql = (
            "SELECT cui, name FROM concepts "
            "WHERE id NOT IN (SELECT concept FROM parents) "
            "AND EXISTS (SELECT 1 FROM parents WHERE parent = cui) "
            "ORDER BY name LIMIT ?"
        )
        return self.query(sql, [most])

    def names_from(self, first: str, last: str, most: int) -> list[tuple[Any, ...]]:
        """Return form, cui, preferred name and name of a range of normalised names.

        Args:
            first: The first form.
            last: All forms are before it.
            most: Number of names.
        """
        sql = (
            "SELECT form, cui, name, alias FROM aliases JOIN concepts ON id = concept "
            "WHERE form >= ? AND form < ? ORDER BY form LIMIT ?"
        )
        return self.query(sql, [first, last, most])

    def count_types(self) -> dict[str, int]:
        """Return the number of concepts by semantic type, the most frequent first."""
        sql = "SELECT type, count(*) FROM types GROUP BY type ORDER BY 2 DESC, 1"
        return dict(self.query(sql))

    def count_sources(self) -> dict[str, int]:
        """Return the number of names by source, the largest first."""
        sql = (
            "SELECT value, count(*) FROM aliases "
            "JOIN origins ON origins.origin = aliases.origin "
            "WHERE kind = 'source' GROUP BY value ORDER BY count(*) DESC, value"
        )
        return dict(self.query(sql))

    def distinct_types(self) -> set[str]:
        """Return all semantic types."""
        return {kind for (kind,) in self.query("SELECT DISTINCT type FROM types")}

    def sources_of_codes(self) -> list[str]:
        """Return the vocabularies of which there are codes, sorted."""
        # from one to the next in the index, without reading all codes
        sql = "SELECT min(source) FROM codes WHERE source > ?"
        found: list[str] = []
        while source := self.query(sql, [found[-1] if found else ""])[0][0]:
            found.append(source)
        return found

    def annotated(self, forms: Iterable[str]) -> dict[str, Mapping[str, int]]:
        """Return how often forms were annotated with each concept; "" = with none."""
        found: dict[str, dict[str, int]] = {}
        if self.database.overlay is not None:
            sql = "SELECT form, cui, count FROM annotated WHERE form IN ({})"
            for form, cui, count in self.query_many(sql, forms):
                found.setdefault(form, {})[cui] = count
        return {**found}

    def annotated_concepts(self, cuis: Iterable[str]) -> dict[str, int]:
        """Return how often each concept was annotated, if ever."""
        if self.database.overlay is None:
            return {}
        sql = "SELECT cui, sum(count) FROM annotated WHERE cui IN ({}) GROUP BY cui"
        return dict(self.query_many(sql, cuis))
