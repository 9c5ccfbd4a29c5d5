"""RxNorm in its own Rich Release Format, whose tables begin with RXN.

Source: RxNorm Technical Documentation.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ...errors import missing_in_folder
from ...io.temporary_db import open_temporary_db
from ..facts import CODE, KEEP, NAME, PARENT, REPLACED_BY, TYPE, Fact
from ..options import ReadOptions
from ..report import Report
from ..rrf.mrconso import RowRules, make_filters
from ..rrf.tables import BY_RELA, find_table, read_rows, read_sources, read_table

SOURCE = "RXNORM"
cui_of = "RXNORM:{}".format  # the id of a concept here
# further names of a concept of RxNorm; all others of its term types are the name
SYNONYMS = ("SY", "TMSY", "PSN", "ET", "DFG")
CODES = {"NDC": "NDC", "UMLSCUI": "UMLS"}  # attributes → vocabularies


def read_rxnorm(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read a release of RxNorm; the id is `RXNORM:` and the RXCUI.

    Args:
        path: The folder, or `RXNCONSO.RRF` in it, also split.
    """
    if not find_table(path, "RXNCONSO"):
        raise missing_in_folder(file="RXNCONSO.RRF", folder=path)
    read_sources(path, "RXNSAB", report)
    with open_temporary_db() as database:
        database.execute("CREATE TABLE shared (giver, receiver)")
        database.execute("CREATE TABLE names (cui, name, source, language)")
        yield from read_tables(database, path, options, report)


def read_tables(
    database: sqlite3.Connection, path: Path, options: ReadOptions, report: Report
) -> Iterator[Fact]:
    """Yield the facts of all tables."""
    suppressed = options.suppressed
    yield from find_names(database, path, options, report)
    for id, tui, *_ in read_table(path, "RXNSTY", report, "no semantic types"):
        yield Fact(cui_of(id), TYPE, tui)
    for row in read_table(path, "RXNSAT", report, "no NDC and no UMLS ids"):
        attribute, source, value, suppress = row[8:12]
        if attribute not in CODES or not value:
            continue
        if source != SOURCE or (options.sources and source not in options.sources):
            # Other sources write the same NDC in other notations.
            report.dropped["codes of other sources"] += 1
        elif suppressed or suppress in ("N", ""):
            yield Fact(cui_of(row[0]), CODE, value, 1, CODES[attribute])
    missing = "no parents and no trade names"
    for row in read_table(path, "RXNREL", report, missing):
        cui, other, relation, suppress = row[0], row[4], row[7], row[14]
        kind, is_reversed = BY_RELA.get(relation, ("", False))
        if not kind or not cui or not other or cui == other:
            continue
        if suppress not in ("N", "") and not suppressed:
            report.dropped["suppressed relations"] += 1
            continue
        if is_reversed:
            cui, other = other, cui
        if kind == PARENT:
            yield Fact(cui_of(cui), PARENT, cui_of(other))
            continue
        if options.trade_names:
            database.execute("INSERT INTO shared VALUES (?, ?)", (other, cui))
        if options.ingredient_names:
            database.execute("INSERT INTO shared VALUES (?, ?)", (cui, other))
    for old, _, _, cardinality, new, _ in read_table(
        path, "RXNCUI", report, "no retired ids"
    ):
        if old != new and cardinality == "1" and new:
            yield Fact(cui_of(old), REPLACED_BY, cui_of(new), source="RXNCUI.RRF")
    database.execute("CREATE INDEX names_cui ON names (cui)")
    sql = (
        "SELECT DISTINCT receiver, name, source, language FROM shared "
        "JOIN names ON cui = giver"
    )
    for receiver, name, source, language in database.execute(sql):
        report.counts["names of brands and ingredients"] += 1
        yield Fact(cui_of(receiver), NAME, name, 4, source, language)


def find_names(
    database: sqlite3.Connection, path: Path, options: ReadOptions, report: Report
) -> Iterator[Fact]:
    """Yield names and codes of the rows of RXNCONSO that are kept."""
    rules = RowRules(make_filters((), options))
    for row in read_rows(find_table(path, "RXNCONSO"), "RXNCONSO", report):
        id, language, source, kind, code, name = *row[:2], *row[11:15]
        rule = rules.find_rule(row) or ("" if id else "rows without an id")
        if rule:
            report.dropped[rule] += 1
            continue
        rank = 2 if source != SOURCE else int(kind in SYNONYMS)
        yield Fact(cui_of(id), KEEP)
        yield Fact(cui_of(id), NAME, name, rank, source, language)
        if code and code != "NOCODE":
            # there is no MRRANK: codes of names before those of synonyms
            yield Fact(cui_of(id), CODE, code, int(kind in SYNONYMS), source)
        if options.trade_names or options.ingredient_names:
            values = id, name, source, language
            database.execute("INSERT INTO names VALUES (?, ?, ?, ?)", values)
    rules.check(path)
