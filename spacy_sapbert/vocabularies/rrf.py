"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

The rows of MRCONSO are sorted by concept, so it is streamed: memory holds the rows of
one concept.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

from ..errors import Errors, SapbertError
from ..system.temporary_db import open_temporary_db
from .concepts import PLACES, Concept, clean_name
from .merge import unite_names
from .report import Report, check_known, compile_pattern, count_concepts, start_report
from .rrf_atoms import LAT, SAB, SUPPRESS, TTY, Atom, Filter, RowRules, read_atoms
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
        Filter("rows in other languages", LAT, languages, what="languages"),
        Filter("rows of other sources", SAB, sources, what="sources"),
        Filter("rows of other term types", TTY, term_types, what="term types"),
        Filter(
            "rows of excluded term types", TTY, exclude_term_types, False, "term types"
        ),
        Filter("suppressed rows", SUPPRESS, () if suppressed else ("N",)),
    ]
    rules = RowRules([each for each in filters if each.values], languages, source_rank)
    pattern = compile_pattern(cui_pattern)
    group_atoms = partial(read_atoms, parts, rules, pattern, on_error=on_error)
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
            groups = group_atoms(report=uncounted)
            brands = (make_concept(*group, uncounted) for group in groups)
            look_ups["brands"] = sort_brand_names(database, brands)
        concepts = make_concepts(group_atoms(report=report), look_ups, report)
        if types:
            concepts = filter_types(concepts, types, parts[0], report)
        yield from count_concepts(check_rules(concepts, rules, parts[0]), report)


def make_concept(cui: str, atoms: list[Atom], report: Report) -> Concept:
    """Make a concept of its atoms."""
    preferred = min(atoms, key=itemgetter(0))[1]
    places = {preferred: 0}
    languages: dict[str, list[int]] = {}
    sources: dict[str, list[int]] = {}
    codes: dict[str, dict[str, None]] = {}
    for _, name, language, source, code, _ in atoms:
        place = places.setdefault(name, len(places))
        languages.setdefault(language, []).append(place)
        sources.setdefault(source, []).append(place)
        if code:
            codes.setdefault(source, {})[code] = None
    if repeated := len(atoms) - len(places):
        report.dropped["repeated names"] += repeated
    if repeated or preferred != atoms[0][1]:
        for grouped in (languages, sources):
            for key, found in grouped.items():
                grouped[key] = sorted(set(found))
    report.rows_kept += len(atoms)
    return Concept(
        cui,
        list(places),
        codes={source: list(found) for source, found in codes.items()},
        languages=languages,
        sources=sources,
    )


def make_concepts(
    groups: Iterator[tuple[str, list[Atom]]],
    look_ups: dict[str, LookUp],
    report: Report,
) -> Iterator[Concept]:
    """Make concepts of atoms, and add the facts of the other tables.

    A definition belongs to an atom and is dropped with it, so that English concepts
    have no Czech definitions. The brands of a drug stay concepts of their own.
    """
    for cui, atoms in groups:
        concept = make_concept(cui, atoms, report)
        facts = {kind: look_up(cui) for kind, look_up in look_ups.items()}
        if definitions := facts.pop("definitions", []):
            ids = {id for *_, id in atoms} | {""}
            texts = [text for text, id in definitions if id in ids]
            rule = "definitions of atoms that were left out"
            report.dropped[rule] += len(definitions) - len(texts)
            concept.definition = next(filter(None, map(clean_name, texts)), None)
        if brands := facts.pop("brands", []):
            count = len(concept.aliases)
            names = (json.loads(data) for data, _ in brands)
            unite_names([concept, *(Concept(cui, **fields) for fields in names)])
            report.counts["trade names"] += len(concept.aliases) - count
        for kind, found in facts.items():
            setattr(concept, kind, [value for value, _ in found])
        if "types" in facts:
            report.counts["concepts without a type"] += not concept.types
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


def check_rules(
    concepts: Iterator[Concept], rules: RowRules, path: Path
) -> Iterator[Concept]:
    """Yield the concepts; at the end check that the values of the filters occur."""
    yield from concepts
    rules.check(path)


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
