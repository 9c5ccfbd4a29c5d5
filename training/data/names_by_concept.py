"""Names of concepts on the disk, found by the hash of the id or drawn by number."""

import json
import sqlite3
from collections.abc import Iterable, Iterator

from spacy_sapbert.vocabularies.concepts import Concept
from training.data.pairs import distinct_names
from training.data.tokenized_pairs import hash_text

Named = tuple[str, list[str]]  # a concept's id and its names


class NamedConcepts:
    """Names by the hash of the concept's id, on the disk.

    scratch (sqlite3.Connection): An empty database.
    """

    def __init__(self, scratch: sqlite3.Connection) -> None:
        self.scratch = scratch
        self.count = 0
        # rows get the numbers 1, 2, 3 …, by which one is drawn at random
        scratch.execute("CREATE TABLE concepts (label UNIQUE, cui, names)")

    def add(self, concepts: Iterable[Concept]) -> Iterator[Concept]:
        """Take concepts, and pass them on."""
        for concept in concepts:
            names = json.dumps(distinct_names(concept))
            row = (hash_text(concept.cui), concept.cui, names)
            self.scratch.execute("INSERT OR IGNORE INTO concepts VALUES (?, ?, ?)", row)
            yield concept
        found = self.scratch.execute("SELECT max(rowid) FROM concepts").fetchone()
        self.count = found[0] or 0

    def look_up(self, where: str, value: int) -> Named | None:
        """Find a concept by its `label` or `rowid`; None if there is none."""
        query = f"SELECT cui, names FROM concepts WHERE {where} = ?"
        found = self.scratch.execute(query, (int(value),)).fetchone()
        return None if found is None else (found[0], json.loads(found[1]))
