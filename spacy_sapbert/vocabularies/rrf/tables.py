"""Tables of UMLS's Rich Release Format: their files, their rows, and the facts in them.

Types, definitions, parents, brands and retired ids are in tables beside MRCONSO. A
temporary database sorts them by concept, so that they are read in step with MRCONSO.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...errors import SapbertError
from ...io.reading import decode_line, read_line_blocks
from ..concepts import clean_name
from ..facts import (
    BRAND,
    CODE,
    DEFINITION,
    PARENT,
    REPLACED_BY,
    RETIRED,
    TYPE,
    Fact,
)
from ..locate import has_name, list_folder
from ..options import ReadOptions
from ..report import Report

# fmt: off
COLUMNS: dict[str, tuple[str, ...]] = {
    "MRCONSO": (
        "CUI", "LAT", "TS", "LUI", "STT", "SUI", "ISPREF", "AUI", "SAUI", "SCUI",
        "SDUI", "SAB", "TTY", "CODE", "STR", "SRL", "SUPPRESS", "CVF",
    ),
    "MRREL": (
        "CUI1", "AUI1", "STYPE1", "REL", "CUI2", "AUI2", "STYPE2", "RELA", "RUI",
        "SRUI", "SAB", "SL", "RG", "DIR", "SUPPRESS", "CVF",
    ),
    "MRSTY": ("CUI", "TUI", "STN", "STY", "ATUI", "CVF"),
    "MRDEF": ("CUI", "AUI", "ATUI", "SATUI", "SAB", "DEF", "SUPPRESS", "CVF"),
    "RXNSAT": (
        "RXCUI", "LUI", "SUI", "RXAUI", "STYPE", "CODE", "ATUI", "SATUI", "ATN", "SAB",
        "ATV", "SUPPRESS", "CVF",
    ),
    "RXNCUI": ("CUI1", "VER_START", "VER_END", "CARDINALITY", "CUI2"),
    "MRSAB": (
        "VCUI", "RCUI", "VSAB", "RSAB", "SON", "SF", "SVER", "VSTART", "VEND", "IMETA",
        "RMETA", "SLC", "SCC", "SRL", "TFR", "CFR", "CXTY", "TTYL", "ATNL", "LAT",
        "CENC", "CURVER", "SABIN", "SSN", "SCIT",
    ),
    "MRRANK": ("RANK", "SAB", "TTY", "SUPPRESS"),
    "MRCUI": ("CUI1", "VER", "REL", "RELA", "MAPREASON", "CUI2", "MAPIN"),
}
# fmt: on
# RxNorm's own, of which RXNREL has DIR before RG
COLUMNS |= {f"RXN{name}": COLUMNS[f"MR{name}"] for name in ("CONSO", "REL", "STY")}
MAIN = ("MRCONSO", "RXNCONSO")  # may have any name
PART = r"\.RRF\.(?!gz$)[a-z]{2}(\.gz)?$"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# A row of MRREL describes what CUI2 is to CUI1; True if it is the other way round.
BY_REL = {"PAR": (PARENT, False), "CHD": (PARENT, True)}
BY_RELA = {
    "inverse_isa": (PARENT, False),
    "isa": (PARENT, True),
    "tradename_of": (BRAND, False),
    "has_tradename": (BRAND, True),
}
# other mappings of a retired id: deleted, broader, narrower, related, split
MAPPINGS = ("DEL", "RB", "RN", "RO", "SUBX")


class Dialect(NamedTuple):
    """UMLS's tables, or those of RxNorm, whose names begin with RXN.

    Attributes:
        tables: How the names of its tables begin.
        prefix: Before its ids.
        source: The vocabulary whose names are preferred; "" = the rows say which.
        synonyms: Term types of names that are not preferred.
        codes: Attributes with codes of other vocabularies, by name.
    """

    tables: str = "MR"
    prefix: str = ""
    source: str = ""
    synonyms: tuple[str, ...] = ()
    codes: Mapping[str, str] = {}


UMLS = Dialect()
# SOURCE: RxNorm Technical Documentation
RXNORM = Dialect(
    *("RXN", "RXNORM:", "RXNORM"),
    synonyms=("SY", "TMSY", "PSN", "ET", "DFG"),
    codes={"NDC": "NDC", "UMLSCUI": "UMLS"},
)
IDS = {PARENT, BRAND, REPLACED_BY, RETIRED}  # kinds of facts whose values are ids
Row = list[str]  # the fields of a line, and an empty text after the last bar


def find_table(path: Path, table: str) -> list[Path]:
    """Find the file of a table, or its parts.

    Args:
        path: The folder of a release, or the MRCONSO file in it.
        table: The table, e.g. "MRREL".

    Returns:
        One file, or the parts in order; empty if there is none.

    Raises:
        SapbertError: If a part is missing.
    """
    if path.is_file() and table in MAIN and not re.search(PART, path.name, re.I):
        return [path]
    folder = path if path.is_dir() else path.parent
    for parent in (folder, folder / "META", folder / "rrf"):
        inside = list_folder(parent) if parent.is_dir() else []
        if whole := [file for file in inside if has_name(file, f"{table}.RRF")]:
            return whole[:1]  # the plain one is the first
        pattern = re.compile(re.escape(table) + PART, re.I)
        parts = [part for part in inside if pattern.fullmatch(part.name)]
        # aa, ab, ac …, all or none of them compressed
        ending = ".gz" if parts and parts[0].suffix.lower() == ".gz" else ""
        for number, part in enumerate(parts):
            letters = LETTERS[number // 26] + LETTERS[number % 26]
            expected = part.with_name(f"{table}.RRF.{letters}{ending}")
            if part.name.lower() != expected.name.lower():
                raise SapbertError(
                    "E108",
                    f"Expected the part {expected} next, but got {part}. Download all "
                    "parts.",
                )
        if parts:
            return parts
    return []


def display_path(parts: list[Path], table: str) -> Path:
    """Return the path for errors: of a split file a pattern, `MRCONSO.RRF.*.gz`."""
    if len(parts) == 1:
        return parts[0]
    ending = ".gz" if parts[0].suffix == ".gz" else ""
    return parts[0].with_name(f"{table}.RRF.*{ending}")


def skip_line(
    table: str,
    line: bytes,
    path: Path,
    number: int,
    report: Report,
    find_rule: Callable[[Row], str] | None = None,
) -> None:
    """Count an invalid line of a table, or raise its error.

    Args:
        path, number: File and line for the error.
        find_rule: Returns the rule of the filter that drops a row, or ""; a row that is
            dropped need not be UTF-8.
    """
    row, columns = line.decode(errors="replace").split("|"), len(COLUMNS[table])
    if not line:
        report.dropped["blank lines"] += 1
    elif len(row) != columns + 1 or row[columns]:
        error = SapbertError(
            "E117",
            f"{path}:{number}: Expected {columns} fields, each ended by `|`, but got "
            f"{len(row) - 1}. The line may be truncated, or a name may contain a `|`. "
            "Correct it.",
        )
        report.skip(f"rows of {table} with a wrong number of fields", error)
    elif find_rule and (rule := find_rule(row)):
        report.dropped[rule] += 1
    else:
        try:
            decode_line(line, path, number)
        except SapbertError as error:
            report.skip(f"rows of {table} that are not UTF-8", error)


def read_rows(parts: list[Path], table: str, report: Report) -> Iterator[Row]:
    """Read the rows of a table; lines of a split file are numbered through its parts.

    Yields:
        The fields of each valid row.
    """
    path = display_path(parts, table)
    columns = len(COLUMNS[table])
    report.read(path.name, 0)
    for first, lines in read_line_blocks(path, parts=parts):
        report.read(path.name, len(lines))
        for number, line in enumerate(lines, first):
            try:
                row = line.decode().split("|")
            except UnicodeDecodeError:
                row = []
            if len(row) == columns + 1 and not row[columns]:
                yield row
            else:
                skip_line(table, line, path, number, report)


def read_table(path: Path, table: str, report: Report, missing: str) -> Iterator[Row]:
    """Read the rows of a table that may not exist; what is missing is noted."""
    if parts := find_table(path, table):
        yield from read_rows(parts, table, report)
    else:
        report.notes.append(f"{table}.RRF is not there: {missing}.")


def read_sources(path: Path, table: str, report: Report) -> bool:
    """Read the releases of sources and how the UMLS restricts them.

    Args:
        table: "MRSAB" or "RXNSAB", which have the same columns.

    Returns:
        Whether there is such a file.
    """
    parts = find_table(path, table)
    for row in read_rows(parts, "MRSAB", report) if parts else ():
        fields = dict(zip(COLUMNS["MRSAB"], row, strict=False))
        if fields["CURVER"] != "N":
            category = f"UMLS restriction category {fields['SRL'] or 'unknown'}"
            report.add_release(fields["RSAB"], fields["SVER"], category)
    return bool(parts)


def read_facts(
    path: Path, dialect: Dialect, options: ReadOptions, report: Report
) -> Iterator[Fact]:
    """Read the tables beside MRCONSO that exist.

    The source of a definition is its atom (AUI).

    Args:
        path: The folder of the release, or the MRCONSO file in it.
        report: Counts the rows, and notes the tables that do not exist.
    """
    facts = read_own_facts(path, dialect, options, report)
    if not (prefix := dialect.prefix):
        yield from facts
        return
    for fact in facts:
        value = fact.value if fact.kind not in IDS else prefix + fact.value
        yield fact._replace(cui=prefix + fact.cui, value=value)


def read_own_facts(
    path: Path, dialect: Dialect, options: ReadOptions, report: Report
) -> Iterator[Fact]:
    """Yield the facts with ids as they are in the tables."""

    def read(table: str, missing: str) -> Iterator[Row]:
        return read_table(path, f"{dialect.tables}{table}", report, missing)

    is_umls, suppressed = dialect is UMLS, options.suppressed
    for cui, tui, *_ in read("STY", "no semantic types"):
        yield Fact(cui, TYPE, tui)
    if is_umls:
        ranks = {source: rank for rank, source in enumerate(options.source_rank)}
        for row in read("DEF", "no definitions"):
            cui, atom, _, _, source, text, suppress, *_ = row
            if suppress != "N" and not suppressed:
                report.dropped["suppressed definitions"] += 1
            else:
                rank = ranks.get(source, len(ranks))
                yield Fact(cui, DEFINITION, clean_name(text), rank, atom)
    for row in read("SAT", "no NDC and no UMLS ids") if dialect.codes else ():
        attribute, source, value, suppress = row[8:12]
        if attribute not in dialect.codes or not value:
            continue
        if source not in (options.sources or [source]) or source != dialect.source:
            # other sources write the same NDC in other notations
            report.dropped["codes of other sources"] += 1
        elif suppressed or suppress in ("N", ""):
            yield Fact(row[0], CODE, value, 1, dialect.codes[attribute])
    for row in read("REL", "no parents and no trade names"):
        cui, _, _, rel, other, _, _, rela, *_, suppress, _, _ = row
        by_rel = BY_REL.get(rel) if is_umls else None
        kind, is_reversed = by_rel or BY_RELA.get(rela) or ("", False)
        if not kind or not (cui and other):
            continue
        if suppress not in ("N", "") and not suppressed:
            report.dropped["suppressed relations"] += 1
        elif cui == other:
            report.dropped["relations of a concept to itself"] += 1
        else:
            yield Fact(other, kind, cui) if is_reversed else Fact(cui, kind, other)
    for row in read("CUI", "no retired ids"):
        if not is_umls:
            old, _, _, cardinality, new, *_ = row
            if old != new and cardinality == "1" and new:
                yield Fact(old, REPLACED_BY, new, source="RXNCUI.RRF")
            continue
        retired, _, mapping, _, _, cui, *_ = row
        if mapping == "SY":  # a synonym: no other mapping has the same meaning
            yield Fact(cui, RETIRED, retired, source="MRCUI.RRF, SY")
        else:
            known = mapping if mapping in MAPPINGS else "something else"
            report.dropped[f"retired ids that map as {known}"] += 1
