"""The concepts of MRCONSO: which rows are kept, and which name is preferred."""

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ...errors import SapbertError
from ...io.reading import read_line_blocks
from ..concepts import Concept, clean_name, has_letter_or_digit, move_places
from ..report import Report, check_known
from .tables import COLUMNS, Row, display_path, skip_line

NO_CODE = "NOCODE"  # UMLS writes it if a source has no codes
KEY = ("LAT", "SUPPRESS", "TS", "STT", "ISPREF", "SAB", "TTY")  # they decide
KEYS = 100_000  # that rows may have; all rows of UMLS have some thousand

MAX_SHOWN = 1000  # characters of a wrong id in an error

# in MRRANK: by SAB, TTY and SUPPRESS, the highest is preferred
TermRanks = Mapping[tuple[str, str, str], int]
Codes = dict[str, list[tuple[tuple[int, int], str]]]  # by source: ranks, and the code


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


class RowRules(dict[tuple[str, ...], tuple[str, int, tuple[int, int]]]):
    """The rule that drops a row (or ""), and the ranks of its name and of its code.

    The lowest rank is preferred. The key has the values of `KEY` in the row. Rows have
    few different keys, so each is computed once.

    Args:
        filters: The first that drops a row counts.
        languages, source_rank: See `read_rrf`.
        term_ranks: Of MRRANK; empty if it is not there.
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        languages: Sequence[str],
        source_rank: Sequence[str],
        term_ranks: TermRanks,
    ) -> None:
        super().__init__()
        self.filters = filters
        order = [] if len(languages) == 1 else languages or ["ENG"]
        self.languages = {language: rank for rank, language in enumerate(order)}
        self.sources = {source: rank for rank, source in enumerate(source_rank)}
        self.term_ranks = term_ranks

    def __missing__(self, key: tuple[str, ...]) -> tuple[str, int, tuple[int, int]]:
        if len(self) == KEYS:
            columns = ", ".join(KEY)
            raise SapbertError(
                "E007",
                f"Expected rows of MRCONSO with few different values of {columns}, "
                "but got more combinations than any release has. Check that this is "
                "the right file.",
            )
        row = dict(zip(KEY, key, strict=True))
        drops = (f.rule for f in self.filters if (row[f.column] in f.values) != f.keep)
        rank = self.languages.get(row["LAT"], len(self.languages))
        for column, best in (("TS", "P"), ("STT", "PF"), ("ISPREF", "Y")):
            rank = 2 * rank + (row[column] != best)
        others = len(self.sources)
        rank = (others + 1) * rank + self.sources.get(row["SAB"], others)
        term = row["SAB"], row["TTY"], row["SUPPRESS"]
        self[key] = next(drops, ""), rank, (-self.term_ranks.get(term, 0), rank)
        return self[key]

    def find_rule(self, row: Row) -> str:
        """Return the rule that drops a row, or ""."""
        fields = dict(zip(COLUMNS["MRCONSO"], row, strict=False))
        return self[tuple(fields[column] for column in KEY)][0]

    def check(self, path: Path) -> None:
        """Check that the values of the filters occur in the rows."""
        for filter in self.filters:
            if filter.what:
                known = {key[KEY.index(filter.column)] for key in self}
                check_known(filter.what, filter.values, sorted(known), path)


def read_mrconso(
    parts: list[Path], rules: RowRules, pattern: re.Pattern[str], report: Report
) -> Iterator[tuple[Concept, list[str]]]:
    """Read MRCONSO, and make concepts of the rows that the filters keep.

    A release has millions of rows, so the loop calls as few functions as possible.

    Yields:
        Each concept, and the ids (AUI) of its atoms.

    Raises:
        SapbertError: With file and line, if a row is invalid or ids are unsorted; at
            the end, if a value of a filter is not in the file.
    """
    path = display_path(parts, "MRCONSO")
    dropped = report.dropped
    last, preferred, best = "", "", 0
    atoms: list[str] = []  # of the concept `last`
    places: dict[str, int] = {}  # of its names, in the order of the rows
    languages: dict[str, list[int]] = {}
    sources: dict[str, list[int]] = {}
    codes: Codes = {}
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
                skip_line("MRCONSO", line, path, number, report, rules.find_rule)
                continue
            rule, rank, code_rank = rules[
                language, suppress, status, form, is_preferred, source, term_type
            ]
            if rule:
                dropped[rule] += 1
                continue
            name = name.strip()
            if "  " in name or not name.isprintable():
                name = clean_name(name)
            if not name[:1].isalnum() and not has_letter_or_digit(name):
                dropped["names without a letter or digit"] += 1
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
                if cui < last:
                    raise SapbertError(
                        "E104",
                        f"{path}:{number}: Expected lines that are sorted by id, but "
                        f"got {cui[:40]} after {last[:40]}. Sort the file: `LC_ALL=C "
                        "sort -t'|' -k1,1 -s`.",
                    )
                if atoms:
                    concept = Concept(
                        last, [*places], languages=languages, sources=sources
                    )
                    first_place = places[preferred]
                    finish_concept(concept, first_place, codes, len(atoms), report)
                    yield concept, atoms
                last, preferred, best = cui, name, rank
                atoms, places, languages, sources, codes = [], {}, {}, {}, {}
            elif rank < best:
                preferred, best = name, rank
            atoms.append(atom)
            position = places.setdefault(name, len(places))
            if language in languages:
                languages[language].append(position)
            else:
                languages[language] = [position]
            if source in sources:
                sources[source].append(position)
            else:
                sources[source] = [position]
            if code and code != NO_CODE:
                if source in codes:
                    codes[source].append((code_rank, code))
                else:
                    codes[source] = [(code_rank, code)]
    if atoms:
        concept = Concept(last, [*places], languages=languages, sources=sources)
        finish_concept(concept, places[preferred], codes, len(atoms), report)
        yield concept, atoms
    rules.check(path)


def finish_concept(
    concept: Concept, first: int, codes: Codes, rows: int, report: Report
) -> None:
    """Move the preferred name to the first place, and add the codes, best first.

    Args:
        codes: Of its rows, in their order.
        rows: Number of rows, of which some may have the same name.
    """
    names = concept.aliases
    report.rows_kept += rows
    if first or len(names) < rows:
        report.dropped["repeated names"] += rows - len(names)
        moved = [*range(1, first + 1), 0, *range(first + 1, len(names))]
        names.insert(0, names.pop(first))
        concept.languages = move_places(concept.languages, moved)
        concept.sources = move_places(concept.sources, moved)
    for source, values in codes.items():
        if len(values) > 1:
            values.sort(key=itemgetter(0))
        concept.codes[source] = list(dict.fromkeys(code for _, code in values))
