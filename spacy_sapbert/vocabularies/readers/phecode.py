"""PhecodeX: a table of labels, and beside it a table of ancestors.

Source: Shuey et al. (2023), Next-generation phenotyping.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..facts import CODE, NAME, PARENT, Fact
from ..options import ReadOptions
from ..report import Report
from ..tables.delimited import read_columns

LABELS = ("phenotype", "description")
ROLLUP = ("code", "phecode_unrolled")
COMMAS: Any = {"separator": ",", "quoted": True}
SOURCE = "PHECODE"
MARK = "*"  # after the names of phenotypes that only ICD-10 defines


def read_phecode(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
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
