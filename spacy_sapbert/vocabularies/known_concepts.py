"""A vocabulary in a temporary database, to which other files add facts."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import fields

from .concepts import Concept
from .facts import Fact, build_concept, concept_facts, group_facts, store_facts
from .ids import id_key
from .report import Report

WHOLE = "whole"  # kind of the fact that has all fields of a concept
FIELDS = [each.name for each in fields(Concept)]


class KnownConcepts:
    """The concepts of a vocabulary, found by their ids, codes and names.

    Attributes:
        database: With the tables of `store_facts`; `ids`, the keys of ids and codes;
            `names`, with their forms without case, if they are asked for.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        concepts: Iterable[Concept],
        *,
        names: bool,
    ) -> None:
        self.database, self.has_names = database, names
        database.execute("PRAGMA cache_size = -12288")  # ids are looked up in any order
        database.execute("CREATE TABLE ids (key, cui, is_id)")
        database.execute("CREATE TABLE names (form, cui, alias)")
        self.add(concepts)
        database.execute("CREATE INDEX ids_key ON ids (key, is_id, cui)")
        database.execute("CREATE INDEX names_form ON names (form, cui, alias)")

    def add(self, concepts: Iterable[Concept]) -> None:
        """Add concepts."""
        store_facts(self.database, self.index(concepts))

    def index(self, concepts: Iterable[Concept]) -> Iterator[Fact]:
        """Yield the facts of concepts, and write their keys and names."""
        run = self.database.executemany
        for concept in concepts:
            cui = concept.cui
            keys = [(key, cui, is_id) for key, is_id in list_keys(concept)]
            run("INSERT INTO ids VALUES (?, ?, ?)", keys)
            if self.has_names:
                names = [(alias.casefold(), cui, alias) for alias in concept.aliases]
                run("INSERT INTO names VALUES (?, ?, ?)", names)
            values = [getattr(concept, name) for name in FIELDS]
            yield Fact(cui, WHOLE, values)  # type: ignore[arg-type]

    def find(self, key: str, *, codes: bool) -> set[str]:
        """Find the concepts that have an id.

        Args:
            key: From `id_key`.
            codes: Find concepts that have it as a code too.

        Returns:
            The only one, or two of several.
        """
        sql = "SELECT DISTINCT cui FROM ids WHERE key = ? AND is_id >= ? LIMIT 2"
        return {cui for (cui,) in self.database.execute(sql, (key, not codes))}

    def build(self) -> Iterator[Concept]:
        """Yield the concepts with all facts, sorted by id."""
        # almost in this order already: to sort what is stored would take more memory
        self.database.execute("CREATE INDEX packs_cui ON packs (cui)")
        for cui, ((_, values, *_), *added) in group_facts(self.database):
            concept = Concept(*values)
            if added:
                known = [fact[1:] for fact in concept_facts(concept)]
                united = build_concept(cui, [*known, *added], Report(), "")
                concept = united or concept
            yield concept


def list_keys(concept: Concept) -> Iterator[tuple[str, bool]]:
    """Yield the key of each id and code of a concept, and whether it is an id."""
    for id in (concept.cui, *concept.retired):
        yield id_key(id), True
    for source, codes in concept.codes.items():
        for code in codes:
            yield id_key(code, source), False
