"""Names from concepts of other vocabularies that are mapped to concepts of this one."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from ..system.temporary_db import open_temporary_db
from .concepts import PLACES, VALUES, Concept
from .ids import find_concepts, list_keys, split_id, store_concepts
from .merge import load_concept
from .report import Report

SHORT = 4  # characters; such names are abbreviations that mean many things


class Other(NamedTuple):
    """Another vocabulary.

    path (Path): Its file or folder.
    concepts (Iterable[Concept]): Its concepts; their codes are cross references.
    report (Report): Counts what is added.
    """

    path: Path
    concepts: Iterable[Concept]
    report: Report


def add_mapped_names(
    concepts: Iterable[Concept], others: Sequence[Other]
) -> Iterator[Concept]:
    """Add the names of concepts of other vocabularies that are mapped to a concept.

    A concept is mapped to another if it has the id of the other as a code, or the other
    way round; a code that both have is no mapping. What is not certain is left out and
    counted: concepts that are mapped to several, names of at most four characters, and
    names that another concept has or would get.

    concepts (Iterable[Concept]): The vocabulary, sorted by id.
    others (Sequence[Other]): Other vocabularies.
    YIELDS (Concept): The concepts with the names, which have their sources, and with
        the ids of the mapped concepts as codes.
    RAISES (SapbertError): If no concept of another vocabulary is mapped.
    """
    with open_temporary_db() as database:
        database.execute("CREATE TABLE names (form, cui)")
        store_concepts(database, store_names(database, concepts))
        database.execute("CREATE INDEX names_form ON names (form, cui)")
        database.execute("CREATE TABLE added (cui, file, alias, form, places)")
        database.execute("CREATE TABLE codes (cui, source, code)")
        for file, other in enumerate(others):
            store_mapped(database, file, other)
        database.execute("CREATE INDEX added_cui ON added (cui)")
        database.execute("CREATE INDEX added_form ON added (form, cui)")
        database.execute("CREATE INDEX codes_cui ON codes (cui)")
        reports = [other.report for other in others]
        for (data,) in database.execute("SELECT data FROM concepts ORDER BY rowid"):
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

    RETURNS (set[str]): Ids; only the concept with the same id, if there is one.
    """
    found: set[str] = set()
    for key, is_id in list_keys(concept):
        if is_id and (same := find_concepts(database, key, codes=False)):
            return same
        found |= find_concepts(database, key, codes=is_id)
    return found


def store_mapped(database: sqlite3.Connection, file: int, other: Other) -> None:
    """Write the names and ids of the concepts of another vocabulary that are mapped.

    RAISES (SapbertError): If none is.
    """
    report = other.report
    stem = other.path.name.partition(".")[0]
    for concept in other.concepts:
        mapped = find_mapped(database, concept)
        if len(mapped) > 1:
            report.dropped["concepts that are mapped to several"] += 1
        if len(mapped) != 1:
            continue
        report.counts["concepts that are mapped"] += 1
        (cui,) = mapped
        long = [len(alias) > SHORT for alias in concept.aliases]
        short = len(long) - sum(long)
        report.dropped[f"names of at most {SHORT} characters"] += short
        places: list[dict[str, list[str]]] = [{} for _ in concept.aliases]
        for field in PLACES:
            for key, found in getattr(concept, field).items():
                for place in found:
                    places[place].setdefault(field, []).append(key)
        rows = (
            (cui, file, alias, alias.casefold(), json.dumps({"sources": [stem], **at}))
            for alias, at, kept in zip(concept.aliases, places, long, strict=True)
            if kept
        )
        database.executemany("INSERT INTO added VALUES (?, ?, ?, ?, ?)", rows)
        code = cui, *split_id(concept.cui)
        if code[1] and concept.cui != cui:
            database.execute("INSERT INTO codes VALUES (?, ?, ?)", code)
    if not report.counts["concepts that are mapped"]:
        ids = database.execute("SELECT cui FROM concepts LIMIT 1").fetchone()
        example = ids[0][:40] if ids else "nothing"
        raise SapbertError(Errors.E130.format(path=other.path, example=repr(example)))


def add_names(
    database: sqlite3.Connection, concept: Concept, reports: Sequence[Report]
) -> None:
    """Add the names and codes that a database has for a concept."""
    cui = concept.cui
    where = {alias: place for place, alias in enumerate(concept.aliases)}
    own = {alias.casefold() for alias in concept.aliases}
    places = {
        field: {key: set(found) for key, found in getattr(concept, field).items()}
        for field in PLACES
    }
    sql = "SELECT file, alias, form, places FROM added WHERE cui = ? ORDER BY rowid"
    for file, alias, form, data in database.execute(sql, (cui,)):
        report = reports[file]
        if alias not in where:
            if form in own:
                report.dropped["repeated names"] += 1
                continue
            if is_of_another(database, "names", form, cui):
                report.dropped["names of other concepts"] += 1
                continue
            if is_of_another(database, "added", form, cui):
                report.dropped["names of several concepts"] += 1
                continue
            report.counts["names added"] += 1
            where[alias] = len(where)
            own.add(form)
            if len(where) > VALUES:
                raise SapbertError(Errors.E123.format(limit=VALUES, cui=cui[:40]))
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


def is_of_another(
    database: sqlite3.Connection, table: str, form: str, cui: str
) -> bool:
    """Return whether a concept with another id has a name, in a table of names."""
    sql = f"SELECT min(cui), max(cui) FROM {table} WHERE form = ?"
    ((first, last),) = database.execute(sql, (form,))
    return first is not None and (first != cui or last != cui)
