"""The concepts of MRCONSO: which rows are kept, and which name is preferred."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from .concepts import Concept, clean_name, has_letter_or_digit
from .report import Report, check_known
from .rrf_tables import COLUMNS, Row, display_path, split_rows

NO_CODE = "NOCODE"  # UMLS writes it if a source has no codes
CUI, LAT, AUI, SAB, CODE, STR = map(
    COLUMNS["MRCONSO"].index, ("CUI", "LAT", "AUI", "SAB", "CODE", "STR")
)


class Filter(NamedTuple):
    """A filter of rows by one column.

    rule (str): Description of the dropped rows.
    column (str): The column of MRCONSO.
    values (Sequence[str]): Values of the column.
    keep (bool): Keep the rows with these values, or drop them.
    what (str): Name of the values in errors; empty if they need not occur.
    """

    rule: str
    column: str
    values: Sequence[str]
    keep: bool = True
    what: str = ""


class RowRules(dict[tuple[str, ...], tuple[str, int]]):
    """The rule that drops a row (or ""), and its rank: the lowest is preferred.

    The key is the row's values of the columns that the filters and the rank use. Rows
    have few different keys, so each is computed once.

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
        columns = {"TS", "STT", "ISPREF", *(each.column for each in filters)}
        columns |= {"LAT"} if order else set()
        columns |= {"SAB"} if source_rank else set()
        self.columns = sorted(columns)
        self.get_key = itemgetter(*map(COLUMNS["MRCONSO"].index, self.columns))

    def __missing__(self, key: tuple[str, ...]) -> tuple[str, int]:
        row = dict(zip(self.columns, key, strict=True))
        drops = (f.rule for f in self.filters if (row[f.column] in f.values) != f.keep)
        rank = self.languages.get(row.get("LAT", ""), len(self.languages))
        for column, best in (("TS", "P"), ("STT", "PF"), ("ISPREF", "Y")):
            rank = 2 * rank + (row[column] != best)
        others = len(self.sources)
        rank = (others + 1) * rank + self.sources.get(row.get("SAB", ""), others)
        self[key] = next(drops, ""), rank
        return self[key]

    def check(self, path: Path) -> None:
        """Check that the values of the filters occur in the rows."""
        for each in self.filters:
            if each.what:
                known = {key[self.columns.index(each.column)] for key in self}
                check_known(each.what, each.values, sorted(known), path)


def read_mrconso(
    parts: list[Path], rules: RowRules, pattern: re.Pattern[str], report: Report
) -> Iterator[tuple[Concept, list[Row]]]:
    """Read MRCONSO, and make concepts of the rows that the filters keep.

    YIELDS (tuple[Concept, list[Row]]): Each concept, and its rows.
    RAISES (SapbertError): With file and line, if a row is invalid or ids are unsorted;
        at the end, if a value of a filter is not in the file.
    """
    path = display_path(parts, "MRCONSO")
    dropped, get_key = report.dropped, rules.get_key
    last = ""
    rows: list[Row] = []  # of the concept `last`
    names: list[str] = []
    ranks: list[int] = []
    for number, error, row in split_rows(parts, "MRCONSO", report):
        rule, rank = rules[get_key(row)]
        if rule:
            dropped[rule] += 1
            continue
        if error is not None:
            report.skip("rows of MRCONSO that are not UTF-8", error)
            continue
        name = clean_name(row[STR])
        if not name[:1].isalnum() and not has_letter_or_digit(name):
            dropped["names without a letter or digit"] += 1
            continue
        cui = row[CUI]
        if cui != last or not cui:
            if not cui or not pattern.fullmatch(cui):
                values = {"path": path, "line": number, "cui": cui[:40]}
                text = Errors.E103.format(pattern=pattern.pattern, **values)
                report.skip("rows with a malformed id", SapbertError(text))
                continue
            if cui < last:
                values = {"path": path, "line": number, "cui": cui[:40]}
                raise SapbertError(Errors.E104.format(last=last[:40], **values))
            if rows:
                yield make_concept(last, rows, names, ranks, report), rows
            last, rows, names, ranks = cui, [], [], []
        rows.append(row)
        names.append(name)
        ranks.append(rank)
    if rows:
        yield make_concept(last, rows, names, ranks, report), rows
    rules.check(path)


def make_concept(
    cui: str, rows: list[Row], names: list[str], ranks: list[int], report: Report
) -> Concept:
    """Make a concept of its rows, and of the cleaned name and the rank of each."""
    preferred = names[ranks.index(min(ranks))]
    aliases = list(dict.fromkeys((preferred, *names)))
    languages: dict[str, list[int]] = {}
    sources: dict[str, list[int]] = {}
    codes: dict[str, list[str]] = {}
    places: Sequence[int] = range(len(rows))
    if aliases != names:
        where = {alias: place for place, alias in enumerate(aliases)}
        places = [where[name] for name in names]
    for place, row in zip(places, rows, strict=True):
        language, source, code = row[LAT], row[SAB], row[CODE]
        if language in languages:
            languages[language].append(place)
        else:
            languages[language] = [place]
        if source in sources:
            sources[source].append(place)
        else:
            sources[source] = [place]
        if code and code != NO_CODE:
            if source in codes:
                codes[source].append(code)
            else:
                codes[source] = [code]
    if aliases != names:
        for grouped in (languages, sources):
            for key, found in grouped.items():
                grouped[key] = sorted(set(found))
    for source, found in codes.items():
        if len(found) > 1:
            codes[source] = list(dict.fromkeys(found))
    report.rows_kept += len(rows)
    report.dropped["repeated names"] += len(rows) - len(aliases)
    # in the order of the fields: millions are made
    return Concept(cui, aliases, [], codes, [], None, [], languages, sources)
