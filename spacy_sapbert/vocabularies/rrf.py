"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

MRCONSO is read once from top to bottom, as the NLM ships it: sorted by concept. What is
in the other tables comes in step with it, so that memory does not grow with the files.
"""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from .checks import check_known, compile_pattern, nothing_left
from .clean import clean_name
from .concepts import PLACES, Concept
from .merge import unite_names
from .report import Report
from .rrf_atoms import CUI_PATTERN, Atoms, read_atoms
from .rrf_concepts import make_concepts
from .rrf_files import find_table
from .rrf_filters import check_filters, make_filters, make_ranking
from .rrf_tables import LookUp, insert, make_look_up, read_sides
from .temporary_db import open_scratch


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

    path (Path): The folder, or the MRCONSO file in it; `.gz` and parts will do.
    languages (Sequence[str]): Languages (LAT) kept, the preferred first; empty: all.
    sources (Sequence[str]): Sources (SAB) kept; empty: all.
    types (Sequence[str]): Semantic types (TUI); a concept needs one; empty: all.
    term_types (Sequence[str]): Term types (TTY) kept; empty: all.
    exclude_term_types (Sequence[str]): Term types left out.
    suppressed (bool): Keep suppressed atoms, definitions and relations too.
    source_rank (Sequence[str]): Sources, the one whose names and definitions are
        preferred first.
    trade_names (bool): Give a drug the names of its brands.
    cui_pattern (str): Regular expression that an id has to match as a whole.
    on_error (str): "fail", or "skip" to count bad rows and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad row; if a filter names
        what is not there; if nothing is left.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "rrf"
    parts = find_table(path, "MRCONSO")
    if not parts:
        raise SapbertError(Errors.E108.format(file="MRCONSO.RRF", folder=path))
    if types and not find_table(path, "MRSTY"):
        raise SapbertError(Errors.E109.format(path=parts[0]))
    filters = make_filters(
        languages, sources, term_types, exclude_term_types, suppressed
    )
    settings: dict[str, Any] = {
        "filters": filters,
        "ranking": make_ranking(languages, source_rank),
        "pattern": compile_pattern(cui_pattern),
        "on_error": on_error,
    }
    wanted, seen_types = set(types), set[str]()
    with open_scratch() as scratch:
        look_up = read_sides(
            scratch,
            path,
            sources=source_rank,
            suppressed=suppressed,
            on_error=on_error,
            report=report,
        )
        if not trade_names:
            look_up.pop("brands", None)
        elif "brands" in look_up:
            # this pass finds the names of the brands; its rows are not counted twice
            aside = Report(progress=report.progress)
            brands = (
                brand
                for atoms in read_atoms(parts, report=aside, **settings)
                for brand in make_concepts(atoms, aside)
            )
            look_up["brands"] = sort_brand_names(scratch, brands)
        for atoms in read_atoms(parts, report=report, **settings):
            made = make_concepts(atoms, report)
            if look_up:
                made = add_sides(made, atoms, look_up, report)
            if types:
                made = keep_types(made, wanted, seen_types, report)
            if look_up:
                made = count_sides(made, look_up, report)
            yield from made
    if types:
        check_known("types", types, sorted(seen_types), parts[0])
    check_filters(parts, filters)
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def add_sides(
    concepts: Iterator[Concept],
    atoms: Atoms,
    look_up: dict[str, LookUp],
    report: Report,
) -> Iterator[Concept]:
    """Add what the tables beside MRCONSO say.

    concepts (Iterator[Concept]): The concepts made of some atoms; changed in place.
    atoms (Atoms): The atoms.
    look_up (dict[str, LookUp]): See `read_sides`.
    report (Report): Counts.
    YIELDS (Concept): Each concept.
    """
    for place, concept in enumerate(concepts):
        for side, find in look_up.items():
            if found := find(concept.cui):
                add_side(concept, side, found, atoms, place, report)
        yield concept


def keep_types(
    concepts: Iterator[Concept], wanted: set[str], seen: set[str], report: Report
) -> Iterator[Concept]:
    """Leave out concepts of other types.

    concepts (Iterator[Concept]): Concepts, counted as made.
    wanted (set[str]): Types of which a concept needs one.
    seen (set[str]): Is told all the types that there are.
    report (Report): Counts.
    YIELDS (Concept): Those that are left.
    """
    for concept in concepts:
        seen.update(concept.types)
        if wanted.isdisjoint(concept.types):
            report.dropped["concepts of other types"] += 1
            report.concepts -= 1
            report.names -= len(concept.aliases)
        else:
            yield concept


def add_side(
    concept: Concept,
    side: str,
    found: list[tuple[str, ...]],
    atoms: Atoms,
    place: int,
    report: Report,
) -> None:
    """Add what a table beside MRCONSO says of a concept.

    A definition belongs to an atom, and goes with it: in an English vocabulary there
    are no definitions of Czech atoms. The names of a drug's brands are united with its
    own; the brands stay concepts too.

    concept (Concept): The concept, changed in place.
    side (str): "types", "parents", "retired", "definitions" or "brands".
    found (list[tuple[str, ...]]): What it says; definitions come with their atoms.
    atoms (Atoms): Atoms of MRCONSO, the concept's among them.
    place (int): Which of their concepts it is.
    report (Report): Counts.
    """
    if side == "definitions":
        start, end = atoms.bounds[place : place + 2]
        ids = {*atoms.rows[start:end].spans("AUI", "AUI"), b""}
        texts = [text for text, atom in found if atom.encode("utf8") in ids]
        rule = "definitions of atoms that were left out"
        report.dropped[rule] += len(found) - len(texts)
        cleaned = filter(None, map(clean_name, texts))
        concept.definition = next(cleaned, None)
    elif side == "brands":
        own = len(concept.aliases)
        brands = (json.loads(data) for (data,) in found)
        unite_names([concept, *(Concept(concept.cui, **names) for names in brands)])
        more = len(concept.aliases) - own
        report.counts["trade names"] += more
        report.names += more
    else:
        setattr(concept, side, [value for (value,) in found])


def count_sides(
    concepts: Iterator[Concept], sides: Collection[str], report: Report
) -> Iterator[Concept]:
    """Count what came from the tables beside MRCONSO.

    concepts (Iterator[Concept]): The concepts.
    sides (Collection[str]): What there was to come.
    report (Report): Counts.
    YIELDS (Concept): Each concept.
    """
    for concept in concepts:
        if "types" in sides:
            report.counts["concepts without a type"] += not concept.types
        report.counts["concepts with a definition"] += concept.definition is not None
        report.counts["parents"] += len(concept.parents)
        report.counts["retired ids"] += len(concept.retired)
        yield concept


def sort_brand_names(
    scratch: sqlite3.Connection,
    concepts: Iterator[Concept],
) -> LookUp:
    """Find the names of all the brands, sorted by their ingredients.

    scratch (sqlite3.Connection): The database, with ingredients and their brands.
    concepts (Iterator[Concept]): The concepts, the brands among them.
    RETURNS (LookUp): From an ingredient to the names of its brands, each brand's with
        their languages and sources as JSON.
    """
    scratch.execute("CREATE TABLE brand_names (cui, brand, names)")
    order = "SELECT DISTINCT value, cui FROM brands ORDER BY value, cui"
    ingredients = make_look_up(scratch.execute(order))
    for concept in concepts:
        if of := [ingredient for (ingredient,) in ingredients(concept.cui)]:
            names = {key: getattr(concept, key) for key in ("aliases", *PLACES)}
            brand, data = [concept.cui] * len(of), [json.dumps(names)] * len(of)
            insert(scratch, "brand_names", of, brand, data)
    order = "SELECT cui, names FROM brand_names ORDER BY cui, brand"
    return make_look_up(scratch.execute(order))
