"""OMOP: the tables of vocabularies that Athena exports.

Source: The tables of the OMOP Common Data Model 5.4.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...io.temporary_db import open_temporary_db
from ...linking import sources
from ...linking.languages import language_code
from ..facts import CODE, KEEP, NAME, PARENT, REPLACED_BY, TYPE, Fact
from ..options import ReadOptions
from ..report import Report, check_known
from ..tables.release import Release

SOURCE = "OMOP"
cui_of = "OMOP:{}".format  # the id of a concept here
CONCEPT = "CONCEPT.csv"
ENGLISH = "4180186"
ENDING = " language"  # of the names of languages
SOURCES = {source.omop: source.name for source in sources.SOURCES if source.omop}
LANGUAGES = {
    **{"english": "en", "spanish": "es", "french": "fr", "german": "de", "dutch": "nl"},
    **{"italian": "it", "portuguese": "pt", "russian": "ru", "japanese": "ja"},
    **{"chinese": "zh", "korean": "ko", "swedish": "sv", "danish": "da"},
    **{"norwegian": "nb", "finnish": "fi", "polish": "pl", "czech": "cs"},
}
REPLACEMENTS = ("Concept replaced by", "Concept same_as to")
OTHER_LANGUAGES = "names in other languages"


def read_omop(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the valid standard and classification concepts of OMOP.

    The id is `OMOP:` and `concept_id`, the semantic type the domain, a source the
    vocabulary. Names in CONCEPT are in English, others in CONCEPT_SYNONYM. Other
    concepts are codes of the one standard concept that they are mapped to.

    Args:
        path: `CONCEPT.csv` in the folder of an export.
    """
    release = Release(path, CONCEPT, report)
    columns = ("vocabulary_id", "vocabulary_version")
    for vocabulary, version in release.read("VOCABULARY.csv", columns):
        report.add_release(SOURCES.get(vocabulary, vocabulary), version)
    with open_temporary_db() as database:
        wanted = {"sources": options.sources, "types": options.types}
        store_concepts(database, release, wanted, report)
        for what, column in (("sources", "vocabulary"), ("types", "domain")):
            if values := wanted[what]:
                sql = f"SELECT DISTINCT {column} FROM concepts"
                known = [value for (value,) in database.execute(sql)]
                check_known(what, values, known, path)
        languages, mapped_names = options.languages or (), options.mapped_names
        yield from read_tables(database, release, languages, mapped_names, report)


def store_concepts(
    database: sqlite3.Connection,
    release: Release,
    wanted: dict[str, Sequence[str]],
    report: Report,
) -> None:
    """Write the rows of CONCEPT to a database, with whether they become concepts."""
    columns = (
        *("concept_id", "concept_name", "domain_id", "vocabulary_id"),
        *("standard_concept", "concept_code", "invalid_reason"),
    )
    kept, domains = {*wanted["sources"]}, {*wanted["types"]}
    database.execute("CREATE TABLE concepts (id, name, domain, vocabulary, code, kept)")

    def find_rows() -> Iterator[tuple[str, str, str, str, str, bool]]:
        for id, name, domain, vocabulary, standard, code, invalid in release.read(
            CONCEPT, columns
        ):
            rule = ""
            if invalid:
                rule = "invalid concepts"
            elif standard not in ("S", "C"):
                rule = "concepts that are not standard"
            elif kept and vocabulary not in kept:
                rule = "concepts of other sources"
            elif domains and domain not in domains:
                rule = "concepts of other types"
            if rule:
                report.dropped[rule] += 1
            yield id, name, domain, vocabulary, code, not rule

    database.executemany("INSERT INTO concepts VALUES (?, ?, ?, ?, ?, ?)", find_rows())
    database.execute("CREATE INDEX concepts_id ON concepts (id)")


def read_tables(
    database: sqlite3.Connection,
    release: Release,
    languages: Sequence[str],
    mapped_names: bool,
    report: Report,
) -> Iterator[Fact]:
    """Yield the facts of all tables."""
    english = not languages or "ENG" in languages
    sql = "SELECT id, name, domain, vocabulary, code FROM concepts WHERE kept"
    for id, name, domain, vocabulary, code in database.execute(sql):
        cui, source = cui_of(id), SOURCES.get(vocabulary, vocabulary)
        yield Fact(cui, KEEP)
        yield Fact(cui, CODE, id, source=SOURCE)
        yield Fact(cui, CODE, code, source=source)
        if english:
            yield Fact(cui, NAME, name, source=source, language="ENG")
        else:
            report.dropped[OTHER_LANGUAGES] += 1
        yield Fact(cui, TYPE, domain)
    known = {ENGLISH: "ENG"}
    columns = ("concept_id", "concept_synonym_name", "language_concept_id")
    for id, name, spoken in release.read("CONCEPT_SYNONYM.csv", columns, "no synonyms"):
        if spoken not in known:
            known[spoken] = find_language(database, spoken)
        if languages and known[spoken] not in languages:
            report.dropped[OTHER_LANGUAGES] += 1
        else:
            yield Fact(cui_of(id), NAME, name, 1, language=known[spoken])
    yield from find_relations(database, release, mapped_names and english, report)


def find_language(database: sqlite3.Connection, id: str) -> str:
    """Return the language of a concept such as "Spanish language", or ""."""
    sql = "SELECT name FROM concepts WHERE id = ? LIMIT 1"
    (name,) = database.execute(sql, (id,)).fetchone() or ("",)
    language = LANGUAGES.get(name.lower().removesuffix(ENDING))
    return language_code(language) if language else ""


def find_relations(
    database: sqlite3.Connection,
    release: Release,
    mapped_names: bool,
    report: Report,
) -> Iterator[Fact]:
    """Yield parents, replaced ids, and the codes of mapped concepts."""
    ancestors = "CONCEPT_ANCESTOR.csv"
    has_ancestors = bool(release.find(ancestors))
    if has_ancestors:
        columns = (
            *("descendant_concept_id", "ancestor_concept_id"),
            "min_levels_of_separation",
        )
        for id, other, levels in release.read(ancestors, columns):
            if levels == "1":
                yield Fact(cui_of(id), PARENT, cui_of(other))
    columns = ("concept_id_1", "concept_id_2", "relationship_id")
    table = "CONCEPT_RELATIONSHIP.csv"
    missing = "no mapped codes and no retired ids"
    database.execute("CREATE TABLE mapped (id, target)")
    for id, other, relation, invalid in release.read(
        table, columns, missing, optional=["invalid_reason"]
    ):
        if invalid or id == other:
            continue
        if relation == "Maps to":
            database.execute("INSERT INTO mapped VALUES (?, ?)", (id, other))
        elif relation in REPLACEMENTS:
            said = f"{table}, {relation}"
            yield Fact(cui_of(id), REPLACED_BY, cui_of(other), source=said)
        elif relation == "Is a" and not has_ancestors:
            yield Fact(cui_of(id), PARENT, cui_of(other))
    sql = (
        "SELECT min(target), max(target), name, vocabulary, code FROM mapped "
        "JOIN concepts USING (id) GROUP BY id ORDER BY vocabulary, code"
    )
    for target, last, name, vocabulary, code in database.execute(sql):
        if target != last:
            report.dropped["concepts that are mapped to several"] += 1
            continue
        report.counts["concepts that are mapped"] += 1
        cui, source = cui_of(target), SOURCES.get(vocabulary, vocabulary)
        yield Fact(cui, CODE, code, 1, source=source)
        if mapped_names:
            yield Fact(cui, NAME, name, 2, source=source, language="ENG")
