"""UMLS in Rich Release Format: MRCONSO.RRF, and the tables beside it.

The rows of MRCONSO are sorted by concept, so it is streamed: memory holds the rows of
one concept.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from ..system.temporary_db import open_temporary_db
from .clean import clean_name, has_letter_or_digit
from .concepts import PLACES, Concept
from .merge import unite_names
from .report import Report, check_known, compile_pattern, count_concepts, start_report
from .rrf_tables import (
    COLUMNS,
    LookUp,
    Row,
    display_path,
    find_table,
    make_look_up,
    read_rows,
    read_side_tables,
)

CUI_PATTERN = r"C\d{7}"
NO_CODE = ("", "NOCODE")  # UMLS writes NOCODE if a source has no codes
LAT, SAB, TTY, SUPPRESS = map(
    COLUMNS["MRCONSO"].index, ("LAT", "SAB", "TTY", "SUPPRESS")
)
Rank = tuple[int, bool, bool, bool, int]


class Atom(NamedTuple):
    """A row of MRCONSO: one name of a concept in one source.

    name (str): The cleaned name.
    language (str), source (str): LAT and SAB.
    code (str): The code in the source; empty if it has none.
    id (str): AUI.
    rank (Rank): The name of the atom with the lowest rank is preferred.
    """

    name: str
    language: str
    source: str
    code: str
    id: str
    rank: Rank


@dataclass(slots=True)
class Filter:
    """A filter of rows by one column.

    rule (str): Description of the dropped rows.
    column (int): Index of the column.
    values (Sequence[str]): Values of the column.
    keep (bool): Keep the rows with these values, or drop them.
    what (str): Name of the values in errors; empty if they need not occur.
    seen (set[str]): All values of the column in the file.
    """

    rule: str
    column: int
    values: Sequence[str]
    keep: bool = True
    what: str = ""
    seen: set[str] = field(default_factory=set)


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
    filters = [each for each in filters if each.values]
    group_atoms = partial(
        read_atoms,
        parts,
        filters=filters,
        rank=make_rank(languages, source_rank),
        pattern=compile_pattern(cui_pattern),
        on_error=on_error,
    )
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
        yield from count_concepts(check_filters(concepts, filters, parts[0]), report)


def read_atoms(
    parts: list[Path],
    *,
    filters: Sequence[Filter],
    rank: Callable[[Row], Rank],
    pattern: re.Pattern[str],
    on_error: str,
    report: Report,
) -> Iterator[tuple[str, list[Atom]]]:
    """Read the atoms that the filters keep.

    YIELDS (tuple[str, list[Atom]]): The id of each concept and its atoms.
    RAISES (SapbertError): With file and line, if a row is invalid or ids are unsorted.
    """
    path = display_path(parts, "MRCONSO")
    keep = partial(keep_row, filters=filters, report=report)
    rows = read_rows(parts, "MRCONSO", on_error=on_error, report=report, keep=keep)

    def parse_rows() -> Iterator[tuple[str, Atom]]:
        last = ""
        for line, row in rows:
            cui, language, *_, id, _, _, _, source, _, code, text, _, _, _, _ = row
            name = clean_name(text)
            if not has_letter_or_digit(name):
                report.dropped["names without a letter or digit"] += 1
                continue
            if cui != last or not cui:
                if not cui or not pattern.fullmatch(cui):
                    if on_error == "fail":
                        raise SapbertError(
                            Errors.E103.format(
                                path=path,
                                line=line,
                                pattern=pattern.pattern,
                                cui=cui[:40],
                            )
                        )
                    report.dropped["rows with a malformed id"] += 1
                    continue
                if cui < last:
                    raise SapbertError(
                        Errors.E104.format(
                            path=path, line=line, cui=cui[:40], last=last[:40]
                        )
                    )
                last = cui
            report.rows_kept += 1
            code = "" if code in NO_CODE else code
            yield cui, Atom(name, language, source, code, id, rank(row))

    for cui, atoms in groupby(parse_rows(), itemgetter(0)):
        yield cui, [atom for _, atom in atoms]


def keep_row(row: Row, filters: Sequence[Filter], report: Report) -> bool:
    """Return whether all filters keep a row; count it for the first that drops it."""
    rule = ""
    for each in filters:
        value = row[each.column]
        each.seen.add(value)
        if not rule and (value in each.values) != each.keep:
            rule = each.rule
    if rule:
        report.dropped[rule] += 1
    return not rule


def make_rank(
    languages: Sequence[str], source_rank: Sequence[str]
) -> Callable[[Row], Rank]:
    """Return the function that ranks the atoms of a concept; see `read_rrf`."""
    order = () if len(languages) == 1 else languages or ("ENG",)
    by_language = {language: place for place, language in enumerate(order)}
    by_source = {source: place for place, source in enumerate(source_rank)}

    def rank(row: Row) -> Rank:
        _, language, status, _, form, _, preferred, *_ = row
        return (
            by_language.get(language, len(by_language)),
            status != "P",
            form != "PF",
            preferred != "Y",
            by_source.get(row[SAB], len(by_source)),
        )

    return rank


def make_concept(cui: str, atoms: list[Atom], report: Report) -> Concept:
    """Make a concept of its atoms."""
    places = {min(atoms, key=lambda atom: atom.rank).name: 0}
    languages: dict[str, set[int]] = {}
    sources: dict[str, set[int]] = {}
    codes: dict[str, dict[str, None]] = {}
    for atom in atoms:
        place = places.setdefault(atom.name, len(places))
        languages.setdefault(atom.language, set()).add(place)
        sources.setdefault(atom.source, set()).add(place)
        if atom.code:
            codes.setdefault(atom.source, {})[atom.code] = None
    report.dropped["repeated names"] += len(atoms) - len(places)
    return Concept(
        cui,
        list(places),
        codes={source: list(found) for source, found in codes.items()},
        languages={language: sorted(found) for language, found in languages.items()},
        sources={source: sorted(found) for source, found in sources.items()},
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
            ids = {atom.id for atom in atoms} | {""}
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


def check_filters(
    concepts: Iterator[Concept], filters: list[Filter], path: Path
) -> Iterator[Concept]:
    """Yield the concepts; at the end check that the values of the filters occur."""
    yield from concepts
    for each in filters:
        if each.what:
            check_known(each.what, each.values, sorted(each.seen), path)


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
