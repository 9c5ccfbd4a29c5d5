"""What other files say of the concepts of a vocabulary: names, codes and retired ids.

The concepts are in a temporary database; queries find those that have an id, a code or
a name.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from ..io.tables.delimited import find_separator, split_rows
from ..io.temporary_db import open_temporary_db
from .concepts import Concept
from .facts import (
    ALSO,
    CODE,
    ID,
    INSERT,
    NAME,
    REPLACED_BY,
    RETIRED,
    Fact,
    build_concept,
    concept_facts,
    describe_steps,
    follow_replaced,
    group_facts,
    index_facts,
    store_facts,
)
from .ids import id_key, rewrite_id, split_id
from .report import Report, read_good_lines
from .sssom import EXACT, INVERSE, Mapping

SHORT = 4  # characters; such names are abbreviations that mean many things
RANK = 1  # of what other files add
PAIR = 2  # ids of a line
WHOLE = "whole"  # kind of the fact that has all fields of a concept
FIELDS = [each.name for each in fields(Concept)]
# Names that may be added: with the names that their concept has in any case, and the
# first and the last concept that have such a name or may get it.
ADDED = (
    "SELECT cui, file, kind, value, key, source, language, id, "
    "(SELECT json_group_array(value) FROM facts WHERE facts.kind = 'name' "
    "AND facts.key = new.key AND facts.cui = new.cui), "
    "(SELECT json_array(min(cui), max(cui)) FROM facts "
    "WHERE kind = 'name' AND key = new.key), "
    "(SELECT json_array(min(cui), max(cui)) FROM added WHERE key = new.key) "
    "FROM new ORDER BY rowid"
)


class Other(NamedTuple):
    """Another vocabulary.

    Attributes:
        concepts: Its concepts; their codes are cross references.
        mappings: Between concepts of any vocabularies, if it is a file of mappings.
    """

    path: Path
    concepts: Iterable[Concept]
    report: Report
    mappings: Iterable[Mapping] | None = None


def add_from_files(
    concepts: Iterable[Concept],
    others: Sequence[Other],
    retired: Sequence[tuple[Path, Report]],
    *,
    add_unmapped: bool = False,
) -> Iterator[Concept]:
    """Yield concepts, sorted, with retired ids and names of other vocabularies.

    Args:
        others: See `add_mapped_names`.
        retired: See `read_pairs`, each with its report.
        add_unmapped: See `add_mapped_names`.
    """
    with open_temporary_db() as database:
        database.execute("PRAGMA cache_size = -12288")  # ids are found in any order
        store_concepts(database, concepts, names=bool(others))
        index_facts(database)
        if retired:
            add_retired_ids(database, retired)
        if others:
            add_mapped_names(database, others, add_unmapped=add_unmapped)
        # almost in this order already: to sort what is stored would take more memory
        database.execute("CREATE INDEX packs_cui ON packs (cui)")
        for cui, ((_, values, *_), *added) in group_facts(database):
            concept = Concept(*values)
            if added:
                known = [fact[1:] for fact in concept_facts(concept)]
                united = build_concept(cui, [*known, *added], Report(), "")
                concept = united or concept
            yield concept


def store_concepts(
    database: sqlite3.Connection, concepts: Iterable[Concept], *, names: bool
) -> None:
    """Store concepts with the keys of their ids and codes, and the forms of names."""

    def list_whole() -> Iterator[Fact]:
        for concept in concepts:
            cui = concept.cui
            rows = [(kind, key, cui, "") for key, kind in list_keys(concept)]
            if names:
                rows += [(NAME, name.casefold(), cui, name) for name in concept.aliases]
            database.executemany(INSERT, [(*row, "", "", 0) for row in rows])
            values = [getattr(concept, name) for name in FIELDS]
            yield Fact(cui, WHOLE, values)  # type: ignore[arg-type]

    store_facts(database, list_whole())


def list_keys(concept: Concept) -> Iterator[tuple[str, str]]:
    """Yield the key of each id and code of a concept, and which of the two it is."""
    for id in (concept.cui, *concept.retired):
        yield id_key(id), ID
    for source, codes in concept.codes.items():
        for code in codes:
            yield id_key(code, source), CODE


def find_concepts(database: sqlite3.Connection, key: str, *, codes: bool) -> set[str]:
    """Find the concepts that have an id: the only one, or two of several.

    Args:
        key: From `id_key`.
        codes: Find concepts that have it as a code too.
    """
    sql = "SELECT DISTINCT cui FROM facts WHERE kind IN (?, ?) AND key = ? LIMIT 2"
    kinds = ID, CODE if codes else ID
    return {cui for (cui,) in database.execute(sql, (*kinds, key))}


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


def add_retired_ids(
    database: sqlite3.Connection, files: Sequence[tuple[Path, Report]]
) -> None:
    """Add retired ids to the concepts that replaced them.

    An id that was replaced several times is followed to the first concept of the
    vocabulary. Ids that a concept has, and ids that lead to no concept or to several,
    are counted and left out.
    """
    for file, (path, report) in enumerate(files):
        rows = (
            (REPLACED_BY, id_key(new), id_key(old), old, path.name, "", file)
            for old, new in read_pairs(path, report)
        )
        database.executemany(INSERT, rows)

    def find_facts() -> Iterator[Fact]:
        sql = "SELECT id, file FROM replaced WHERE old = ? ORDER BY place LIMIT 1"
        for key, cui, rule in follow_replaced(database):
            ((id, file),) = database.execute(sql, (key,))
            if rule:
                files[file][1].dropped[rule] += 1
                continue
            files[file][1].counts["retired ids added"] += 1
            database.execute(INSERT, (ID, key, cui, "", "", "", 0))
            said = describe_steps(database, key)
            yield Fact(cui, RETIRED, rewrite_id(id, cui), RANK, said)

    store_facts(database, sorted(find_facts()))


def add_mapped_names(
    database: sqlite3.Connection, others: Sequence[Other], *, add_unmapped: bool = False
) -> None:
    """Add the names of concepts of other vocabularies that are mapped to a concept.

    A concept is mapped to another if it has the id of the other as a code, or the other
    way round; a code that both have is no mapping. What is not certain is left out and
    counted: concepts that are mapped to several, names of at most four characters, and
    names that another concept has or would get. The names have their sources, and the
    ids of the mapped concepts become codes.

    Args:
        others: Other vocabularies. Mappings are read first, whatever their place.
        add_unmapped: Concepts that are mapped to none or to several are concepts too,
            to which those of the vocabularies after them may be mapped.
    """
    for other in others:
        store_facts(database, find_codes(database, other))
    database.execute(
        "CREATE TABLE added (kind, key, cui, value, source, language, file, id)"
    )
    for file, other in enumerate(others):
        facts = map_concepts(database, file, other, add_unmapped=add_unmapped)
        store_facts(database, facts)
    database.execute("CREATE INDEX added_key ON added (key, cui)")
    # sorted first: with what is looked up for them, the rows would take more memory
    database.execute("CREATE TABLE new AS SELECT * FROM added ORDER BY cui, rowid")
    store_facts(database, find_names(database, [other.report for other in others]))


def find_codes(database: sqlite3.Connection, other: Other) -> Iterator[Fact]:
    """Yield the ids to which the ids of concepts are mapped as codes of these."""
    report = other.report
    for row in other.mappings or ():
        if not row.subject:
            continue  # a text
        inverse = INVERSE.get(row.relation, row.relation)
        keys = [id_key(row.subject), id_key(row.target)]
        of_keys = [find_concepts(database, key, codes=False) for key in keys]
        if all(of_keys):
            rule = "mappings between concepts of one vocabulary"
            report.drop(rule, row.subject, of_keys[0] | of_keys[1])
            continue
        for cuis, id, key, relation in (
            (of_keys[0], row.target, keys[1], row.relation),
            (of_keys[1], row.subject, keys[0], inverse),
        ):
            source, code = split_id(id)
            for cui in cuis:
                report.counts["mappings that are used"] += 1
                if relation != EXACT:
                    yield Fact(cui, relation, code, RANK, source)
                    continue
                database.execute(INSERT, (CODE, key, cui, "", "", "", 0))
                yield Fact(cui, CODE, code, RANK, source)


def find_mapped(database: sqlite3.Connection, concept: Concept) -> set[str]:
    """Find the concepts of the vocabulary that a concept of another is mapped to.

    If there is a concept with the same id, it is the only one.
    """
    concepts: set[str] = set()
    for key, kind in list_keys(concept):
        if kind == ID and (same := find_concepts(database, key, codes=False)):
            return same
        concepts |= find_concepts(database, key, codes=kind == ID)
    return concepts


def map_concepts(
    database: sqlite3.Connection, file: int, other: Other, *, add_unmapped: bool
) -> Iterator[Fact]:
    """Store the names of concepts that are mapped, and yield their ids as codes."""
    report, stem = other.report, other.path.name.partition(".")[0]
    sql = "INSERT INTO added VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    for concept in other.concepts:
        concept.sources = concept.sources or {stem: [*range(len(concept.aliases))]}
        mapped = find_mapped(database, concept)
        if len(mapped) > 1:
            report.drop("concepts that are mapped to several", concept.cui, mapped)
        if len(mapped) != 1:
            if add_unmapped and other.mappings is None:
                report.counts["concepts added"] += 1
                store_concepts(database, [concept], names=True)
            continue
        report.counts["concepts that are mapped"] += 1
        (cui,) = mapped
        short = sum(len(alias) <= SHORT for alias in concept.aliases)
        report.dropped[f"names of at most {SHORT} characters"] += short
        rows = [
            (
                *(kind, alias.casefold(), cui, alias),
                *(source or stem if kind == NAME else source, language),
                *(file, concept.cui),
            )
            for _, kind, alias, _, source, language in concept_facts(concept)
            if kind in (NAME, ALSO) and len(alias) > SHORT
        ]
        database.executemany(sql, rows)
        source, code = split_id(concept.cui)
        if source and concept.cui != cui:
            yield Fact(cui, CODE, code, RANK, source)
    if not (
        report.counts["concepts that are mapped"]
        or report.counts["mappings that are used"]
        or add_unmapped
    ):
        ids = database.execute("SELECT cui FROM packs LIMIT 1").fetchone()
        example = ids[0][:40] if ids else "nothing"
        raise SapbertError(
            "E106",
            f"Expected concepts in {other.path} that are mapped to ids like "
            f"{repr(example)}, but got none. Pass a vocabulary whose cross references "
            "or codes have such ids, or a file of SSSOM that maps its ids, or remove "
            "`--xrefs`.",
        )


def find_names(
    database: sqlite3.Connection, reports: Sequence[Report]
) -> Iterator[Fact]:
    """Yield the names that were added and that no other concept has."""
    for cui, group in groupby(database.execute(ADDED), key=itemgetter(0)):
        names: dict[str, set[str]] = {}  # of the concept, by form
        for _, file, kind, alias, form, source, language, id, *found in group:
            report = reports[file]
            known, have, may_get = ({*json.loads(some)} for some in found)
            of_form = names.setdefault(form, known)
            if alias not in of_form:
                if kind == ALSO:
                    continue
                if of_form:
                    report.dropped["repeated names"] += 1
                    continue
                if others := have - {cui, None}:
                    report.drop("names of other concepts", id, {cui, *others}, alias)
                    continue
                if others := may_get - {cui}:
                    report.drop("names of several concepts", id, {cui, *others}, alias)
                    continue
                report.counts["names added"] += 1
                of_form.add(alias)
            yield Fact(cui, kind, alias, RANK, source, language)
