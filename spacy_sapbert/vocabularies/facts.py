"""Facts of concepts in any order → concepts sorted by id.

Vocabularies are published as tables, as graphs, or with the children before their
parents. Their readers yield facts, which a temporary database sorts by concept.
"""

import marshal
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from ..io.temporary_db import open_temporary_db
from .concepts import (
    RELATIONS,
    Concept,
    clean_name,
    has_letter_or_digit,
    list_related_codes,
    set_related_codes,
)
from .report import Report

NAME, ALSO, TYPE, CODE, PARENT = "name", "also", "type", "code", "parent"
DEFINITION, RETIRED, KEEP = "definition", "retired", "keep"
REPLACED_BY, NODE, ABOVE, BRAND = "replaced by", "node", "above", "brand"
LINKS = {REPLACED_BY, NODE, ABOVE, BRAND}
ID = "id"  # of a concept, own or retired
STEPS = 20  # from a replaced id to the one of a concept
PACK = 1000  # facts that are stored together
BATCH = 200  # packs that are written together
Values = Sequence[Any]  # of a fact, without its id


class Fact(NamedTuple):
    """A property of a concept.

    Attributes:
        kind: NAME; ALSO for a further language or source of a name; TYPE, CODE, PARENT,
            DEFINITION, RETIRED; one of `RELATIONS` for a code that means another thing;
            KEEP for a concept, where names alone make none. Of ids that are not those
            of concepts: REPLACED_BY, with the id that replaced it; NODE, with the name
            of the concept's place in a hierarchy; ABOVE, of such a place, with the one
            above it; BRAND, with the id of a brand.
        value: The name, the code, or the id of the other concept.
        rank: Facts of one concept are sorted by it. The name with the lowest is
            preferred, and only the types with the lowest count.
        source, language: Of a name; source of a code; of RETIRED and REPLACED_BY the
            table or property of the release that says so.
    """

    cui: str
    kind: str
    value: str = ""
    rank: int = 0
    source: str = ""
    language: str = ""


# What is looked up: by kind the facts of a key, which are those of a concept.
Link = tuple[str, str, str, str, str, str, int]
TABLES = """
CREATE TABLE IF NOT EXISTS packs (cui, data);
CREATE TABLE IF NOT EXISTS facts (kind, key, cui, value, source, language, file);
"""
INSERT = "INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?)"


def store_facts(database: sqlite3.Connection, facts: Iterable[Fact]) -> None:
    """Add facts to a temporary database.

    The table `facts` has the links, with the other id as their key, and what else is
    looked up; `packs` has the facts of concepts.
    """
    for statement in filter(str.strip, TABLES.split(";")):
        database.execute(statement)
    links: list[Link] = []
    packs = pack_facts(facts, links)
    while batch := [*islice(packs, BATCH)]:
        database.executemany("INSERT INTO packs VALUES (?, ?)", batch)
        database.executemany(INSERT, links)
        links.clear()
    database.executemany(INSERT, links)


def pack_facts(facts: Iterable[Fact], links: list[Link]) -> Iterator[tuple[str, bytes]]:
    """Yield facts of one concept that follow each other as one row; collect links."""
    # marshal is twice as fast as JSON; only this process reads the temporary file
    last = ""
    pack: list[Any] = []
    for fact in facts:
        cui, kind = fact[0], fact[1]
        if kind in LINKS:
            links.append((kind, fact[2], cui, fact[2], fact[4], "", 0))
            continue
        if cui != last or len(pack) == PACK:
            if pack:
                yield last, marshal.dumps(pack)
            last, pack = cui, []
        pack.append(fact[1:])
    if pack:
        yield last, marshal.dumps(pack)


def index_facts(database: sqlite3.Connection) -> None:
    """Index what is looked up."""
    database.execute("CREATE INDEX IF NOT EXISTS by_key ON facts (kind, key, cui)")


def group_facts(
    database: sqlite3.Connection, where: str = ""
) -> Iterator[tuple[str, list[Values]]]:
    """Yield each id in order, with its facts, by rank and then as they were stored.

    `where` is the condition of SQL for the ids.
    """
    # SQLite compares texts by their UTF-8 bytes, Python by code point: the same
    sql = f"SELECT cui, data FROM packs {where} ORDER BY cui, rowid"
    for cui, rows in groupby(database.execute(sql), key=itemgetter(0)):
        facts = [fact for _, data in rows for fact in marshal.loads(data)]
        facts.sort(key=itemgetter(2))
        yield cui, facts


