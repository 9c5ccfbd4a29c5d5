"""Which rows of MRCONSO are kept, and which of a concept's names is preferred."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .checks import check_known
from .report import Report
from .rrf_reading import read_rows
from .rrf_rows import Rows

# columns, the one that counts most first, and the values preferred in each
Ranking = Sequence[tuple[str, Sequence[str]]]


@dataclass(slots=True)
class Filter:
    """One rule by which atoms are kept or dropped.

    rule (str): What is dropped, in words.
    column (str): The column that decides.
    values (Sequence[str]): What it is compared to.
    keep (bool): Whether rows with these values are kept, or the others.
    what (str): What the values are, in words; empty: they need not occur.
    met (set[str]): The values that occurred.
    """

    rule: str
    column: str
    values: Sequence[str]
    keep: bool = True
    what: str = ""
    met: set[str] = field(default_factory=set)


def make_filters(
    languages: Sequence[str],
    sources: Sequence[str],
    term_types: Sequence[str],
    exclude_term_types: Sequence[str],
    suppressed: bool,
) -> list[Filter]:
    """Make the filters that `read_rrf` is asked for.

    RETURNS (list[Filter]): The rules, in the order in which they drop.
    """
    filters = [
        Filter("rows in other languages", "LAT", languages, what="languages"),
        Filter("rows of other sources", "SAB", sources, what="sources"),
        Filter("rows of other term types", "TTY", term_types, what="term types"),
        Filter(
            "rows of excluded term types",
            "TTY",
            exclude_term_types,
            False,
            "term types",
        ),
        Filter("suppressed rows", "SUPPRESS", () if suppressed else ("N",)),
    ]
    return [each for each in filters if each.values]


def make_ranking(languages: Sequence[str], source_rank: Sequence[str]) -> Ranking:
    """Say which atom's name is preferred; see `read_rrf`.

    RETURNS (Ranking): Columns of MRCONSO, the first counts
        most, and the values that are preferred in them, the best first.
    """
    ranking: list[tuple[str, Sequence[str]]] = [
        # names in one language alone need no order of languages
        ("LAT", () if len(languages) == 1 else languages or ("ENG",)),
        ("TS", ("P",)),
        ("STT", ("PF",)),
        ("ISPREF", ("Y",)),
        ("SAB", source_rank),
    ]
    return [(column, values) for column, values in ranking if values]


def drop_rows(rows: Rows, filters: Sequence[Filter], report: Report) -> Rows:
    """Leave out what the filters drop, and count it under the first rule that does.

    rows (Rows): Rows of MRCONSO.
    filters (Sequence[Filter]): The rules.
    report (Report): Counts.
    RETURNS (Rows): The rows that are left.
    """
    kept, left = np.ones(len(rows), dtype=bool), len(rows)
    for each in filters:
        found = np.zeros(len(rows), dtype=bool)
        for value in each.values:
            same = rows.equal(each.column, value)
            found |= same
            if value not in each.met and same.any():
                each.met.add(value)
        kept &= found == each.keep
        before, left = left, int(np.count_nonzero(kept))
        report.dropped[each.rule] += before - left
    return rows if left == len(rows) else rows[kept]


def find_best(rows: Rows, starts: np.ndarray, ranking: Ranking) -> np.ndarray:
    """Find the preferred atom of each concept.

    rows (Rows): Rows of MRCONSO.
    starts (np.ndarray): The first row of each concept, int64. Shape: (concepts,).
    ranking (Ranking): Columns, and the values in them that are preferred.
    RETURNS (np.ndarray): Index of a row for each concept, int64. Shape: (concepts,).
    """
    ranks = np.zeros(len(rows), dtype=np.int64)
    for column, values in ranking:
        places = np.full(len(rows), len(values), dtype=np.int64)
        for place, value in enumerate(values):
            places[rows.equal(column, value)] = place
        ranks = ranks * (len(values) + 1) + places
    # the row itself as the last digit: of equals the first is preferred
    ranks = ranks * len(rows) + np.arange(len(rows))
    best: np.ndarray = np.minimum.reduceat(ranks, starts) % len(rows)
    return best


def check_filters(parts: list[Path], filters: list[Filter]) -> None:
    """Check that what the filters name occurs in the file.

    parts (list[Path]): MRCONSO.
    filters (list[Filter]): The rules, after all rows went through them.
    RAISES (SapbertError): With the nearest names that the file has.
    """
    for each in filters:
        if each.what and set(each.values) - each.met:
            known: set[str] = set()
            for rows in read_rows(parts, "MRCONSO", on_error="skip", report=Report()):
                known.update(rows.texts(each.column, errors="replace"))
            check_known(each.what, each.values, sorted(known), parts[0])
