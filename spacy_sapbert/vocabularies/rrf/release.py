"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

The rows of MRCONSO are sorted by concept, so it is streamed: memory holds the rows of
one concept.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import SapbertError, missing_in_folder
from ...io.temporary_db import open_temporary_db
from ..concepts import PLACES, Concept, clean_name
from ..facts import (
    BRAND,
    DEFINITION,
    PARENT,
    RETIRED,
    TYPE,
    Fact,
    group_facts,
    store_facts,
)
from ..merge import unite_names
from ..options import ReadOptions, compile_pattern
from ..report import Report, check_known
from .mrconso import KEYS, Filter, RowRules, TermRanks, read_mrconso
from .tables import (
    find_table,
    read_facts,
    read_rows,
    read_sources,
)

CUI_PATTERN = r"C\d{7}"
BRAND_NAMES = "brand names"  # kind of a fact: names with languages and sources
MAX_DIGITS = 10  # of a rank
Facts = list[Sequence[Any]]  # each without its id


def read_rrf(path: Path, report: Report, options: ReadOptions) -> Iterator[Concept]:
    """Read a release of UMLS, or another vocabulary in its format.

    Args:
        path: The folder, or the MRCONSO file in it, plain, `.gz` or split.

    Raises:
        SapbertError: If a filter has a value that is not in the file.
    """
    languages = ("ENG",) if options.languages is None else options.languages
    types, suppressed = options.types, options.suppressed
    parts = find_table(path, "MRCONSO")
    if not parts:
        raise missing_in_folder(file="MRCONSO.RRF", folder=path)
    has_types = bool(find_table(path, "MRSTY"))
    if types and not has_types:
        raise SapbertError(
            "E108",
            f"Expected MRSTY.RRF in the folder of {parts[0]}, because `--types` needs "
            "it, but found none. Copy it there, or remove `--types`.",
        )
    excluded = "rows of excluded term types"
    filters = [
        Filter("rows in other languages", "LAT", languages, what="languages"),
        Filter("rows of other sources", "SAB", options.sources, what="sources"),
        Filter(
            "rows of other term types", "TTY", options.term_types, what="term types"
        ),
        Filter(
            excluded,
            "TTY",
            options.exclude_term_types,
            keep=False,
            what="term types",
        ),
        Filter("suppressed rows", "SUPPRESS", () if suppressed else ("N",)),
    ]
    if read_sources(path, "MRSAB", report):
        report.add_release("UMLS", "")  # no other vocabulary in this format has it
    used = [filter for filter in filters if filter.values]
    source_rank = options.source_rank
    rules = RowRules(used, languages, source_rank, read_term_ranks(path, report))
    pattern = compile_pattern(options.cui_pattern or CUI_PATTERN)
    with open_temporary_db() as database:
        others = read_facts(
            path, source_rank=source_rank, suppressed=suppressed, report=report
        )
        store_facts(database, others)
        if options.trade_names and find_table(path, "MRREL"):
            # an additional pass over MRCONSO; its rows are not counted
            database.execute("CREATE INDEX links_all ON links (kind, value, cui)")
            uncounted = Report(progress=report.progress, on_error=report.on_error)
            brands = read_mrconso(parts, rules, pattern, uncounted)
            store_facts(database, find_brand_names(database, brands))
        look_up = make_look_up(group_facts(database))
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


def add_facts(concept: Concept, atoms: list[str], facts: Facts, report: Report) -> None:
    """Add the facts of the other tables to a concept of MRCONSO.

    A definition belongs to an atom and is dropped with it, so that English concepts
    have no Czech definitions. The brands of a drug stay concepts of their own.

    Args:
        facts: Kind, value and atom of its `Fact`s.
    """
    kept = {"", *atoms}
    lists = {
        TYPE: concept.types,
        PARENT: concept.parents,
        RETIRED: concept.retired,
    }
    texts: list[str] = []
    brands: list[Concept] = []
    for kind, value, _, atom, _ in facts:
        if kind == BRAND_NAMES:
            brands.append(Concept("", **json.loads(value)))
        elif kind != DEFINITION:
            lists[kind].append(value)
        elif atom in kept:
            texts.append(value)
        else:
            report.dropped["definitions of atoms that were left out"] += 1
    concept.definition = next(filter(None, map(clean_name, texts)), None)
    for values in lists.values():
        values[:] = sorted(set(values))
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
    sql = "SELECT DISTINCT cui FROM links WHERE kind = ? AND value = ? ORDER BY cui"
    for brand, _ in concepts:
        names = {key: getattr(brand, key) for key in ("aliases", *PLACES)}
        for (ingredient,) in database.execute(sql, (BRAND, brand.cui)):
            yield Fact(ingredient, BRAND_NAMES, json.dumps(names))


def make_look_up(groups: Iterator[tuple[str, Facts]]) -> Callable[[str], Facts]:
    """Return a function from an id to its facts; it is called with ascending ids."""
    head = next(groups, None)

    def look_up(cui: str) -> Facts:
        nonlocal head
        while head is not None and head[0] < cui:
            head = next(groups, None)
        return head[1] if head is not None and head[0] == cui else []

    return look_up
