"""Readers of the hierarchies of the experiment, as a package of their own.

Sources: Shuey et al. (2023), Next-generation phenotyping: PhecodeX, a table of labels,
and beside it one of ancestors. The maps of HiPrBERT (2023): code → names, parent →
children.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_sapbert.extending import (
    CODE,
    NAME,
    PARENT,
    Fact,
    Reader,
    read_columns,
    read_good_lines,
)

LABELS = ("phenotype", "description")
ROLLUP = ("code", "phecode_unrolled")
COMMAS: Any = {"separator": ",", "quoted": True}
SOURCE = "PHECODE"
MARK = "*"  # after the names of phenotypes that only ICD-10 defines


def read_phecode(path: Path, report: Any, options: Any) -> Iterator[Fact]:
    """Read phenotypes and their parents.

    Args:
        path: `…_labels.csv`. Ancestors are in `…_rollup_map.csv` beside it, if that
            exists.
    """
    ancestors: dict[str, set[str]] = {}
    rollup = path.with_name(path.name.replace("_labels", "_rollup_map"))
    if rollup != path and rollup.is_file():
        for _, (code, other) in read_columns(rollup, ROLLUP, report, **COMMAS):
            ancestors.setdefault(code, set()).add(other)
    else:
        report.notes.append(f"{rollup.name} is not there: no parents.")
    for _, (code, label) in read_columns(path, LABELS, report, **COMMAS):
        yield Fact(code, NAME, label.removesuffix(MARK), 0, SOURCE)
        yield Fact(code, CODE, code, 0, SOURCE)
        for parent in find_parents(code, ancestors):
            yield Fact(code, PARENT, parent)


def find_parents(code: str, ancestors: dict[str, set[str]]) -> list[str]:
    """Return the nearest ancestors of a code, sorted: those of no other ancestor."""
    above = ancestors.get(code, set()) - {code}
    farther = {
        other
        for ancestor in above
        for other in ancestors.get(ancestor, ())
        if other != ancestor
    }
    return sorted(above - farther)


def read_maps(path: Path, report: Any, options: Any) -> Iterator[Fact]:
    """Read codes with their names and parents.

    Args:
        path: `…_names.tsv`: a code, a tab, a name; the first name of a code is
            preferred. Parents are in `…_parents.tsv` beside it, if that exists.
    """
    beside = path.with_name(path.name.replace("_names", "_parents"))
    if beside != path and beside.is_file():
        parents = {(code, parent) for code, parent in read_fields(beside, report)}
        for code, parent in sorted(parents):
            yield Fact(code, PARENT, parent)
    else:
        report.notes.append(f"{beside.name} is not there: no parents.")
    for code, name in read_fields(path, report):
        yield Fact(code, NAME, name)


def read_fields(path: Path, report: Any) -> Iterator[list[str]]:
    """Yield the two fields of each line; neither is empty."""
    for number, line in read_good_lines(path, report):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == 2 and all(fields):
            yield fields
        else:
            report.bad_line(path, number, "a code, a tab, and a name or parent")


PHECODE = Reader(
    'PhecodeX: `"phenotype","description",…`, and beside it `…_rollup_map.csv`: '
    '`"code","phecode_unrolled"`',
    read_phecode,
    ("*phecode*_labels.csv*",),
    ("type",),
)
MAPS = Reader(
    "forests of codes: a code, a tab, a name; and beside it `…_parents.tsv`: a code, "
    "a tab, a parent",
    read_maps,
    ("*_names.tsv",),
    ("type",),
)