def build_concepts(
    facts: Iterable[Fact], report: Report, gate: str = ""
) -> Iterator[Concept]:
    """Build concepts of facts.

    Args:
        gate: Rule that counts the concepts without KEEP; empty = all are kept.

    Yields:
        Each concept that has a name, sorted by id.
    """
    with open_temporary_db() as database:
        store_facts(database, facts)
        yield from build_stored(database, report, gate)


def build_stored(
    database: sqlite3.Connection, report: Report, gate: str
) -> Iterator[Concept]:
    """Build concepts of the facts in a temporary database; see `build_concepts`."""
    index_facts(database)
    find_parents(database, report)
    find_retired(database, report, gate)
    for cui, facts in group_facts(database):
        concept = build_concept(cui, facts, report, gate)
        if concept is not None:
            yield concept


def build_concept(
    cui: str, facts: list[Values], report: Report, gate: str
) -> Concept | None:
    """Build a concept of its facts; None if it is left out, which is counted."""
    concept = Concept(cui, [])
    lists = {PARENT: concept.parents, RETIRED: concept.retired}
    places: dict[str, int] = {}
    codes: dict[str, list[str]] = defaultdict(list)
    languages: dict[str, list[int]] = defaultdict(list)
    sources: dict[str, list[int]] = defaultdict(list)
    related: list[tuple[str, str, str]] = []
    kept, texts = not gate, 0
    type_rank = None
    for kind, value, rank, source, language in facts:
        if kind == CODE:
            codes[source].append(value)
        elif kind in (NAME, ALSO):
            name = clean_name(value)
            if kind == NAME:
                if not name[:1].isalnum() and not has_letter_or_digit(name):
                    report.dropped["names without a letter or digit"] += 1
                    continue
                texts += 1
            elif name not in places:
                continue
            position = places.setdefault(name, len(places))
            if language:
                languages[language].append(position)
            if source:
                sources[source].append(position)
        elif kind == DEFINITION:
            concept.definition = concept.definition or value or None
        elif kind == KEEP:
            kept = True
        elif kind == TYPE:
            type_rank = rank if type_rank is None else type_rank
            if rank == type_rank:
                concept.types.append(value)
        elif kind in RELATIONS:
            related.append((kind, source, value))
        elif value != cui:
            lists[kind].append(value)
            if kind == RETIRED and source:
                concept.retired_by.setdefault(value, source)
    if not kept:
        report.dropped[gate] += 1
        return None
    report.dropped["repeated names"] += texts - len(places)
    if not places:
        report.dropped["concepts without a name"] += 1
        return None
    concept.aliases = [*places]
    for lists_by_key in (languages, sources):
        for key, positions in lists_by_key.items():
            if len(positions) > 1:
                lists_by_key[key] = sorted({*positions})
    for source, values in codes.items():
        if len(values) > 1:
            codes[source] = [*dict.fromkeys(values)]
    concept.languages, concept.sources = {**languages}, {**sources}
    concept.codes = {**codes}
    if related:
        set_related_codes(concept, related)
    for values in (concept.types, concept.parents, concept.retired):
        if len(values) > 1:
            values[:] = dict.fromkeys(values)
    return concept


def concept_facts(concept: Concept) -> list[Fact]:
    """Return the facts of a concept; a name has one source and language in a fact."""
    cui, aliases = concept.cui, concept.aliases
    sources, languages = [""] * len(aliases), [""] * len(aliases)
    facts = []
    for found, places in ((sources, concept.sources), (languages, concept.languages)):
        for label, numbers in places.items():
            for number in numbers:
                if not found[number]:
                    found[number] = label
                elif found is sources:
                    facts.append(Fact(cui, ALSO, aliases[number], 0, label))
                else:
                    facts.append(Fact(cui, ALSO, aliases[number], 0, "", label))
    labels = zip(aliases, sources, languages, strict=True)
    names = [Fact(cui, NAME, name, 0, *label) for name, *label in labels]
    facts[:0] = names
    for source, codes in concept.codes.items():
        facts += [Fact(cui, CODE, code, 0, source) for code in codes]
    for relation, source, code in list_related_codes(concept):
        facts.append(Fact(cui, relation, code, 0, source))
    for kind, values in ((TYPE, concept.types), (PARENT, concept.parents)):
        facts += [Fact(cui, kind, value) for value in values]
    for old in concept.retired:
        facts.append(Fact(cui, RETIRED, old, 0, concept.retired_by.get(old, "")))
    if concept.definition:
        facts.append(Fact(cui, DEFINITION, concept.definition))
    return facts


