"""concepts.db: the concepts and names of a knowledge base, in SQLite."""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..linking.candidates import Entry
from ..linking.text import Rules, rules_of
from ..vocabularies.concepts import Concept
from .database import KINDS, Database, is_encodable
from .folder.records import Counts, OverlayRecord

QUERY_VALUES = 500  # values in one SQL statement
MOST_NAMES = 2_000  # with the words of a search, that are read
ENTRIES = (
    "SELECT row, cui, name, alias, place = 0, concept, origin FROM aliases "
    "JOIN concepts ON concepts.id = aliases.concept WHERE "
)
# five times as fast as `Entry._make`
make_entry = partial(tuple.__new__, Entry)


def row_key(token_ids: Sequence[int]) -> bytes:
    """Return the key of a row: 16 bytes, equal for equal token ids."""
    ids = array("q", token_ids).tobytes()
    return hashlib.blake2b(ids, digest_size=16).digest()


def group_pairs(pairs: Iterable[tuple[Any, str]]) -> dict[Any, list[str]]:
    """Return the second values of pairs as lists, by the first value."""
    lists: dict[Any, list[str]] = defaultdict(list)
    for key, value in pairs:
        lists[key].append(value)
    return dict(lists)


class NameOfKey(NamedTuple):
    """One name of one concept; the numbers are those of `Entry`."""

    alias: str
    row: int | None  # None = the encoder cannot read it
    concept: int
    origin: int


