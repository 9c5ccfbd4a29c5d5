"""The rows of MRCONSO: which are kept, and which names and codes are preferred."""

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ...errors import SapbertError
from ...io.reading import read_line_blocks
from ..concepts import clean_name, has_letter_or_digit
from ..facts import CODE, NAME, Values
from ..options import ReadOptions
from ..report import Report, check_known
from .tables import COLUMNS, UMLS, Dialect, Row, display_path, skip_line

NO_CODE = "NOCODE"  # UMLS writes it if a source has no codes
KEY = ("LAT", "SUPPRESS", "TS", "STT", "ISPREF", "SAB", "TTY")  # they decide
KEY_OF = itemgetter(*map(COLUMNS["MRCONSO"].index, KEY))  # of a row
TERM_RANK = 1 << 32  # ranks of rows are smaller

MAX_SHOWN = 1000  # characters of a wrong id in an error

# in MRRANK: by SAB, TTY and SUPPRESS, the highest is preferred
TermRanks = Mapping[tuple[str, str, str], int]

Rows = tuple[str, list[Values], list[str]]  # a concept, its facts and atoms


class Filter(NamedTuple):
    """A filter of rows by one column.

    Attributes:
        column: The column of MRCONSO.
        keep: Keep the rows with these values, or drop them.
        what: Name of the values in errors; empty if they need not occur.
    """

    rule: str
    column: str
    values: Sequence[str]
    keep: bool = True
    what: str = ""