def find_parents(database: sqlite3.Connection, report: Report) -> None:
    """Store the parents of concepts, from their nodes in a hierarchy.

    Those are counted that the file does not have, or that were left out.
    """
    sql = (
        "SELECT count(*) FROM (SELECT DISTINCT cui, key FROM facts AS edge "
        "WHERE kind = :above AND key <> '' AND EXISTS (SELECT 1 FROM facts "
        "WHERE kind = :node AND key = edge.cui) AND NOT EXISTS "
        "(SELECT 1 FROM facts WHERE kind = :node AND key = edge.key))"
    )
    kinds = {"node": NODE, "above": ABOVE}
    ((report.dropped["parents that are no concepts"],),) = database.execute(sql, kinds)
    # CROSS JOIN keeps the order of the tables: each edge, then its ends
    rows = database.execute(
        "SELECT DISTINCT child.cui, parent.cui FROM facts AS edge "
        "CROSS JOIN facts AS child ON child.kind = :node AND child.key = edge.cui "
        "CROSS JOIN facts AS parent ON parent.kind = :node AND parent.key = edge.key "
        "WHERE edge.kind = :above ORDER BY child.cui, parent.cui",
        kinds,
    )
    store_facts(database, (Fact(child, PARENT, parent) for child, parent in rows))


def find_retired(database: sqlite3.Connection, report: Report, gate: str) -> None:
    """Store replaced ids as retired ids of the concepts that replaced them."""
    if not database.execute(
        "SELECT 1 FROM facts WHERE kind = ?", (REPLACED_BY,)
    ).fetchone():
        return
    replaced = "SELECT {} FROM facts WHERE kind = 'replaced by'"
    where = f"WHERE cui IN ({replaced.format('cui')} UNION {replaced.format('key')})"
    for cui, facts in group_facts(database, where):
        kinds = {kind for kind, *_ in facts}
        if NAME in kinds and (KEEP in kinds or not gate):
            database.execute(INSERT, (ID, cui, cui, cui, "", "", 0))

    def find_facts() -> Iterator[Fact]:
        for old, cui, rule in follow_replaced(database):
            if rule:
                report.dropped[rule] += 1
            else:
                yield Fact(cui, RETIRED, old, 0, describe_steps(database, old))

    store_facts(database, find_facts())


REPLACED = (
    "CREATE TABLE replaced AS SELECT cui AS old, key AS new, source, value AS id, "
    "file, rowid AS place FROM facts WHERE kind = 'replaced by'",
    "CREATE INDEX replaced_old ON replaced (old, new)",
    "CREATE VIEW live AS SELECT key AS id, cui FROM facts WHERE kind = 'id'",
)


def follow_replaced(database: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Follow each replaced id to the concept that it is now, by the facts `ID`.

    Yields:
        The id, the concept, and the rule that leaves the id out, or "".
    """
    for statement in REPLACED:
        database.execute(statement)
    # an id may have been replaced by one that was replaced itself
    rows = database.execute(
        "WITH RECURSIVE steps (old, id, number) AS ("
        "SELECT old, new, 1 FROM replaced "
        "WHERE NOT EXISTS (SELECT 1 FROM live WHERE live.id = old) "
        "UNION SELECT steps.old, new, number + 1 FROM steps "
        "JOIN replaced ON replaced.old = steps.id WHERE number <= :most "
        "AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = steps.id)), "
        "ends AS (SELECT steps.old, min(cui) AS first, max(cui) AS last FROM steps "
        "JOIN live ON live.id = steps.id GROUP BY steps.old) "
        "SELECT replaced.old, first, last, "
        "EXISTS (SELECT 1 FROM live WHERE live.id = replaced.old) "
        "FROM replaced LEFT JOIN ends ON ends.old = replaced.old "
        "GROUP BY replaced.old ORDER BY min(place)",
        {"most": STEPS},
    )
    for old, first, last, is_live in rows.fetchall():
        rule = ""
        if is_live:
            rule = "retired ids that a concept has"
        elif first is None:
            rule = "retired ids that lead to no concept"
        elif first != last:
            rule = "retired ids that lead to several concepts"
        yield old, first, rule


def describe_steps(database: sqlite3.Connection, old: str) -> str:
    """Return what replaced an id, for one of `follow_replaced` that leads to a concept.

    That is the source of one step, or "source: A → B; source: B → C".
    """
    sql = (
        "SELECT new, source, EXISTS (SELECT 1 FROM live WHERE id = new) "
        "FROM replaced WHERE old = ? ORDER BY new"
    )
    ways: dict[str, list[tuple[str, str, str]]] = {old: []}
    ids = [old]
    for id in ids:  # nearest first
        for new, source, ends in database.execute(sql, (id,)):
            way = [*ways[id], (source, id, new)]
            if ends and len(way) == 1:
                return str(source)
            if ends:
                return "; ".join(f"{source}: {a} → {b}" for source, a, b in way)
            if new not in ways and len(way) <= STEPS:
                ways[new] = way
                ids.append(new)
    return ""
