"""Ids that were replaced by others, from a file of two columns."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..io.tables import find_separator, split_rows
from ..io.temporary_db import open_temporary_db
from .concepts import VALUES, Concept
from .ids import find_concepts, id_key, rewrite_id, store_concepts
from .merge import load_concept
from .report import Report, read_good_lines, too_many_names

PAIR = 2  # ids of a line
STEPS = 20  # ids between a retired id and a concept; a hostile file has no end


def read_pairs(path: Path, report: Report) -> Iterator[tuple[str, str]]:
    """Read retired ids and the ids that replaced them.

    Args:
        path: Lines of two ids, with a tab or a comma between them; plain or `.gz`.

    Raises:
        SapbertError: With file and line, at the first bad line.
    """
    for number, line in read_good_lines(path, report):
        separator = find_separator(line, "\t,")
        _, fields = next(split_rows([(number, line)], separator, path))
        ids = [field.strip() for field in fields]
        if len(ids) == PAIR and all(ids):
            yield ids[0], ids[1]
        else:
            expected = "a retired id, a tab or comma, and the id that replaced it"
            report.bad_line(path, number, expected)


def add_retired_ids(
    concepts: Iterable[Concept], paths: Sequence[Path], reports: Sequence[Report]
) -> Iterator[Concept]:
    """Add retired ids to the concepts that replaced them.

    An id that was replaced several times is followed to the first concept of the
    vocabulary. Ids that a concept has, and ids that lead to no concept or to several,
    are counted and left out.

    Args:
        concepts: The vocabulary, sorted by id.
        paths: See `read_pairs`.
        reports: One for each path.

    Yields:
        The concepts with their retired ids.

    Raises:
        SapbertError: See `read_pairs`.
    """
    with open_temporary_db() as database:
        store_concepts(database, concepts)
        database.execute("CREATE TABLE replaced (file, id, old, new)")
        database.execute("CREATE TABLE retired (cui, id)")
        for file, (path, report) in enumerate(zip(paths, reports, strict=True)):
            rows = (
                (file, old, id_key(old), id_key(new))
                for old, new in read_pairs(path, report)
            )
            database.executemany("INSERT INTO replaced VALUES (?, ?, ?, ?)", rows)
        database.execute("CREATE INDEX replaced_old ON replaced (old, new)")

        def find_live(key: str) -> set[str]:
            return find_concepts(database, key, codes=False)

        sql = "SELECT min(rowid), file, id, old FROM replaced GROUP BY old"
        for _, file, old, key in database.execute(sql):
            cui, rule = find_replacement(database, key, find_live)
            if rule:
                reports[file].dropped[rule] += 1
                continue
            reports[file].counts["retired ids added"] += 1
            row = cui, rewrite_id(old, cui)
            database.execute("INSERT INTO retired VALUES (?, ?)", row)
        database.execute("CREATE INDEX retired_cui ON retired (cui)")
        sql = "SELECT id FROM retired WHERE cui = ? ORDER BY id"
        for (data,) in database.execute("SELECT data FROM concepts ORDER BY rowid"):
            concept = load_concept(data)
            for (id,) in database.execute(sql, (concept.cui,)):
                concept.retired.append(id)
                if len(concept.retired) > VALUES:
                    cui = concept.cui[:40]
                    raise too_many_names(limit=VALUES, cui=cui)
            yield concept


def find_replacement(
    database: sqlite3.Connection, old: str, find_live: Callable[[str], set[str]]
) -> tuple[str, str]:
    """Find the concept that replaced an id, through ids that were replaced themselves.

    Args:
        database: With a table `replaced` of the columns `old` and `new`.
        find_live: Returns the concepts with an id, at most two.

    Returns:
        Its id, and the rule that leaves the retired id out, or "".
    """
    if find_live(old):
        return "", "retired ids that a concept has"
    replacements: set[str] = set()
    visited, pending = {old}, [old]
    while pending and len(replacements) < 2:
        sql = "SELECT DISTINCT new FROM replaced WHERE old = ? LIMIT ?"
        for (new,) in database.execute(sql, (pending.pop(), STEPS)):
            if concepts := find_live(new):
                replacements |= concepts
            elif new not in visited and len(visited) <= STEPS:
                visited.add(new)
                pending.append(new)
    if not replacements:
        return "", "retired ids that lead to no concept"
    if len(replacements) > 1:
        return "", "retired ids that lead to several concepts"
    return replacements.pop(), ""