class RowRules(dict[tuple[str, ...], tuple[str, int, int]]):
    """The rule that drops a row (or ""), and the ranks of its name and of its code.

    The lowest rank is preferred. The key has the values of `KEY` in the row. Rows have
    few different keys, so each is computed once.

    Args:
        filters: The first that drops a row counts.
        languages, source_rank: See `read_rrf`.
        synonyms: Term types of names that are not preferred.
        term_ranks: Of MRRANK; empty if it is not there.
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        languages: Sequence[str] = (),
        source_rank: Sequence[str] = (),
        term_ranks: TermRanks = MappingProxyType({}),
        synonyms: Sequence[str] = (),
    ) -> None:
        self.filters, self.synonyms = filters, synonyms
        order = [] if len(languages) == 1 else languages or ["ENG"]
        self.languages = {language: rank for rank, language in enumerate(order)}
        self.sources = {source: rank for rank, source in enumerate(source_rank)}
        self.term_ranks = term_ranks

    def __missing__(self, key: tuple[str, ...]) -> tuple[str, int, int]:
        row = dict(zip(KEY, key, strict=True))
        drops = (f.rule for f in self.filters if (row[f.column] in f.values) != f.keep)
        rank = self.languages.get(row["LAT"], len(self.languages))
        for column, best in (("TS", "P"), ("STT", "PF"), ("ISPREF", "Y")):
            rank = 2 * rank + (row[column] != best)
        others = len(self.sources)
        rank = (others + 1) * rank + self.sources.get(row["SAB"], others)
        rank = 2 * rank + (row["TTY"] in self.synonyms)
        term = self.term_ranks.get((row["SAB"], row["TTY"], row["SUPPRESS"]), 0)
        self[key] = next(drops, ""), rank, rank - term * TERM_RANK
        return self[key]

    def find_rule(self, row: Row) -> str:
        """Return the rule that drops a row, or ""."""
        return self[KEY_OF(row)][0]

    def check(self, path: Path) -> None:
        """Check that the values of the filters occur in the rows."""
        for filter in self.filters:
            if filter.what:
                known = {key[KEY.index(filter.column)] for key in self}
                check_known(filter.what, filter.values, sorted(known), path)


def make_filters(languages: Sequence[str], options: ReadOptions) -> list[Filter]:
    """Return the filters of rows that options ask for."""
    types, excluded = options.term_types, options.exclude_term_types
    filters = (
        Filter("rows in other languages", "LAT", languages, what="languages"),
        Filter("rows of other sources", "SAB", options.sources, what="sources"),
        Filter("rows of other term types", "TTY", types, what="term types"),
        Filter(
            "rows of excluded term types",
            "TTY",
            excluded,
            keep=False,
            what="term types",
        ),
        Filter("suppressed rows", "SUPPRESS", () if options.suppressed else ("N", "")),
    )
    return [filter for filter in filters if filter.values]


def read_mrconso(
    parts: list[Path],
    dialect: Dialect,
    rules: RowRules,
    pattern: re.Pattern[str],
    report: Report,
) -> Iterator[Rows]:
    """Read the rows of MRCONSO that the filters keep.

    The rows of RxNorm are not sorted, and some have no id.

    Yields:
        The id of each concept, of RxNorm maybe several times, the facts of its names
        and codes, and the ids (AUI) of its atoms.

    Raises:
        SapbertError: With file and line, if a row is invalid or ids are unsorted; at
            the end, if a value of a filter is not in the file.
    """
    table = f"{dialect.tables}CONSO"
    path, is_umls = display_path(parts, table), dialect is UMLS
    dropped = report.dropped
    last, preferred, best = "", 0, 0
    names: list[Values] = []  # of the concept `last`, as codes and atoms
    codes: list[Values] = []
    atoms: list[str] = []
    report.read(path.name, 0)
    for first, lines in read_line_blocks(path, parts=parts):
        report.read(path.name, len(lines))
        for number, line in enumerate(lines, first):
            try:
                # fmt: off
                (
                    cui, language, status, _, form, _, is_preferred, atom, _, _,
                    _, source, term_type, code, name, _, suppress, _, end,
                ) = line.decode().split("|")
                # fmt: on
            except ValueError:
                end = "another number of fields, or not UTF-8"
            if end:
                skip_line(table, line, path, number, report, rules.find_rule)
                continue
            rule, rank, code_rank = rules[
                language, suppress, status, form, is_preferred, source, term_type
            ]
            name = name if rule else clean_name(name)
            if not (rule or name[:1].isalnum() or has_letter_or_digit(name)):
                rule = "names without a letter or digit"
            if not (rule or cui or is_umls):
                rule = "rows without an id"
            if rule:
                dropped[rule] += 1
                continue
            if cui != last or not cui:
                if not cui or not pattern.fullmatch(cui):
                    malformed = SapbertError(
                        "E117",
                        f"{path}:{number}: Expected an id that matches "
                        f"{pattern.pattern}, but got {cui[:MAX_SHOWN]!r}. Correct "
                        "the line, or pass the pattern of the vocabulary's ids as "
                        "`--cui-pattern`.",
                    )
                    report.skip("rows with a malformed id", malformed)
                    continue
                if cui < last and is_umls:
                    raise SapbertError(
                        "E104",
                        f"{path}:{number}: Expected lines that are sorted by id, but "
                        f"got {cui[:40]} after {last[:40]}. Sort the file: `LC_ALL=C "
                        "sort -t'|' -k1,1 -s`.",
                    )
                if atoms:
                    yield last, sort_facts(names, preferred, codes), atoms
                last, preferred, best = cui, 0, rank
                names, codes, atoms = [], [], []
            elif rank < best:
                preferred, best = len(names), rank
            atoms.append(atom)
            names.append((NAME, name, rank, source, language))
            if code and code != NO_CODE:
                codes.append((CODE, code, code_rank, source, ""))
    if atoms:
        yield last, sort_facts(names, preferred, codes), atoms
    rules.check(path)


def sort_facts(
    names: list[Values], preferred: int, codes: list[Values]
) -> list[Values]:
    """Return names, the preferred one first, and codes, the best of a source first."""
    if preferred:
        names.insert(0, names.pop(preferred))
    if len(codes) > 1:
        places: dict[str, int] = {}  # of sources: they stay in the order of the rows
        codes.sort(key=lambda code: (places.setdefault(code[3], len(places)), code[2]))
    return names + codes
