"""Facts of concepts in any order → concepts sorted by id.

Many vocabularies are published as tables: one of names, one of relations, one of maps.
Their readers yield facts, which a temporary database sorts by concept.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from ..errors import Errors, SapbertError
from ..linking.languages import CODES
from ..system.temporary_db import open_temporary_db
from .concepts import VALUES, Concept, clean_name, has_letter_or_digit
from .report import Report

NAME, TYPE, CODE, PARENT = "name", "type", "code", "parent"
DEFINITION, RETIRED, REPLACED_BY = "definition", "retired", "replaced by"
KEEP, DROP = "keep", "drop"
STEPS = 20  # ids between a replaced id and a concept; a hostile file has no end
RULE = "retired ids that lead to {}"
Rows = Iterable[tuple[Any, ...]]


class Fact(NamedTuple):
    """A property of a concept.

    Attributes:
        kind: NAME, TYPE, CODE, PARENT, DEFINITION or RETIRED; REPLACED_BY for an id
            that is no concept any more, with the id that replaced it as value; KEEP for
            a concept, where names alone make none; DROP to leave a concept out, with
            the rule as value.
        value: The name, the code, or the id of the other concept.
        rank: Facts of one concept are sorted by it. The name with the lowest is
            preferred, and only the types with the lowest count.
        source, language: Of a name; source of a code.
    """

    cui: str
    kind: str
    value: str = ""
    rank: int = 0
    source: str = ""
    language: str = ""


def language_code(language: str) -> str:
    """Return a language as UMLS writes it: "en", "en-US" and "ENG" → "ENG"."""
    primary = language.strip().replace("_", "-").partition("-")[0].lower()
    return "ENG" if primary == "en" else CODES.get(primary, primary).upper()


def build_concepts(
    facts: Iterable[Fact],
    report: Report,
    *,
    gate: str = "",
    keep: Callable[[Concept], str] | None = None,
) -> Iterator[Concept]:
    """Build concepts of facts.

    Args:
        gate: Rule that counts the concepts without KEEP; empty = all are kept.
        keep: Returns the rule that drops a concept, or "".

    Yields:
        Each concept that has a name, sorted by id.

    Raises:
        SapbertError: If a concept has too many facts; what the facts raise.
    """
    with open_temporary_db() as database:
        fields = "cui, kind, value, rank, source, language"
        database.execute(f"CREATE TABLE facts ({fields})")
        database.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", facts)
        retired = find_retired(database, report, gate)
        late = next(retired, None)
        select = f"SELECT {fields} FROM facts WHERE kind != ? ORDER BY cui, rank, rowid"
        # SQLite compares texts by their UTF-8 bytes, Python by code point: the same
        rows = database.execute(select, (REPLACED_BY,))
        for cui, group in groupby(rows, key=itemgetter(0)):
            while late is not None and late[0] < cui:
                report.dropped[RULE.format("no concept")] += 1
                late = next(retired, None)
            replaced: list[tuple[Any, ...]] = []
            while late is not None and late[0] == cui:
                replaced.append((cui, RETIRED, late[1], 0, "", ""))
                check_count(len(replaced), cui)
                late = next(retired, None)
            concept = build_concept(cui, chain(group, replaced), report, gate)
            if concept is None:
                report.dropped[RULE.format("no concept")] += len(replaced)
            elif rule := keep(concept) if keep else "":
                report.dropped[rule] += 1
            else:
                yield concept
        report.dropped[RULE.format("no concept")] += (late is not None) + sum(
            1 for _ in retired
        )


def build_concept(cui: str, rows: Rows, report: Report, gate: str) -> Concept | None:
    """Build a concept of its facts; None if it is left out, which is counted."""
    concept = Concept(cui, [])
    places: dict[str, int] = {}
    lists = {PARENT: concept.parents, RETIRED: concept.retired}
    languages: dict[str, set[int]] = {}
    sources: dict[str, set[int]] = {}
    kept, rule, texts = not gate, "", 0
    type_rank = None
    for count, (_, kind, value, rank, source, language) in enumerate(rows):
        if count > VALUES:
            check_count(count, cui)
        if kind == NAME:
            name = clean_name(value)
            if not has_letter_or_digit(name):
                report.dropped["names without a letter or digit"] += 1
                continue
            texts += 1
            place = places.setdefault(name, len(places))
            if language:
                languages.setdefault(language, set()).add(place)
            if source:
                sources.setdefault(source, set()).add(place)
        elif kind == CODE:
            concept.codes.setdefault(source, []).append(value)
        elif kind == DEFINITION:
            concept.definition = concept.definition or clean_name(value) or None
        elif kind == KEEP:
            kept = True
        elif kind == DROP:
            rule = rule or value
        elif kind == TYPE:
            type_rank = rank if type_rank is None else type_rank
            if rank == type_rank:
                concept.types.append(value)
        elif value != cui:
            lists[kind].append(value)
    if rule or not kept:
        report.dropped[rule or gate] += 1
        return None
    report.dropped["repeated names"] += texts - len(places)
    if not places:
        report.dropped["concepts without a name"] += 1
        return None
    report.rows_kept += len(places)
    concept.aliases = [*places]
    concept.languages = {key: sorted(found) for key, found in languages.items()}
    concept.sources = {key: sorted(found) for key, found in sources.items()}
    for source, found in concept.codes.items():
        concept.codes[source] = list(dict.fromkeys(found))
    for values in (concept.types, *lists.values()):
        values[:] = dict.fromkeys(values)
    return concept


def check_count(count: int, cui: str) -> None:
    """Check the number of facts of a concept."""
    if count > VALUES:
        raise SapbertError(Errors.E123.format(limit=VALUES, cui=cui[:40]))


def find_retired(
    database: sqlite3.Connection, report: Report, gate: str
) -> Iterator[tuple[str, str]]:
    """Find the concept that replaced an id, through ids that were replaced themselves.

    An id that was replaced by several, or that is a concept itself, e.g. a discouraged
    one, is counted and left out.

    Args:
        gate: See `build_concepts`.

    Returns:
        The concept and the retired id, sorted.
    """
    database.execute("CREATE TABLE replaced (old PRIMARY KEY, new) WITHOUT ROWID")
    database.execute(
        "INSERT INTO replaced SELECT cui, min(value) FROM facts WHERE kind = ? "
        "GROUP BY cui HAVING min(value) = max(value)",
        (REPLACED_BY,),
    )
    count = "SELECT (SELECT count(DISTINCT cui) FROM facts WHERE kind = ?) - count(*)"
    ((several,),) = database.execute(f"{count} FROM replaced", (REPLACED_BY,))
    report.dropped[RULE.format("several concepts")] += several
    database.execute(
        "CREATE TABLE live AS SELECT cui FROM facts "
        "WHERE cui IN (SELECT old FROM replaced) GROUP BY cui "
        "HAVING max(kind = ?) AND max(kind = ? OR ?) AND NOT max(kind = ?)",
        (NAME, KEEP, not gate, DROP),
    )
    done = database.execute("DELETE FROM replaced WHERE old IN (SELECT cui FROM live)")
    report.dropped["retired ids that a concept has"] += done.rowcount
    # each id has one successor, so that a step adds at most as many rows
    return database.execute(
        "WITH RECURSIVE chain (old, new, steps) AS ("
        "SELECT old, new, 1 FROM replaced UNION ALL "
        "SELECT chain.old, replaced.new, steps + 1 FROM chain "
        "JOIN replaced ON replaced.old = chain.new WHERE steps < ?) "
        "SELECT new, old FROM chain WHERE new NOT IN (SELECT old FROM replaced) "
        "ORDER BY new, old",
        (STEPS,),
    )
