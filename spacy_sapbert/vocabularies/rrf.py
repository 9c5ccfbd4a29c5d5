"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

MRCONSO is read once from top to bottom, as the NLM ships it: sorted by concept. What is
in the other tables comes in step with it, so that memory does not grow with the files.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Optional, Sequence, Tuple

from ..concepts import PLACES, Concept
from ..errors import Errors, SapbertError
from .checks import check_known, compile_pattern, nothing_left
from .names import clean_name
from .report import Report
from .rrf_atoms import read_atoms
from .rrf_files import find_table
from .rrf_filters import check_filters, make_filters, make_ranking
from .rrf_rows import Rows
from .rrf_sides import LookUp, insert, make_look_up, read_sides
from .scratch import open_scratch
from .unite import unite_names

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
    report: Optional[Report] = None,
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
    report (Optional[Report]): Filled while reading.
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
    settings: Dict[str, Any] = {
        "filters": filters,
        "ranking": make_ranking(languages, source_rank),
        "pattern": compile_pattern(cui_pattern),
        "on_error": on_error,
    }
    wanted, seen_types = frozenset(types), set[str]()
    concepts = names = 0
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
            atoms = read_atoms(parts, report=aside, **settings)
            look_up["brands"] = sort_brand_names(scratch, atoms)
        for concept, rows, start, end in read_atoms(parts, report=report, **settings):
            if look_up:
                for side, find in look_up.items():
                    if found := find(concept.cui):
                        add_side(concept, side, found, rows, start, end, report)
            if types:
                seen_types.update(concept.types)
                if wanted.isdisjoint(concept.types):
                    report.dropped["concepts of other types"] += 1
                    continue
            if look_up:
                count_sides(concept, look_up, report)
            concepts += 1
            names += len(concept.aliases)
            yield concept
    report.concepts, report.names = concepts, names
    if types:
        check_known("types", types, sorted(seen_types), parts[0])
    check_filters(parts, filters)
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def add_side(
    concept: Concept,
    side: str,
    found: List[Tuple[str, ...]],
    rows: Rows,
    start: int,
    end: int,
    report: Report,
) -> None:
    """Add what a table beside MRCONSO says of a concept.

    A definition belongs to an atom, and goes with it: in an English vocabulary there
    are no definitions of Czech atoms. The names of a drug's brands are united with its
    own; the brands stay concepts too.

    concept (Concept): The concept, changed in place.
    side (str): "types", "parents", "retired", "definitions" or "brands".
    found (List[Tuple[str, ...]]): What it says; definitions come with their atoms.
    rows (Rows): Rows of MRCONSO, the concept's atoms among them.
    start (int): The first of its atoms.
    end (int): The one after its last.
    report (Report): Counts.
    """
    if side == "definitions":
        atoms = {*rows[start:end].spans("AUI", "AUI"), b""}
        texts = [text for text, atom in found if atom.encode("utf8") in atoms]
        rule = "definitions of atoms that were left out"
        report.dropped[rule] += len(found) - len(texts)
        cleaned = filter(None, map(clean_name, texts))
        concept.definition = next(cleaned, None)
    elif side == "brands":
        own = len(concept.aliases)
        brands = (json.loads(data) for (data,) in found)
        unite_names([concept, *(Concept(concept.cui, **names) for names in brands)])
        report.counts["trade names"] += len(concept.aliases) - own
    else:
        setattr(concept, side, [value for (value,) in found])


def count_sides(concept: Concept, sides: Collection[str], report: Report) -> None:
    """Count what came from the tables beside MRCONSO.

    concept (Concept): The concept.
    sides (Collection[str]): What there was to come.
    report (Report): Counts.
    """
    if "types" in sides:
        report.counts["concepts without a type"] += not concept.types
    report.counts["concepts with a definition"] += concept.definition is not None
    report.counts["parents"] += len(concept.parents)
    report.counts["retired ids"] += len(concept.retired)


def sort_brand_names(
    scratch: sqlite3.Connection,
    atoms: Iterator[Tuple[Concept, Rows, int, int]],
) -> LookUp:
    """Find the names of all the brands, sorted by their ingredients.

    scratch (sqlite3.Connection): The database, with ingredients and their brands.
    atoms (Iterator[Tuple[Concept, Rows, int, int]]): MRCONSO.
    RETURNS (LookUp): From an ingredient to the names of its brands, each brand's with
        their languages and sources as JSON.
    """
    scratch.execute("CREATE TABLE brand_names (cui, brand, names)")
    order = "SELECT DISTINCT value, cui FROM brands ORDER BY value, cui"
    ingredients = make_look_up(scratch.execute(order))
    for concept, *_ in atoms:
        if of := [ingredient for (ingredient,) in ingredients(concept.cui)]:
            names = {key: getattr(concept, key) for key in ("aliases", *PLACES)}
            brand, data = [concept.cui] * len(of), [json.dumps(names)] * len(of)
            insert(scratch, "brand_names", of, brand, data)
    order = "SELECT cui, names FROM brand_names ORDER BY cui, brand"
    return make_look_up(scratch.execute(order))
