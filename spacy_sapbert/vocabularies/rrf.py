"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

The rows of MRCONSO are sorted by concept, so it is streamed: memory holds the rows of
one concept.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ..errors import Errors, SapbertError
from ..system.temporary_db import open_temporary_db
from .concepts import PLACES, Concept, clean_name
from .merge import unite_names
from .report import Report, check_known, compile_pattern, count_concepts, start_report
from .rrf_mrconso import Filter, RowRules, read_mrconso
from .rrf_tables import LookUp, find_table, make_look_up, read_side_tables

CUI_PATTERN = r"C\d{7}"


def read_rrf(
    path: Path,
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
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read a release of UMLS, or another vocabulary in its format.

    path (Path): The folder, or the MRCONSO file in it, plain, `.gz` or split.
    languages (Sequence[str]): Languages (LAT) to keep, the preferred first; empty: all.
    sources (Sequence[str]): Sources (SAB) to keep; empty: all.
    types (Sequence[str]): Semantic types (TUI); keep concepts with one of them; empty:
        all.
    term_types (Sequence[str]): Term types (TTY) to keep; empty: all.
    exclude_term_types (Sequence[str]): Term types to drop.
    suppressed (bool): Keep suppressed atoms, definitions and relations.
    source_rank (Sequence[str]): Sources whose names and definitions are preferred, the
        best first.
    trade_names (bool): Add the names of its brands to a drug.
    cui_pattern (str): Regular expression for whole ids.
    on_error (str): "fail", or "skip" to count invalid rows and continue.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by id.
    RAISES (SapbertError): With file and line, at the first invalid row; if a filter
        has a value that is not in the file; if no concept is left.
    """
    report = start_report(report, path, "rrf")
    parts = find_table(path, "MRCONSO")
    if not parts:
        raise SapbertError(Errors.E108.format(file="MRCONSO.RRF", folder=path))
    if types and not find_table(path, "MRSTY"):
        raise SapbertError(Errors.E109.format(path=parts[0]))
    filters = [
        Filter("rows in other languages", "language", languages, what="languages"),
        Filter("rows of other sources", "source", sources, what="sources"),
        Filter("rows of other term types", "term_type", term_types, what="term types"),
        Filter(
            "rows of excluded term types",
            "term_type",
            exclude_term_types,
            keep=False,
            what="term types",
        ),
        Filter("suppressed rows", "suppress", () if suppressed else ("N",)),
    ]
    rules = RowRules([each for each in filters if each.values], languages, source_rank)
    pattern = compile_pattern(cui_pattern)
    read = partial(read_mrconso, parts, rules, pattern, on_error=on_error)
    with open_temporary_db() as database:
        look_ups = read_side_tables(
            database,
            path,
            source_rank=source_rank,
            suppressed=suppressed,
            on_error=on_error,
            report=report,
        )
        if not trade_names:
            look_ups.pop("brands", None)
        elif "brands" in look_ups:
            # an additional pass over MRCONSO; its rows are not counted
            uncounted = Report(progress=report.progress)
            brands = (concept for concept, _ in read(report=uncounted))
            look_ups["brands"] = sort_brand_names(database, brands)
        concepts = add_facts(read(report=report), look_ups, report)
        if types:
            concepts = filter_types(concepts, types, parts[0], report)
        yield from count_concepts(concepts, report)


def add_facts(
    concepts: Iterator[tuple[Concept, list[str]]],
    look_ups: dict[str, LookUp],
    report: Report,
) -> Iterator[Concept]:
    """Add the facts of the other tables to the concepts of MRCONSO.

    A definition belongs to an atom and is dropped with it, so that English concepts
    have no Czech definitions. The brands of a drug stay concepts of their own.
    """
    for concept, atoms in concepts:
        facts = {kind: look_up(concept.cui) for kind, look_up in look_ups.items()}
        if definitions := facts.pop("definitions", []):
            texts = [text for text, atom in definitions if not atom or atom in atoms]
            rule = "definitions of atoms that were left out"
            report.dropped[rule] += len(definitions) - len(texts)
            concept.definition = next(filter(None, map(clean_name, texts)), None)
        if brands := facts.pop("brands", []):
            count = len(concept.aliases)
            names = (json.loads(data) for data, _ in brands)
            unite_names([concept, *(Concept("", **fields) for fields in names)])
            report.counts["trade names"] += len(concept.aliases) - count
        for kind, found in facts.items():
            setattr(concept, kind, [value for value, _ in found])
        if not concept.types and "types" in facts:
            report.counts["concepts without a type"] += 1
        yield concept


def filter_types(
    concepts: Iterator[Concept], types: Sequence[str], path: Path, report: Report
) -> Iterator[Concept]:
    """Drop concepts of other semantic types; at the end check that the types occur."""
    seen: set[str] = set()
    for concept in concepts:
        seen.update(concept.types)
        if set(types).isdisjoint(concept.types):
            report.dropped["concepts of other types"] += 1
        else:
            yield concept
    check_known("types", types, sorted(seen), path)


def sort_brand_names(
    database: sqlite3.Connection, concepts: Iterator[Concept]
) -> LookUp:
    """Find the names of all brands, sorted by ingredient.

    database (sqlite3.Connection): With the brands of `read_side_tables`.
    concepts (Iterator[Concept]): All concepts, sorted.
    RETURNS (LookUp): From an ingredient to the names of its brands: for each brand its
        `aliases`, `languages` and `sources` as JSON.
    """
    ingredients = make_look_up(
        database.execute(
            "SELECT DISTINCT value, cui, '' FROM MRREL WHERE kind = 'brands' "
            "ORDER BY value, cui"
        )
    )
    database.execute("CREATE TABLE brand_names (cui, brand, names)")
    for concept in concepts:
        for ingredient, _ in ingredients(concept.cui):
            names = {key: getattr(concept, key) for key in ("aliases", *PLACES)}
            database.execute(
                "INSERT INTO brand_names VALUES (?, ?, ?)",
                (ingredient, concept.cui, json.dumps(names)),
            )
    return make_look_up(
        database.execute("SELECT cui, names, '' FROM brand_names ORDER BY cui, brand")
    )
