"""SNOMED CT in Release Format 2: the snapshot of a release.

Source: SNOMED CT Release File Specifications.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...io.temporary_db import open_temporary_db
from ...linking.languages import language_code
from ..concepts import BROADER, NARROWER, RELATED, clean_name
from ..facts import CODE, DEFINITION, KEEP, NAME, PARENT, REPLACED_BY, TYPE, Fact
from ..options import ReadOptions
from ..report import Report
from ..tables.release import Release

SOURCE = "SNOMEDCT_US"
cui_of = "SNOMEDCT:{}".format  # the id of a concept here
# The name of an edition may stand before or after what a table has:
# sct2_Concept_UKCLSnapshot_GB…, der2_cRefset_LanguageSpanishExtensionSnapshot-es_…
CONCEPT = "sct2_Concept_*Snapshot*.txt"
FULL_NAME, SYNONYM = "900000000000003001", "900000000000013009"
PREFERRED = "900000000000548007"
US_ENGLISH, GB_ENGLISH = "900000000000509007", "900000000000508004"
# the language reference sets of the UK, for its clinical and drug extensions
UK_ENGLISH = ("999001261000000100", "999000691000001104", "999000671000001103")
BRITISH = re.compile(r"Snapshot_(?:GB|UK)", re.IGNORECASE)  # in the name of a release
VERSION = re.compile(r"Snapshot_(\w+)", re.IGNORECASE)
IS_A = "116680003"
REPLACEMENTS = {  # the reference sets of associations
    "900000000000526001": "REPLACED BY",
    "900000000000527005": "SAME AS",
}
TAG = re.compile(r"(?<!\s)\s*\(([^()]*)\)\s*$")  # at the end of a fully specified name
# reference sets of maps → the vocabulary in UMLS
MAPS = {
    "447562003": "ICD10",
    "6011000124106": "ICD10CM",
    "446608001": "ICDO3",
    "900000000000497000": "CTV3",
}
# How exact an extended map is; others are not specified
CORRELATIONS = {
    "447558009": BROADER,
    "447559001": NARROWER,
    "447560006": RELATED,
}
UNRANKED = 3  # a name in no language reference set


def read_snomed(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the active concepts of a release.

    The id is `SNOMEDCT:` and that of SNOMED CT. The preferred name is that of the
    language reference sets: in releases of the United Kingdom in British English, in
    others in US English first. The semantic tag of the fully specified name, e.g.
    "disorder", is the semantic type, and is not a part of a name.

    Args:
        path: The `sct2_Concept_…Snapshot…` file of a release.
    """
    release = Release(path, CONCEPT, report, inner=("Terminology",))
    for file in release.find(CONCEPT):
        if version := VERSION.search(file.name):
            report.add_release(SOURCE, version[1].upper())
    with open_temporary_db() as database:
        british = any(BRITISH.search(file.name) for file in release.find(CONCEPT))
        dialects = (GB_ENGLISH, *UK_ENGLISH) if british else (US_ENGLISH,)
        store_acceptability(database, release, dialects)
        yield from read_tables(database, release, options.languages or (), report)


def store_acceptability(
    database: sqlite3.Connection, release: Release, dialects: Sequence[str]
) -> None:
    """Write how far descriptions are preferred: 0 and 1 preferred, 2 acceptable.

    Args:
        dialects: The reference sets whose preferred names are 0.
    """
    columns = ("referencedComponentId", "active", "refsetId", "acceptabilityId")
    table = "der2_cRefset_*Language*Snapshot*.txt"
    database.execute("CREATE TABLE acceptability (description, rank)")
    database.executemany(
        "INSERT INTO acceptability VALUES (?, ?)",
        (
            (id, 2 if kind != PREFERRED else int(refset not in dialects))
            for id, active, refset, kind in release.read(
                table, columns, "the first name of a concept is preferred"
            )
            if active == "1"
        ),
    )
    database.execute(
        "CREATE INDEX acceptability_all ON acceptability (description, rank)"
    )