class Store:
    """Reads concepts and names, with SQL that stands here alone."""

    def __init__(
        self, database: Database, counts: Counts, overlay: OverlayRecord | None = None
    ) -> None:
        self.database = database
        self.query = database.query
        self.base_rows = counts.rows
        self.total_rows = counts.rows + (overlay.rows if overlay else 0)

    @cached_property
    def total_concepts(self) -> int:
        """One more than the greatest number of a concept."""
        names = ["main", *(["overlay"] if self.database.overlay else [])]
        last = "SELECT coalesce(max(id), -1) + 1 FROM {}.concepts"
        return max(self.column(last.format(name))[0] for name in names)

    def query_many(self, sql: str, values: Iterable[Any]) -> Iterator[Any]:
        """Run a statement for many values; `{}` in it stands for their list."""
        # In order: neighbours are likely to be on the same page of the file.
        distinct = sorted({*values})
        starts = range(0, len(distinct), QUERY_VALUES)
        parts = (distinct[start : start + QUERY_VALUES] for start in starts)
        return chain.from_iterable(
            self.query(sql.format(", ".join("?" * len(part))), part) for part in parts
        )

    def column(self, sql: str, *values: Any) -> list[Any]:
        return [row[0] for row in self.query(sql, values)]

    def lists(self, sql: str, values: Iterable[Any]) -> dict[str, list[str]]:
        """Return the second column of a query as lists, by the first column."""
        return group_pairs(self.query_many(sql, values))

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every name on some rows, by row, in the order of CUI and alias."""
        by_row: dict[int, list[Entry]] = {}
        found = self.query_many(f"{ENTRIES} row IN ({{}})", map(int, rows))
        for entry in map(make_entry, found):  # many for a text
            by_row.setdefault(entry[0], []).append(entry)
        for entries in by_row.values():
            if len(entries) > 1:
                entries.sort(key=lambda entry: (entry.cui, entry.alias))
        return by_row

    def entries_of(self, cui: str) -> list[Entry]:
        """Return the names of a concept that are on rows of the index, by row."""
        sql = f"{ENTRIES} cui = ? AND row IS NOT NULL ORDER BY row, alias"
        return [*map(Entry._make, self.query(sql, [cui]))]

    def hidden_rows(self) -> list[int]:
        """Return the rows that have no name, since an overlay replaces concepts."""
        if self.database.overlay is None:
            return []
        return self.column(
            "SELECT DISTINCT row FROM main.aliases AS old WHERE row IS NOT NULL "
            "AND concept IN (SELECT concept FROM overlay.replaced) "
            "AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.row = old.row)"
        )

    def rows_of_keys(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Return the row of each key (from `row_key`) that has one."""
        sql = "SELECT key, row FROM rows WHERE key IN ({})"
        return dict(self.query_many(sql, keys))

    def rows_by_key(self, most: int) -> list[int]:
        """Return rows with a name in the order of their keys: as good as random."""
        sql = (
            "SELECT row FROM rows "
            "WHERE EXISTS (SELECT 1 FROM aliases WHERE aliases.row = rows.row) "
            "ORDER BY key LIMIT ?"
        )
        return self.column(sql, most)

    def types(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the semantic types by concept; those without types are left out."""
        numbers = self.numbers_of_cuis(cuis)
        found = self.types_of(numbers.values())
        return {cui: found[n] for cui, n in numbers.items() if n in found}

    def codes(self, cuis: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """Return the codes by concept and source, in order; others are left out."""
        numbers = self.numbers_of_cuis(cuis)
        found = self.codes_of(numbers.values())
        return {cui: found[n] for cui, n in numbers.items() if n in found}

    def types_of(self, concepts: Iterable[int]) -> dict[int, list[str]]:
        """Return what `types` does, by the numbers of concepts."""
        sql = "SELECT concept, type FROM types WHERE concept IN ({}) ORDER BY type"
        return group_pairs(self.query_many(sql, concepts))

    def codes_of(self, concepts: Iterable[int]) -> dict[int, dict[str, list[str]]]:
        """Return what `codes` does, by the numbers of concepts."""
        found: dict[int, dict[str, list[str]]] = defaultdict(dict)
        # With an overlay SQLite reads all codes if `rank` is not selected too.
        for number, source, code, _ in self.query_many(
            "SELECT concept, source, code, rank FROM codes WHERE concept IN ({}) "
            "ORDER BY source, rank, code",
            concepts,
        ):
            found[number].setdefault(source, []).append(code)
        return dict(found)

    def find_codes(
        self, sources: Sequence[str], codes: Sequence[str]
    ) -> list[tuple[str, str, str]]:
        """Return concept, source and code of some codes in some sources, sorted."""
        # `source` is named, since the index of the codes begins with it
        of_sources, of_codes = (", ".join("?" * len(part)) for part in (sources, codes))
        sql = (
            "SELECT cui, source, code FROM codes JOIN concepts ON id = concept "
            f"WHERE source IN ({of_sources}) AND code IN ({of_codes}) "
            "ORDER BY cui, source, code"
        )
        return self.query(sql, [*sources, *codes])

    def cuis_with_code(self, sources: Sequence[str], code: str) -> list[str]:
        """Return the ids of the concepts with a code in any of some sources, sorted."""
        return [*dict.fromkeys(cui for cui, *_ in self.find_codes(sources, [code]))]

    def find_related_codes(
        self, sources: Sequence[str], code: str
    ) -> list[tuple[str, str]]:
        """Return the concepts of which a code is a related one, and its relation."""
        marks = ", ".join("?" * len(sources))
        sql = (
            "SELECT cui, relation FROM related_codes "
            f"JOIN concepts ON id = concept WHERE source IN ({marks}) AND code = ? "
            "ORDER BY cui, relation"
        )
        # With an overlay SQLite reads all codes if it is asked for distinct rows.
        return [*dict.fromkeys(self.query(sql, [*sources, code]))]

    def parents(self, cuis: Iterable[str]) -> dict[str, list[str]]:
        """Return the ids of the parents by concept; those without are left out."""
        sql = (
            "SELECT cui, parent FROM parents JOIN concepts ON id = concept "
            "WHERE cui IN ({}) ORDER BY parent"
        )
        return self.lists(sql, cuis)

    def children(self, cui: str) -> list[str]:
        sql = (
            "SELECT cui FROM parents JOIN concepts ON id = concept "
            "WHERE parent = ? ORDER BY cui"
        )
        return self.column(sql, cui)

    def relate(self, cui: str, others: Sequence[str]) -> list[str | None]:
        """Return what each other concept is to a concept: see `RelatedConcept`."""
        parents = self.parents([cui, *others])
        parents_of_cui = {*parents.get(cui, ())}
        relations: list[str | None] = []
        for other in others:
            parents_of_other = {*parents.get(other, ())}
            if other in parents_of_cui:
                relations.append("parent")
            elif cui in parents_of_other:
                relations.append("child")
            else:
                is_sibling = not parents_of_cui.isdisjoint(parents_of_other)
                relations.append("sibling" if is_sibling else None)
        return relations

    def origins(self, kind: str) -> dict[int, list[str]]:
        """Return the values of one of `KINDS` by number of the origin."""
        sql = "SELECT origin, value FROM origins WHERE kind = ? ORDER BY value"
        return group_pairs(self.query(sql, [kind]))

    def names_of_keys(self, keys: Iterable[int]) -> dict[int, list[NameOfKey]]:
        """Return the names with each key (from `text.name_keys`), in a fixed order."""
        names: dict[int, list[NameOfKey]] = defaultdict(list)
        for key, *values in self.query_many(
            "SELECT key, alias, row, keys.concept, origin FROM keys JOIN aliases "
            "ON aliases.concept = keys.concept AND aliases.place = keys.place "
            "WHERE key IN ({})",
            keys,
        ):
            names[key].append(NameOfKey(*values))
        order = attrgetter("alias", "concept")
        return {key: sorted(same, key=order) for key, same in names.items()}

    def keys(self) -> Iterator[int]:
        """Yield the keys of the names of all origins."""
        for (key,) in self.database.stream("SELECT key FROM keys"):
            yield key

    def names_by_concept(self) -> Iterator[tuple[int, str, int]]:
        """Yield the number of the concept, the alias and the origin of each name."""
        sql = "SELECT concept, alias, origin FROM aliases ORDER BY concept, place"
        yield from self.database.stream(sql)

    def names_of_concept(self, number: int) -> list[tuple[str, int, int | None]]:
        """Return alias, origin and row of the names of the concept with a number."""
        sql = "SELECT alias, origin, row FROM aliases WHERE concept = ? ORDER BY place"
        return self.query(sql, [number])

    @cached_property
    def rules(self) -> dict[int, Rules]:
        """The rules for the words of names, by number of their origin."""
        origins = self.origins("language").items()
        return {number: rules_of(languages) for number, languages in origins}

    def rules_of(self, origin: int) -> Rules:
        return self.rules.get(origin, "english")

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
        sql = (
            "SELECT retired.cui, concepts.cui FROM retired "
            "JOIN concepts ON id = concept WHERE retired.cui IN ({})"
        )
        return dict(self.query_many(sql, filter(is_encodable, cuis)))

    def find_replacements(self, cuis: Iterable[str]) -> dict[str, str]:
        """Return what of the release says that ids were retired, if that is known."""
        sql = "SELECT cui, said FROM retired WHERE cui IN ({}) AND said <> ''"
        return dict(self.query_many(sql, filter(is_encodable, cuis)))

    def known_cuis(self, cuis: Iterable[str]) -> set[str]:
        """Return those ids that are of a concept, or were retired for one."""
        cuis = [*filter(is_encodable, cuis)]
        sql = "SELECT cui FROM concepts WHERE cui IN ({})"
        current = {cui for (cui,) in self.query_many(sql, cuis)}
        return current | self.current_cuis(cuis).keys()

    def cuis(self) -> Iterator[str]:
        """Yield the ids of all concepts in the order in which they were added."""
        yield from self.column("SELECT cui FROM concepts ORDER BY id")

    def count_concepts(self) -> int:
        return int(self.column("SELECT count(*) FROM concepts")[0])

    def concepts(self) -> Iterator[Concept]:
        """Yield all concepts in the order in which they were added."""
        for number in self.column("SELECT id FROM concepts ORDER BY id"):
            yield self.read_concept(number)

    def read_concept(self, number: int) -> Concept:
        sql = "SELECT cui, definition FROM concepts WHERE id = ?"
        ((cui, definition),) = self.query(sql, [number])
        aliases = "SELECT alias FROM aliases WHERE concept = ? ORDER BY place"
        places: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}
        for kind, value, place in self.query(
            "SELECT kind, value, place FROM aliases "
            "JOIN origins ON origins.origin = aliases.origin "
            "WHERE concept = ? ORDER BY value, place",
            [number],
        ):
            if kind in places:
                places[kind].setdefault(value, []).append(place)
        retired = "SELECT cui, said FROM retired WHERE concept = ? ORDER BY cui"
        said = dict(self.query(retired, [number]))
        table = "SELECT {0} FROM {1} WHERE concept = ? ORDER BY {0}".format
        related: dict[str, dict[str, list[str]]] = {}
        for relation, source, code in self.query(
            "SELECT relation, source, code FROM related_codes WHERE concept = ? "
            "ORDER BY rank",
            [number],
        ):
            related.setdefault(relation, {}).setdefault(source, []).append(code)
        return Concept(
            cui=cui,
            aliases=self.column(aliases, number),
            types=self.column(table("type", "types"), number),
            codes=self.codes([cui]).get(cui, {}),
            parents=self.column(table("parent", "parents"), number),
            definition=definition,
            retired=[*said],
            languages=places["language"],
            sources=places["source"],
            related_codes=related,
            retired_by={cui: text for cui, text in said.items() if text},
        )

    def numbers(self, sql: str, values: Sequence[Any] = ()) -> np.ndarray:
        """Return the distinct numbers of a column, ascending, int64. Shape: (n,)."""
        # Some filters leave millions of rows: no list of tuples is made of them.
        stream = (number for (number,) in self.database.stream(sql, values))
        return np.unique(np.fromiter(stream, dtype=np.int64))

    def next_origin(self) -> int:
        return int(self.column("SELECT coalesce(max(origin), -1) + 1 FROM origins")[0])

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
        while names := self.query(sql, [last, page]):
            yield from names
            last = names[-1][0]

    def aliases(self, cuis: Iterable[str]) -> dict[str, list[str]]:
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

    def names_with_types(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield each name with its semantic types and its sources, joined by `|`."""
        sql = (
            "SELECT alias, "
            "(SELECT group_concat(type, '|') FROM types "
            "WHERE types.concept = aliases.concept), "
            "(SELECT group_concat(value, '|') FROM origins "
            "WHERE origins.origin = aliases.origin AND kind = 'source') FROM aliases "
            "ORDER BY aliases.concept, place"
        )
        yield from self.database.stream(sql, ())

    def names_with(
        self,
        words: Sequence[str],
        k: int,
        *,
        at_start: bool = False,
        unfinished: bool = True,
        types: Sequence[str] = (),
    ) -> list[tuple[str, str, str]]:
        """Return cui, preferred name and found name of concepts, the shortest first.

        Args:
            words: Folded, as in `name_form`. Each begins a word of the name.
            k: Number of concepts.
            at_start: Whether the name must begin with these words, in this order.
            unfinished: Whether the last word may be the beginning of one.
            types: Allowed semantic types; empty = all.
        """
        phrases = [" ".join(words)] if at_start else words
        marks = ["*"] * (len(phrases) - 1) + ["*" if unfinished else ""]
        start = "^ " if at_start else ""
        match = " AND ".join(
            f'{start}"{phrase}" {mark}'
            for phrase, mark in zip(phrases, marks, strict=True)
        )
        found: list[tuple[str, str, str]] = []
        for name in ("main", "overlay") if self.database.overlay else ("main",):
            conditions = ["true"]
            if name == "main" and self.database.overlay:
                conditions += ["id NOT IN (SELECT concept FROM overlay.replaced)"]
            if types:
                allowed = ", ".join("?" * len(types))
                conditions += [
                    f"EXISTS (SELECT 1 FROM {name}.types AS t "
                    f"WHERE t.concept = c.id AND type IN ({allowed}))"
                ]
            stream = self.database.stream(
                "SELECT cui, name, alias FROM (SELECT rowid AS number "
                f"FROM {name}.words WHERE words MATCH ? ORDER BY rowid LIMIT ?) "
                f"CROSS JOIN {name}.by_length USING (number) "
                f"CROSS JOIN {name}.aliases USING (concept, place) "
                f"CROSS JOIN {name}.concepts AS c ON c.id = concept "
                f"WHERE {' AND '.join(conditions)}",
                [match, MOST_NAMES, *types],
            )
            with closing(stream):
                new: dict[str, tuple[str, str, str]] = {}
                for row in stream:
                    new.setdefault(row[0], row)
                    if len(new) == k:
                        break
            found += new.values()
        return sorted(found, key=lambda row: len(row[2]))[:k]

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
        return {*self.column("SELECT DISTINCT type FROM types")}

    @cached_property
    def sources_of_codes(self) -> list[str]:
        """Return the vocabularies of which there are codes, sorted."""
        # from one to the next in the index, without reading all codes
        sql = "SELECT min(source) FROM codes WHERE source > ?"
        sources: list[str] = []
        while source := self.column(sql, sources[-1] if sources else "")[0]:
            sources.append(source)
        return sources

    @cached_property
    def sources_of_related_codes(self) -> list[str]:
        """Return the vocabularies of which there are related codes, sorted."""
        return self.column("SELECT DISTINCT source FROM related_codes ORDER BY source")

    def count_codes(self, sources: Sequence[str]) -> int:
        """Return the number of distinct codes of vocabularies; of none of concepts."""
        if not sources:
            return self.count_concepts()
        sql = "SELECT count(DISTINCT code) FROM codes WHERE source IN ({})"
        marks = ", ".join("?" * len(sources))
        return int(self.column(sql.format(marks), *sources)[0])

    def list_codes(self, sources: Sequence[str], most: int, first: int) -> list[str]:
        """Return codes of vocabularies in order, from place `first`; of none, cuis."""
        if not sources:
            sql = "SELECT cui FROM concepts ORDER BY cui LIMIT ? OFFSET ?"
            return self.column(sql, most, first)
        marks = ", ".join("?" * len(sources))
        sql = (
            f"SELECT DISTINCT code FROM codes WHERE source IN ({marks}) "
            "ORDER BY code LIMIT ? OFFSET ?"
        )
        return self.column(sql, *sources, most, first)

    def annotated(self, forms: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return how often forms were annotated with each concept; "" = with none."""
        return self.counts("annotated", "form", forms)

    def votes(self, keys: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return what documents say that mentions mean, see `find_decision`, by key."""
        return self.counts("votes", "key", keys)

    def counts(
        self, table: str, column: str, values: Iterable[str]
    ) -> dict[str, dict[str, int]]:
        """Return the counts of concepts, "" = none, in a table of the overlay."""
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        if self.database.overlay is not None:
            sql = f"SELECT {column}, cui, count FROM {table} WHERE {column} IN ({{}})"
            for value, cui, count in self.query_many(sql, values):
                counts[value][cui] = count
        return dict(counts)

    def annotated_concepts(self, cuis: Iterable[str]) -> dict[str, int]:
        if self.database.overlay is None:
            return {}
        sql = "SELECT cui, sum(count) FROM annotated WHERE cui IN ({}) GROUP BY cui"
        return dict(self.query_many(sql, cuis))
