"""Names from concepts of other vocabularies that are mapped to concepts of this one."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError
from ..io.temporary_db import open_temporary_db
from .concepts import PLACES, VALUES, Concept
from .ids import find_concepts, id_key, list_keys, split_id, store_concepts
from .merge import load_concept
from .report import Report, too_many_names

SHORT = 4  # characters; such names are abbreviations that mean many things


class Other(NamedTuple):
    """Another vocabulary.

    Attributes:
        concepts: Its concepts; their codes are cross references.
        mappings: Ids of equal concepts of any vocabularies, if it is a file of
            mappings.
    """

    path: Path
    concepts: Iterable[Concept]
    report: Report
    mappings: Iterable[tuple[str, str]] | None = None


def add_mapped_names(
    concepts: Iterable[Concept], others: Sequence[Other], *, add_unmapped: bool = False
) -> Iterator[Concept]:
    """Add the names of concepts of other vocabularies that are mapped to a concept.

    A concept is mapped to another if it has the id of the other as a code, or the other
    way round; a code that both have is no mapping. What is not certain is left out and
    counted: concepts that are mapped to several, names of at most four characters, and
    names that another concept has or would get.

    Args:
        concepts: The vocabulary, sorted by id.
        others: Other vocabularies. Mappings are read first, whatever their place.
        add_unmapped: Concepts that are mapped to none or to several are concepts too,
            to which those of the vocabularies after them may be mapped.

    Yields:
        The concepts with the names, which have their sources, and with the ids of the
        mapped concepts as codes; sorted by id.

    Raises:
        SapbertError: If no concept of another vocabulary is mapped, and unmapped ones
            are not added.
    """
    with open_temporary_db() as database:
        database.execute("CREATE TABLE names (form, cui)")
        store_concepts(database, store_names(database, concepts))
        database.execute("CREATE INDEX names_form ON names (form, cui)")
        database.execute("CREATE TABLE added (cui, file, alias, form, places, id)")
        database.execute("CREATE TABLE codes (cui, source, code)")
        for other in others:
            store_mappings(database, other)
        for file, other in enumerate(others):
            store_mapped(database, file, other, add_unmapped=add_unmapped)
        database.execute("CREATE INDEX added_cui ON added (cui)")
        database.execute("CREATE INDEX added_form ON added (form, cui)")
        database.execute("CREATE INDEX codes_cui ON codes (cui)")
        reports = [other.report for other in others]
        order = "cui" if add_unmapped else "rowid"  # the first ones are sorted
        sql = f"SELECT data FROM concepts ORDER BY {order}"
        for (data,) in database.execute(sql):
            concept = load_concept(data)
            add_names(database, concept, reports)
            yield concept


def store_names(
    database: sqlite3.Connection, concepts: Iterable[Concept]
) -> Iterator[Concept]:
    """Write the names of concepts to a database while they are read."""
    for concept in concepts:
        rows = ((alias.casefold(), concept.cui) for alias in concept.aliases)
        database.executemany("INSERT INTO names VALUES (?, ?)", rows)
        yield concept


def find_mapped(database: sqlite3.Connection, concept: Concept) -> set[str]:
    """Find the concepts of the vocabulary that a concept of another is mapped to.

    Returns:
        Ids; only the concept with the same id, if there is one.
    """
    concepts: set[str] = set()
    for key, is_id in list_keys(concept):
        if is_id and (same := find_concepts(database, key, codes=False)):
            return same
        concepts |= find_concepts(database, key, codes=is_id)
    return concepts


def store_mappings(database: sqlite3.Connection, other: Other) -> None:
    """Write the ids to which the ids of concepts are mapped as codes of these."""
    report = other.report
    for pair in other.mappings or ():
        keys = [id_key(id) for id in pair]
        of_keys = [find_concepts(database, key, codes=False) for key in keys]
        if all(of_keys):
            rule = "mappings between concepts of one vocabulary"
            report.drop(rule, pair[0], of_keys[0] | of_keys[1])
            continue
        for cuis, id, key in (
            (of_keys[0], pair[1], keys[1]),
            (of_keys[1], pair[0], keys[0]),
        ):
            for cui in cuis:
                report.counts["mappings that are used"] += 1
                database.execute("INSERT INTO ids VALUES (?, ?, ?)", (key, cui, False))
                row = cui, *split_id(id)
                database.execute("INSERT INTO codes VALUES (?, ?, ?)", row)


def store_mapped(
    database: sqlite3.Connection, file: int, other: Other, *, add_unmapped: bool
) -> None:
    """Write the names and ids of the concepts of another vocabulary that are mapped.

    Raises:
        SapbertError: If none is.
    """
    report = other.report
    stem = other.path.name.partition(".")[0]
    for concept in other.concepts:
        mapped = find_mapped(database, concept)
        if len(mapped) > 1:
            report.drop("concepts that are mapped to several", concept.cui, mapped)
        if len(mapped) != 1:
            if add_unmapped and other.mappings is None:
                report.counts["concepts added"] += 1
                concept.sources = concept.sources or {
                    stem: [*range(len(concept.aliases))]
                }
                store_concepts(database, store_names(database, [concept]))
            continue
        report.counts["concepts that are mapped"] += 1
        (cui,) = mapped
        long = [len(alias) > SHORT for alias in concept.aliases]
        short = len(long) - sum(long)
        report.dropped[f"names of at most {SHORT} characters"] += short
        places: list[dict[str, list[str]]] = [{} for _ in concept.aliases]
        for field in PLACES:
            for key, positions in getattr(concept, field).items():
                for position in positions:
                    places[position].setdefault(field, []).append(key)
        rows = (
            (
                *(cui, file, alias, alias.casefold()),
                *(json.dumps({"sources": [stem], **at}), concept.cui),
            )
            for alias, at, kept in zip(concept.aliases, places, long, strict=True)
            if kept
        )
        database.executemany("INSERT INTO added VALUES (?, ?, ?, ?, ?, ?)", rows)
        code = cui, *split_id(concept.cui)
        if code[1] and concept.cui != cui:
            database.execute("INSERT INTO codes VALUES (?, ?, ?)", code)
    if not (
        report.counts["concepts that are mapped"]
        or report.counts["mappings that are used"]
        or add_unmapped
    ):
        ids = database.execute("SELECT cui FROM concepts LIMIT 1").fetchone()
        example = ids[0][:40] if ids else "nothing"
        raise SapbertError(
            "E106",
            f"Expected concepts in {other.path} that are mapped to ids like "
            f"{repr(example)}, but got none. Pass a vocabulary whose cross references "
            "or codes have such ids, or a file of SSSOM that maps its ids, or remove "
            "`--xrefs`.",
        )


def add_names(
    database: sqlite3.Connection, concept: Concept, reports: Sequence[Report]
) -> None:
    """Add the names and codes that a database has for a concept."""
    cui = concept.cui
    where = {alias: position for position, alias in enumerate(concept.aliases)}
    own_forms = {alias.casefold() for alias in concept.aliases}
    places = {
        field: {key: set(found) for key, found in getattr(concept, field).items()}
        for field in PLACES
    }
    columns = "file, alias, form, places, id"
    sql = f"SELECT {columns} FROM added WHERE cui = ? ORDER BY rowid"
    for file, alias, form, data, id in database.execute(sql, (cui,)):
        report = reports[file]
        if alias not in where:
            if form in own_forms:
                report.dropped["repeated names"] += 1
                continue
            if others := find_others(database, "names", form, cui):
                report.drop("names of other concepts", id, {cui, *others}, alias)
                continue
            if others := find_others(database, "added", form, cui):
                report.drop("names of several concepts", id, {cui, *others}, alias)
                continue
            report.counts["names added"] += 1
            where[alias] = len(where)
            own_forms.add(form)
            if len(where) > VALUES:
                raise too_many_names(limit=VALUES, cui=cui[:40])
        for field, keys in json.loads(data).items():
            for key in keys:
                places[field].setdefault(key, set()).add(where[alias])
    concept.aliases = list(where)
    for field, found in places.items():
        setattr(concept, field, {key: sorted(each) for key, each in found.items()})
    sql = "SELECT DISTINCT source, code FROM codes WHERE cui = ? ORDER BY rowid"
    for source, code in database.execute(sql, (cui,)):
        known = concept.codes.setdefault(source, [])
        if code not in known:
            known.append(code)


def find_others(
    database: sqlite3.Connection, table: str, form: str, cui: str
) -> set[str]:
    """Find concepts with another id that have a name, in a table of names.

    Returns:
        None, one or two of them.
    """
    sql = f"SELECT min(cui), max(cui) FROM {table} WHERE form = ?"
    row = database.execute(sql, (form,)).fetchone()
    return {*row} - {cui, None}