def read_tables(
    database: sqlite3.Connection,
    release: Release,
    languages: Sequence[str],
    report: Report,
) -> Iterator[Fact]:
    """Yield the facts of all tables."""
    for id, active in release.read(CONCEPT, ("id", "active")):
        if active == "1":
            yield Fact(cui_of(id), KEEP)
            yield Fact(cui_of(id), CODE, id, source=SOURCE)
    yield from find_names(database, release, languages, report)
    columns = ("conceptId", "active", "term", "languageCode")
    table = "sct2_TextDefinition_*Snapshot*.txt"
    for id, active, text, language in release.read(table, columns, "no definitions"):
        if active == "1" and (not languages or language_code(language) in languages):
            yield Fact(cui_of(id), DEFINITION, clean_name(text))
    columns = ("sourceId", "active", "destinationId", "typeId")
    table = "sct2_Relationship_*Snapshot*.txt"
    for id, active, other, kind in release.read(table, columns, "no parents"):
        if active == "1" and kind == IS_A:
            yield Fact(cui_of(id), PARENT, cui_of(other))
    columns = ("referencedComponentId", "active", "refsetId", "targetComponentId")
    table = "der2_cRefset_*Association*Snapshot*.txt"
    for id, active, kind, other in release.read(table, columns, "no retired ids"):
        if active != "1":
            continue
        if kind in REPLACEMENTS:
            said = f"der2_cRefset_Association, {REPLACEMENTS[kind]}"
            yield Fact(cui_of(id), REPLACED_BY, cui_of(other), source=said)
        else:
            report.dropped["associations that are no replacements"] += 1
    yield from find_codes(release, report)


def find_names(
    database: sqlite3.Connection,
    release: Release,
    languages: Sequence[str],
    report: Report,
) -> Iterator[Fact]:
    """Yield names, and the types of fully specified names."""
    order = {language: place for place, language in enumerate(languages)}
    sql = "SELECT min(rank) FROM acceptability WHERE description = ?"
    columns = ("conceptId", "id", "active", "languageCode", "typeId", "term")
    table = "sct2_Description_*Snapshot*.txt"
    for id, description, active, code, kind, term in release.read(
        table, columns, "no names"
    ):
        language = language_code(code)
        if active != "1":
            report.dropped["inactive descriptions"] += 1
            continue
        if kind == FULL_NAME and (tag := TAG.search(term)):
            # English tags are the same in all editions
            yield Fact(cui_of(id), TYPE, tag[1], int(language != "ENG"))
            term = term[: tag.start()]
        if languages and language not in order:
            report.dropped["names in other languages"] += 1
            continue
        if kind == FULL_NAME:
            rank = UNRANKED + 1
        elif kind == SYNONYM:
            ((found,),) = database.execute(sql, (description,))
            rank = UNRANKED if found is None else found
        else:
            report.dropped["descriptions that are no names"] += 1
            continue
        rank += order.get(language, 0) * (UNRANKED + 2)
        yield Fact(cui_of(id), NAME, term, rank, SOURCE, language)


def find_codes(release: Release, report: Report) -> Iterator[Fact]:
    """Yield the codes of the simple and extended maps, in their order."""
    extended = ("mapGroup", "mapPriority", "correlationId")
    columns = ("referencedComponentId", "active", "refsetId", "mapTarget")
    for table, optional in (
        ("der2_sRefset_*SimpleMap*Snapshot*.txt", ()),
        ("der2_*Refset_*ExtendedMap*Snapshot*.txt", extended),
    ):
        missing = f"no codes of {'extended' if optional else 'simple'} maps"
        for id, active, refset, target, *order in release.read(
            table, columns, missing, optional=optional
        ):
            if active != "1" or not target:
                continue
            if refset not in MAPS:
                report.dropped["maps to other vocabularies"] += 1
                continue
            group, priority = (
                int(number) if number.isascii() and number[:4].isdecimal() else 0
                for number in order[:2] or ("0", "0")
            )
            rank = 1 + min(group, 999) * 1000 + min(priority, 999)
            kind = CORRELATIONS.get(order[2] if order else "", CODE)
            yield Fact(cui_of(id), kind, target, rank, MAPS[refset])
