"""RxNorm in its own Rich Release Format, whose tables begin with RXN."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import Errors, SapbertError
from ...system.temporary_db import open_temporary_db
from ..concepts import Concept
from ..facts import CODE, KEEP, NAME, PARENT, REPLACED_BY, TYPE, Fact, build_concepts
from ..report import Report, check_known
from ..rrf.tables import BY_RELA, Row, find_table, read_rows, read_sources

PREFIX = SOURCE = "RXNORM"
KNOWN = 1000  # values that an error names
# further names of a concept of RxNorm; all others of its term types are the name
SYNONYMS = ("SY", "TMSY", "PSN", "ET", "DFG")
CODES = {"NDC": "NDC", "UMLSCUI": "UMLS"}  # attributes → vocabularies


def read_rxnorm(
    path: Path,
    report: Report,
    *,
    sources: Sequence[str] = (),
    term_types: Sequence[str] = (),
    exclude_term_types: Sequence[str] = (),
    suppressed: bool = False,
    trade_names: bool = False,
) -> Iterator[Concept]:
    """Read a release of RxNorm.

    Args:
        path: The folder, or `RXNCONSO.RRF` in it, plain, `.gz` or split.
        sources: Sources (SAB) of names and codes to keep; empty: all.
        term_types: Term types (TTY) of names to keep; empty: all.
        trade_names: Add the names of its brands to a drug.

    Yields:
        Each concept, sorted by id: `RXNORM:` and the RXCUI.

    Raises:
        SapbertError: With file and line, at the first invalid row; if a filter has a
            value that is not in the file.

    Source: RxNorm Technical Documentation.
    """
    if not find_table(path, "RXNCONSO"):
        raise SapbertError(Errors.E108.format(file="RXNCONSO.RRF", folder=path))
    read_sources(path, "RXNSAB", report)
    with open_temporary_db() as database:
        database.execute("CREATE TABLE brands (drug, brand)")
        database.execute("CREATE TABLE names (cui, name, source, language)")
        rules = {"SAB": sources, "TTY": term_types, "-TTY": exclude_term_types}
        facts = find_facts(
            database, path, rules, suppressed, trade_names=trade_names, report=report
        )
        gate = "codes and relations of concepts that are left out"
        yield from build_concepts(facts, report, gate=gate)


def cui_of(id: str) -> str:
    """Return the id of a concept here."""
    return f"{PREFIX}:{id}"


def read_table(path: Path, table: str, missing: str, report: Report) -> Iterator[Row]:
    """Read a table beside RXNCONSO that may not exist."""
    if parts := find_table(path, table):
        yield from read_rows(parts, table, report)
    else:
        report.notes.append(f"{table}.RRF is not there: {missing}.")


def find_facts(
    database: sqlite3.Connection,
    path: Path,
    rules: dict[str, Sequence[str]],
    suppressed: bool,
    *,
    trade_names: bool,
    report: Report,
) -> Iterator[Fact]:
    """Yield the facts of all tables."""
    yield from find_names(database, path, rules, suppressed, trade_names, report)
    for id, tui, *_ in read_table(path, "RXNSTY", "no semantic types", report):
        yield Fact(cui_of(id), TYPE, tui)
    for row in read_table(path, "RXNSAT", "no NDC and no UMLS ids", report):
        attribute, source, value, suppress = row[8:12]
        if attribute not in CODES or not value:
            continue
        if source != SOURCE or (rules["SAB"] and source not in rules["SAB"]):
            # Other sources write the same NDC in other notations.
            report.dropped["codes of other sources"] += 1
        elif suppressed or suppress in ("N", ""):
            yield Fact(cui_of(row[0]), CODE, value, 1, CODES[attribute])
    missing = "no parents and no trade names"
    for row in read_table(path, "RXNREL", missing, report):
        cui, other, relation, suppress = row[0], row[4], row[7], row[14]
        kind, is_reversed = BY_RELA.get(relation, ("", False))
        if not kind or not cui or not other or cui == other:
            continue
        if suppress not in ("N", "") and not suppressed:
            report.dropped["suppressed relations"] += 1
            continue
        if is_reversed:
            cui, other = other, cui
        if kind == "parents":
            yield Fact(cui_of(cui), PARENT, cui_of(other))
        elif trade_names:
            database.execute("INSERT INTO brands VALUES (?, ?)", (cui, other))
    for old, _, _, cardinality, new, _ in read_table(
        path, "RXNCUI", "no retired ids", report
    ):
        if old != new and cardinality == "1" and new:
            yield Fact(cui_of(old), REPLACED_BY, cui_of(new))
    if trade_names:
        database.execute("CREATE INDEX names_cui ON names (cui)")
        sql = (
            "SELECT DISTINCT drug, name, source, language FROM brands "
            "JOIN names ON cui = brand"
        )
        for drug, name, source, language in database.execute(sql):
            report.counts["trade names"] += 1
            yield Fact(cui_of(drug), NAME, name, 4, source, language)


def find_names(
    database: sqlite3.Connection,
    path: Path,
    rules: dict[str, Sequence[str]],
    suppressed: bool,
    trade_names: bool,
    report: Report,
) -> Iterator[Fact]:
    """Yield names and codes of the rows of RXNCONSO that are kept."""
    seen: set[tuple[str, str]] = set()
    for row in read_rows(find_table(path, "RXNCONSO"), "RXNCONSO", report):
        id, language, source, kind, code, name = *row[:2], *row[11:15]
        if len(seen) < KNOWN:
            seen |= {("sources", source), ("term types", kind)}
        rule = ""
        if rules["SAB"] and source not in rules["SAB"]:
            rule = "rows of other sources"
        elif rules["TTY"] and kind not in rules["TTY"]:
            rule = "rows of other term types"
        elif kind in rules["-TTY"]:
            rule = "rows of excluded term types"
        elif row[16] not in ("N", "") and not suppressed:
            rule = "suppressed rows"
        elif not id:
            rule = "rows without an id"
        if rule:
            report.dropped[rule] += 1
            continue
        rank = 2 if source != SOURCE else int(kind in SYNONYMS)
        yield Fact(cui_of(id), KEEP)
        yield Fact(cui_of(id), NAME, name, rank, source, language)
        if code and code != "NOCODE":
            # there is no MRRANK: codes of names before those of synonyms
            yield Fact(cui_of(id), CODE, code, int(kind in SYNONYMS), source)
        if trade_names:
            values = id, name, source, language
            database.execute("INSERT INTO names VALUES (?, ?, ?, ?)", values)
    for what, key in (
        ("sources", "SAB"),
        ("term types", "TTY"),
        ("term types", "-TTY"),
    ):
        known = sorted(value for kind, value in seen if kind == what)
        check_known(what, rules[key], known, path)
