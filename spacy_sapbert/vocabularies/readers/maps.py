"""Hierarchies in two tables: one of names, and beside it one of parents.

Source: The maps of HiPrBERT (2023): code → names, parent → children.
"""

from collections.abc import Iterator
from pathlib import Path

from ..facts import NAME, PARENT, Fact
from ..options import ReadOptions
from ..report import Report, read_good_lines


def read_maps(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
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


def read_fields(path: Path, report: Report) -> Iterator[list[str]]:
    """Yield the two fields of each line; neither is empty."""
    for number, line in read_good_lines(path, report):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == 2 and all(fields):
            yield fields
        else:
            report.bad_line(path, number, "a code, a tab, and a name or parent")
