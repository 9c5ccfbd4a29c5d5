"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

The rows of MRCONSO are sorted by concept, so it is streamed: memory holds the rows of
one concept.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import Errors, SapbertError
from ...system.temporary_db import open_temporary_db
from ..concepts import PLACES, Concept, clean_name
from ..merge import unite_names
from ..report import IdPattern, Report, check_known
from .mrconso import KEYS, Filter, RowRules, TermRanks, read_mrconso
from .tables import (
    Fact,
    find_table,
    make_look_up,
    read_facts,
    read_rows,
    read_sources,
    write_facts,
)

CUI_PATTERN = r"C\d{7}"
MAX_DIGITS = 10  # of a rank


def read_rrf(
    path: Path,
    report: Report,
    *,
    languages: Sequence[str] = ("ENG",),
    sources: Sequence[str] = (),
    types: Sequence[str] = (),
    term_types: Sequence[str] = (),
    exclude_term_types: Sequence[str] = (),
    suppressed: bool = False,
    source_rank: Sequence[str] = (),
    trade_names: bool = False,
    cui_pattern: str = CUI_PATTERN,
) -> Iterator[Concept]:
    """Read a release of UMLS, or another vocabulary in its format.

    Args:
        path: The folder, or the MRCONSO file in it, plain, `.gz` or split.
        languages: Languages (LAT) to keep, the preferred first; empty: all.
        sources: Sources (SAB) to keep; empty: all.
        types: Semantic types (TUI); keep concepts with one of them; empty: all.
        term_types: Term types (TTY) to keep; empty: all.
        suppressed: Keep suppressed atoms, definitions and relations.
        source_rank: Sources whose names and definitions are preferred, the best first.
        trade_names: Add the names of its brands to a drug.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: With file and line, at the first invalid row; if a filter has a
            value that is not in the file.
    """
    parts = find_table(path, "MRCONSO")
    if not parts:
        raise SapbertError(Errors.E108.format(file="MRCONSO.RRF", folder=path))
    has_types = bool(find_table(path, "MRSTY"))
    if types and not has_types:
        raise SapbertError(Errors.E109.format(path=parts[0]))
    excluded = "rows of excluded term types"
    filters = [
        Filter("rows in other languages", "LAT", languages, what="languages"),
        Filter("rows of other sources", "SAB", sources, what="sources"),
        Filter("rows of other term types", "TTY", term_types, what="term types"),
        Filter(excluded, "TTY", exclude_term_types, keep=False, what="term types"),
        Filter("suppressed rows", "SUPPRESS", () if suppressed else ("N",)),
    ]
    if read_sources(path, "MRSAB", report):
        report.add_release("UMLS", "")  # no other vocabulary in this format has it
    used = [each for each in filters if each.values]
    rules = RowRules(used, languages, source_rank, read_term_ranks(path, report))
    pattern = IdPattern(cui_pattern)
    with open_temporary_db() as database:
        others = read_facts(
            path, source_rank=source_rank, suppressed=suppressed, report=report
        )
        write_facts(database, others)
        if trade_names and find_table(path, "MRREL"):
            # an additional pass over MRCONSO; its rows are not counted
            uncounted = Report(progress=report.progress, on_error=report.on_error)
            brands = read_mrconso(parts, rules, pattern, uncounted)
            write_facts(database, find_brand_names(database, brands))
        look_up = make_look_up(
            database.execute(
                "SELECT cui, kind, value, atom FROM facts WHERE kind != 'brands' "
                "ORDER BY cui, rank, rowid"
            )
        )
        seen: set[str] = set()
        for concept, atoms in read_mrconso(parts, rules, pattern, report):
            if facts := look_up(concept.cui):
                add_facts(concept, atoms, facts, report)
                seen.update(concept.types)
            if has_types and not concept.types:
                report.counts["concepts without a type"] += 1
            if types and not {*types} & {*concept.types}:
                report.dropped["concepts of other types"] += 1
            else:
                yield concept
        check_known("types", types, sorted(seen), parts[0])


def read_term_ranks(path: Path, report: Report) -> TermRanks:
    """Read MRRANK, the order of term types in UMLS; empty if it is not there."""
    parts = find_table(path, "MRRANK")
    rows = read_rows(parts, "MRRANK", report) if parts else iter(())
    return {
        (source, term_type, suppress): int(rank)
        for rank, source, term_type, suppress, _ in islice(rows, KEYS)
        if rank.isascii() and rank.isdecimal() and len(rank) < MAX_DIGITS
    }


def add_facts(
    concept: Concept, atoms: list[str], facts: list[tuple[Any, ...]], report: Report
) -> None:
    """Add the facts of the other tables to a concept of MRCONSO.

    A definition belongs to an atom and is dropped with it, so that English concepts
    have no Czech definitions. The brands of a drug stay concepts of their own.

    Args:
        facts: Kind, value and atom of its `Fact`s.
    """
    kept = {"", *atoms}
    texts: list[str] = []
    brands: list[Concept] = []
    for kind, value, atom in facts:
        if kind == "brand names":
            brands.append(Concept("", **json.loads(value)))
        elif kind != "definitions":
            getattr(concept, kind).append(value)
        elif atom in kept:
            texts.append(value)
        else:
            report.dropped["definitions of atoms that were left out"] += 1
    concept.definition = next(filter(None, map(clean_name, texts)), None)
    for kind in ("types", "parents", "retired"):
        setattr(concept, kind, sorted(set(getattr(concept, kind))))
    if brands:
        count = len(concept.aliases)
        unite_names([concept, *brands])
        report.counts["trade names"] += len(concept.aliases) - count


def find_brand_names(
    database: sqlite3.Connection, concepts: Iterator[tuple[Concept, list[str]]]
) -> Iterator[Fact]:
    """Yield the names of each brand, with languages and sources, for its ingredients.

    Args:
        database: With the facts of all tables.
        concepts: All concepts, sorted.
    """
    ingredients = make_look_up(
        database.execute(
            "SELECT DISTINCT value, cui FROM facts WHERE kind = 'brands' "
            "ORDER BY value, cui"
        )
    )
    for brand, _ in concepts:
        for (ingredient,) in ingredients(brand.cui):
            names = {key: getattr(brand, key) for key in ("aliases", *PLACES)}
            yield Fact("brand names", ingredient, json.dumps(names))
