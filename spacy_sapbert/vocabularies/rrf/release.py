"""UMLS and RxNorm in Rich Release Format: MRCONSO.RRF, and the tables beside it.

The rows of MRCONSO are sorted by concept, so it is streamed: memory holds the rows of
one concept. Those of RxNorm are not.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ...errors import SapbertError, missing_in_folder
from ...io.temporary_db import open_temporary_db
from ..concepts import Concept
from ..facts import (
    BRAND,
    DEFINITION,
    KEEP,
    NAME,
    PARENT,
    RETIRED,
    TYPE,
    Fact,
    Values,
    build_concept,
    build_stored,
    group_facts,
    index_facts,
    store_facts,
)
from ..ids import CUI
from ..options import ReadOptions, compile_pattern
from ..report import Report, check_known
from .mrconso import RowRules, Rows, TermRanks, make_filters, read_mrconso
from .tables import (
    RXNORM,
    UMLS,
    find_table,
    read_facts,
    read_sources,
)
from .tables import (
    read_rows as read_table_rows,
)

SORTED = (TYPE, PARENT, RETIRED)
Group = tuple[str, list[Values]]  # an id, and its facts
MAX_DIGITS = 10  # of a rank
GATE = "codes and relations of concepts that are left out"  # rule, of RxNorm
SHARED = "names of brands and ingredients"
ANY = re.compile(".+")
LAST = 1 << 32  # rank of the names of others


def read_rrf(path: Path, report: Report, options: ReadOptions) -> Iterator[Concept]:
    """Read a release of UMLS or RxNorm, or another vocabulary in their format.

    Args:
        path: Its MRCONSO or RXNCONSO file, plain, `.gz` or split.

    Raises:
        SapbertError: If a filter has a value that is not in the file.
    """
    dialect = RXNORM if report.format == "rxnorm" else UMLS
    is_umls, main = dialect is UMLS, f"{dialect.tables}CONSO"
    languages = options.languages
    if languages is None:
        languages = ("ENG",) if is_umls else ()
    types = options.types
    parts = find_table(path, main)
    if not parts:
        raise missing_in_folder(file=f"{main}.RRF", folder=path)
    has_types = bool(find_table(path, f"{dialect.tables}STY"))
    if types and not has_types:
        raise SapbertError(
            "E108",
            f"Expected MRSTY.RRF in the folder of {parts[0]}, because `--types` needs "
            "it, but found none. Copy it there, or remove `--types`.",
        )
    if read_sources(path, f"{dialect.tables}SAB", report) and is_umls:
        report.add_release("UMLS", "")  # no other vocabulary in this format has it
    rules = RowRules(
        make_filters(languages, options),
        languages,
        options.source_rank if is_umls else (dialect.source,),
        read_term_ranks(path, report) if is_umls else {},
        dialect.synonyms,
    )
    pattern = compile_pattern(options.cui_pattern or CUI) if is_umls else ANY

    def read_rows(counts: Report) -> Iterator[Rows]:
        rows = read_mrconso(parts, dialect, rules, pattern, counts)
        return ((dialect.prefix + cui, facts, atoms) for cui, facts, atoms in rows)

    with open_temporary_db() as database:
        store_facts(database, read_facts(path, dialect, options, report))
        receivers = []  # each selects the concepts that get the names of one
        sql = "SELECT DISTINCT {} FROM facts WHERE kind = ? AND {} = ? ORDER BY 1"
        if options.trade_names:
            receivers.append(sql.format("cui", "key"))
        if options.ingredient_names:
            receivers.append(sql.format("key", "cui"))
        if receivers and find_table(path, f"{dialect.tables}REL"):
            # an additional pass over the rows, which are not counted
            index_facts(database)
            database.execute("CREATE INDEX by_cui ON facts (kind, cui, key)")
            uncounted = Report(progress=report.progress, on_error=report.on_error)
            counted = uncounted if is_umls else report  # UMLS's in `choose_facts`
            rows = read_rows(uncounted)
            store_facts(database, share_names(database, rows, receivers, counted))
        if not is_umls:
            store_facts(database, list_facts(read_rows(report)))
            yield from build_stored(database, report, GATE)
            return
        look_up = make_look_up(group_facts(database))
        seen: set[str] = set()
        for cui, facts, atoms in read_rows(report):
            if others_of_cui := look_up(cui):
                facts += choose_facts(others_of_cui, atoms, report)
            concept = build_concept(cui, facts, report, "")
            assert concept is not None  # it has a name
            seen.update(concept.types)
            if has_types and not concept.types:
                report.counts["concepts without a type"] += 1
            if types and not {*types} & {*concept.types}:
                report.dropped["concepts of other types"] += 1
            else:
                yield concept
        check_known("types", types, sorted(seen), parts[0])


def list_facts(rows: Iterable[Rows]) -> Iterator[Fact]:
    """Yield the facts of rows that are not sorted."""
    for cui, facts, _ in rows:
        yield Fact(cui, KEEP)
        for fact in facts:
            yield Fact(cui, *fact)


def read_term_ranks(path: Path, report: Report) -> TermRanks:
    """Read MRRANK, the order of term types in UMLS; empty if it is not there."""
    parts = find_table(path, "MRRANK")
    rows = read_table_rows(parts, "MRRANK", report) if parts else iter(())
    return {
        (source, term_type, suppress): int(rank)
        for rank, source, term_type, suppress, _ in rows
        if rank.isascii() and rank.isdecimal() and len(rank) < MAX_DIGITS
    }


def choose_facts(
    facts: Iterable[Values], atoms: list[str], report: Report
) -> list[Values]:
    """Return the facts of the other tables that a concept of MRCONSO gets.

    A definition belongs to an atom and is dropped with it, so that English concepts
    have no Czech definitions. The brands of a drug stay concepts of their own.
    """
    kept = {"", *atoms}
    chosen: list[Values] = []
    for kind, value, rank, source, language in facts:
        if kind == NAME:
            report.counts[SHARED] += 1
        elif kind == DEFINITION and source not in kept:
            report.dropped["definitions of atoms that were left out"] += 1
            continue
        chosen.append((kind, value, rank, source, language))
    return sorted(chosen, key=lambda fact: fact[1] if fact[0] in SORTED else "")


def share_names(
    database: sqlite3.Connection,
    concepts: Iterable[Rows],
    receivers: list[str],
    report: Report,
) -> Iterator[Fact]:
    """Yield the names of each brand or ingredient for the concepts that get them.

    Args:
        database: With the facts of all tables.
        concepts: All concepts, sorted.
        receivers: SQL that selects the concepts that get the names of one.
    """
    for cui, facts, _ in concepts:
        for sql in receivers:
            for (receiver,) in database.execute(sql, (BRAND, cui)):
                for kind, name, _, source, language in facts:
                    if kind == NAME:
                        report.counts[SHARED] += 1
                        yield Fact(receiver, kind, name, LAST, source, language)


def make_look_up(
    groups: Iterator[tuple[str, list[Values]]],
) -> Callable[[str], list[Values]]:
    """Return a function from an id to its facts; it is called with ascending ids."""
    head = next(groups, None)

    def look_up(cui: str) -> list[Values]:
        nonlocal head
        while head is not None and head[0] < cui:
            head = next(groups, None)
        return head[1] if head is not None and head[0] == cui else []

    return look_up
