"""The concepts of MRCONSO: which rows are kept, and which name is preferred."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import Errors, SapbertError
from .concepts import Concept, clean_name, has_letter_or_digit, move_places
from .report import Report, check_known
from .rrf_tables import check_utf8, display_path, split_rows

NO_CODE = "NOCODE"  # UMLS writes it if a source has no codes
Rank = tuple[int, bool, bool, bool, int]  # the lowest rank is preferred
NO_RANK: Rank = (0, False, False, False, 0)


class RuleColumns(NamedTuple):
    """The columns of MRCONSO that the filters and the rank use."""

    language: str
    source: str
    term_type: str
    suppress: str
    term_status: str
    string_type: str
    is_preferred: str


@dataclass(slots=True)
class Filter:
    """A filter of rows by one column.

    rule (str): Description of the dropped rows.
    column (str): The column, a field of `RuleColumns`.
    values (Sequence[str]): Values of the column.
    keep (bool): Keep the rows with these values, or drop them.
    what (str): Name of the values in errors; empty if they need not occur.
    """

    rule: str
    column: str
    values: Sequence[str]
    keep: bool = True
    what: str = ""


class RowRules(dict[tuple[str, ...], tuple[str, Rank]]):
    """The rule that drops a row (or "") and the rank of its atom, by `RuleColumns`.

    Rows have few different keys, so each is computed once. A key is a plain tuple.

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
        row = RuleColumns(*key)
        drops = (
            f.rule
            for f in self.filters
            if (getattr(row, f.column) in f.values) != f.keep
        )
        rank = (
            self.languages.get(row.language, len(self.languages)),
            row.term_status != "P",
            row.string_type != "PF",
            row.is_preferred != "Y",
            self.sources.get(row.source, len(self.sources)),
        )
        self[key] = next(drops, ""), rank
        return self[key]

    def check(self, path: Path) -> None:
        """Check that the values of the filters occur in the rows."""
        for each in self.filters:
            if each.what:
                known = {getattr(RuleColumns(*key), each.column) for key in self}
                check_known(each.what, each.values, sorted(known), path)


def read_mrconso(
    parts: list[Path],
    rules: RowRules,
    pattern: re.Pattern[str],
    *,
    on_error: str,
    report: Report,
) -> Iterator[tuple[Concept, list[str]]]:
    """Read MRCONSO, and make concepts of the rows that the filters keep.

    YIELDS (tuple[Concept, list[str]]): Each concept, and the ids (AUI) of its atoms.
    RAISES (SapbertError): With file and line, if a row is invalid or ids are unsorted;
        at the end, if a value of a filter is not in the file.
    """
    path = display_path(parts, "MRCONSO")
    dropped = report.dropped
    last, preferred, best = "", "", NO_RANK
    places: dict[str, int] = {}  # of the names of the concept, in the order of the rows
    languages: dict[str, list[int]] = {}
    sources: dict[str, list[int]] = {}
    codes: dict[str, list[str]] = {}
    atoms: list[str] = []
    rows = split_rows(parts, "MRCONSO", on_error=on_error, report=report)
    for number, line, row in rows:
        # fmt: off
        (
            cui, language, status, _, form, _, is_preferred, atom, _, _,
            _, source, term_type, code, text, _, suppress, _, _,
        ) = row
        # fmt: on
        # in the order of `RuleColumns`
        rule, rank = rules[
            language, source, term_type, suppress, status, form, is_preferred
        ]
        if rule:
            dropped[rule] += 1
            continue
        if not line.isascii() and not check_utf8(line, number, path, on_error):
            dropped["rows of MRCONSO that are not UTF-8"] += 1
            continue
        name = clean_name(text)
        if not name[:1].isalnum() and not has_letter_or_digit(name):
            dropped["names without a letter or digit"] += 1
            continue
        if cui != last or not cui:
            if not cui or not pattern.fullmatch(cui):
                if on_error == "fail":
                    values = {"pattern": pattern.pattern, "cui": cui[:40]}
                    raise SapbertError(
                        Errors.E103.format(path=path, line=number, **values)
                    )
                dropped["rows with a malformed id"] += 1
                continue
            if cui < last:
                values = {"cui": cui[:40], "last": last[:40]}
                raise SapbertError(Errors.E104.format(path=path, line=number, **values))
            if atoms:
                yield (
                    make_concept(
                        last,
                        preferred,
                        places,
                        languages,
                        sources,
                        codes,
                        len(atoms),
                        report,
                    ),
                    atoms,
                )
            last, best, preferred = cui, rank, name
            places, languages, sources, codes, atoms = {}, {}, {}, {}, []
        elif rank < best:
            best, preferred = rank, name
        place = places.setdefault(name, len(places))
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
        atoms.append(atom)
    if atoms:
        yield (
            make_concept(
                last, preferred, places, languages, sources, codes, len(atoms), report
            ),
            atoms,
        )
    rules.check(path)


def make_concept(
    cui: str,
    preferred: str,
    places: dict[str, int],
    languages: dict[str, list[int]],
    sources: dict[str, list[int]],
    codes: dict[str, list[str]],
    rows: int,
    report: Report,
) -> Concept:
    """Make a concept of the columns of its rows.

    preferred (str): The name that comes first.
    places (dict[str, int]): The place of each name.
    languages, sources (dict[str, list[int]]): Places of names.
    codes (dict[str, list[str]]): Codes by source; may be repeated.
    rows (int): How many rows there are; more than names if names are repeated.
    report (Report): Counts the rows.
    """
    names = list(places)
    first = places[preferred]
    repeated = rows - len(names)
    report.rows_kept += rows
    report.dropped["repeated names"] += repeated
    if first or repeated:
        moved = [*range(1, first + 1), 0, *range(first + 1, len(names))]
        names.insert(0, names.pop(first))
        languages = move_places(languages, moved)
        sources = move_places(sources, moved)
    for source, found in codes.items():
        if len(found) > 1:
            codes[source] = list(dict.fromkeys(found))
    # in the order of the fields; millions are made
    return Concept(cui, names, [], codes, [], None, [], languages, sources)
