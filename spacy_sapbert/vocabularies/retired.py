"""Ids that were replaced by others, from a file of two columns."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..io.tables.delimited import find_separator, split_rows
from .facts import RETIRED, Fact, describe_steps, follow_replaced, store_facts
from .ids import id_key, rewrite_id
from .known_concepts import KnownConcepts
from .report import Report, read_good_lines

PAIR = 2  # ids of a line


def read_pairs(path: Path, report: Report | None = None) -> Iterator[tuple[str, str]]:
    """Read ids and the ids that replaced them, or of which they are aliases.

    Args:
        path: Lines of two ids, with a tab or a comma between them; plain or `.gz`.

    Raises:
        SapbertError: With file and line, at the first bad line.
    """
    report = report or Report()
    for number, line in read_good_lines(path, report):
        separator = find_separator(line, "\t,")
        _, fields = next(split_rows([(number, line)], separator, path))
        ids = [field.strip() for field in fields]
        if len(ids) == PAIR and all(ids):
            yield ids[0], ids[1]
        else:
            expected = "an id, a tab or comma, and the id that takes its place"
            report.bad_line(path, number, expected)


def add_retired_ids(known: KnownConcepts, files: Sequence[tuple[Path, Report]]) -> None:
    """Add retired ids to the concepts that replaced them.

    An id that was replaced several times is followed to the first concept of the
    vocabulary. Ids that a concept has, and ids that lead to no concept or to several,
    are counted and left out.

    Args:
        files: See `read_pairs`, each with its report.
    """
    database = known.database
    database.execute("CREATE VIEW live AS SELECT key AS id, cui FROM ids WHERE is_id")
    database.execute("CREATE TABLE replaced (old, new, id, file, source)")
    for file, (path, report) in enumerate(files):
        rows = (
            (id_key(old), id_key(new), old, file, path.name)
            for old, new in read_pairs(path, report)
        )
        database.executemany("INSERT INTO replaced VALUES (?, ?, ?, ?, ?)", rows)

    def find_facts() -> Iterator[Fact]:
        sql = "SELECT id, file FROM replaced WHERE old = ? ORDER BY rowid LIMIT 1"
        for key, cui, rule in follow_replaced(database):
            ((id, file),) = database.execute(sql, (key,))
            if rule:
                files[file][1].dropped[rule] += 1
                continue
            files[file][1].counts["retired ids added"] += 1
            database.execute("INSERT INTO ids VALUES (?, ?, ?)", (key, cui, True))
            said = describe_steps(database, key)
            yield Fact(cui, RETIRED, rewrite_id(id, cui), 1, said)

    store_facts(database, sorted(find_facts()))
