"""Parents of concepts that a vocabulary should not have: unknown ones, and circles."""

import sqlite3
from collections.abc import Iterable, Iterator

from .concepts import Concept

EXAMPLES = 2
PROBLEMS = {
    "ids of parents that are no concepts": (
        "SELECT parent, parent || ' of ' || min(child) FROM parents "
        "WHERE parent NOT IN (SELECT cui FROM concepts) GROUP BY parent"
    ),
    # read after `peel`
    "concepts in circles of parents": (
        "SELECT child, child || ' under ' || min(parent) FROM parents GROUP BY child"
    ),
}


def watch_parents(
    database: sqlite3.Connection, concepts: Iterable[Concept]
) -> Iterator[Concept]:
    """Yield concepts, and write their parents to a temporary database."""
    database.execute("CREATE TABLE concepts (cui)")
    database.execute("CREATE TABLE parents (child, parent)")
    for concept in concepts:
        database.execute("INSERT INTO concepts VALUES (?)", (concept.cui,))
        rows = ((concept.cui, parent) for parent in concept.parents)
        database.executemany("INSERT INTO parents VALUES (?, ?)", rows)
        yield concept


def describe_problems(database: sqlite3.Connection) -> list[str]:
    """Return a sentence for each kind of wrong parents, with two examples."""
    sentences = []
    for kind, sql in PROBLEMS.items():
        rows = database.execute(sql).fetchall()
        if rows:
            examples = ", ".join(example for _, example in rows[:EXAMPLES])
            sentences.append(f"{len(rows):,} {kind}, e.g. {examples}.")
        peel(database)
    return sentences


def peel(database: sqlite3.Connection) -> None:
    """Delete parents again and again until circles, and what is between two, remain."""
    database.execute("CREATE INDEX IF NOT EXISTS by_child ON parents (child)")
    database.execute("CREATE INDEX IF NOT EXISTS by_parent ON parents (parent)")
    while database.execute(
        "DELETE FROM parents WHERE parent NOT IN (SELECT child FROM parents) "
        "OR child NOT IN (SELECT parent FROM parents)"
    ).rowcount:
        pass
