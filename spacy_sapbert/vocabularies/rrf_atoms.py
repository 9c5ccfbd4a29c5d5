"""Atoms of MRCONSO: which rows are kept, and which name of a concept is preferred."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..errors import Errors, SapbertError
from .concepts import clean_name, has_letter_or_digit
from .report import Report, check_known
from .rrf_tables import COLUMNS, display_path, drop_undecodable, split_rows

NO_CODE = "NOCODE"  # UMLS writes it if a source has no codes
CUI, LAT, TS, STT, ISPREF, AUI, SAB, TTY, CODE, STR, SUPPRESS = map(
    COLUMNS["MRCONSO"].index,
    (
        "CUI",
        "LAT",
        "TS",
        "STT",
        "ISPREF",
        "AUI",
        "SAB",
        "TTY",
        "CODE",
        "STR",
        "SUPPRESS",
    ),
)
RULE_COLUMNS = (LAT, SAB, TTY, SUPPRESS, TS, STT, ISPREF)
rule_key = itemgetter(*RULE_COLUMNS)
Rank = tuple[int, bool, bool, bool, int]  # the lowest rank is preferred
# A kept row of MRCONSO: rank, cleaned name, language, source, code, AUI. Millions are
# made, and a named tuple takes five times as long.
Atom = tuple[Rank, str, str, str, str, str]


@dataclass(slots=True)
class Filter:
    """A filter of rows by one column.

    rule (str): Description of the dropped rows.
    column (int): Index of the column.
    values (Sequence[str]): Values of the column.
    keep (bool): Keep the rows with these values, or drop them.
    what (str): Name of the values in errors; empty if they need not occur.
    """

    rule: str
    column: int
    values: Sequence[str]
    keep: bool = True
    what: str = ""


class RowRules(dict[tuple[str, ...], tuple[str, Rank]]):
    """The rule that drops a row (or "") and the rank of its atom, by `rule_key`.

    Rows have few different keys, so each is looked up and not computed again.

    filters (Sequence[Filter]): The first that drops a row counts.
    languages (Sequence[str]), source_rank (Sequence[str]): See `read_rrf`.
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        languages: Sequence[str],
        source_rank: Sequence[str],
    ) -> None:
        super().__init__()
        self.filters = filters
        order = [] if len(languages) == 1 else languages or ["ENG"]
        self.languages = {language: place for place, language in enumerate(order)}
        self.sources = {source: place for place, source in enumerate(source_rank)}

    def __missing__(self, key: tuple[str, ...]) -> tuple[str, Rank]:
        row = dict(zip(RULE_COLUMNS, key, strict=True))
        drops = (f.rule for f in self.filters if (row[f.column] in f.values) != f.keep)
        rank = (
            self.languages.get(row[LAT], len(self.languages)),
            row[TS] != "P",
            row[STT] != "PF",
            row[ISPREF] != "Y",
            self.sources.get(row[SAB], len(self.sources)),
        )
        self[key] = next(drops, ""), rank
        return self[key]

    def check(self, path: Path) -> None:
        """Check that the values of the filters occur in the rows."""
        for each in self.filters:
            if each.what:
                place = RULE_COLUMNS.index(each.column)
                check_known(
                    each.what, each.values, sorted({key[place] for key in self}), path
                )


def read_atoms(
    parts: list[Path],
    rules: RowRules,
    pattern: re.Pattern[str],
    *,
    on_error: str,
    report: Report,
) -> Iterator[tuple[str, list[Atom]]]:
    """Read the atoms that the filters keep.

    YIELDS (tuple[str, list[Atom]]): The id of each concept and its atoms.
    RAISES (SapbertError): With file and line, if a row is invalid or ids are unsorted.
    """
    path = display_path(parts, "MRCONSO")
    handling: Any = {"on_error": on_error, "report": report}
    last, atoms = "", list[Atom]()
    for line, row, undecodable in split_rows(parts, "MRCONSO", **handling):
        rule, rank = rules[rule_key(row)]
        if rule:
            report.dropped[rule] += 1
            continue
        if undecodable:
            drop_undecodable(undecodable, line, parts, "MRCONSO", **handling)
            continue
        name = clean_name(row[STR])
        if not has_letter_or_digit(name):
            report.dropped["names without a letter or digit"] += 1
            continue
        cui, code = row[CUI], row[CODE]
        if cui != last or not cui:
            if not cui or not pattern.fullmatch(cui):
                if on_error == "fail":
                    values = {"pattern": pattern.pattern, "cui": cui[:40]}
                    raise SapbertError(
                        Errors.E103.format(path=path, line=line, **values)
                    )
                report.dropped["rows with a malformed id"] += 1
                continue
            if cui < last:
                values = {"cui": cui[:40], "last": last[:40]}
                raise SapbertError(Errors.E104.format(path=path, line=line, **values))
            if atoms:
                yield last, atoms
            last, atoms = cui, []
        code = "" if code == NO_CODE else code
        atoms.append((rank, name, row[LAT], row[SAB], code, row[AUI]))
    if atoms:
        yield last, atoms
