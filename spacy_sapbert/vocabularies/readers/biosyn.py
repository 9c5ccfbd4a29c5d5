"""Dictionaries of lines `id||name`, or `id||name|name|…`.

Source: The dictionaries of BioSyn (Sung et al. 2020).
"""

from collections.abc import Iterator
from pathlib import Path

from ...errors import SapbertError
from ..facts import NAME, RETIRED, Fact
from ..options import ReadOptions
from ..report import Report, read_good_lines

SEPARATOR = "||"


def read_biosyn(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read a dictionary; the first name of an id is preferred.

    The ids `A|B` of a line are those of one concept, A, and B is retired. But BioSyn's
    preprocessing writes each name once, with the ids of all concepts that have it.
    There an id begins several lines, and the name is that of A and of B.
    """
    preprocessed = has_repeated_ids(path)
    for number, line in read_good_lines(path, report):
        ids, separator, names = line.partition(SEPARATOR)
        cui, *others = (cui_part.strip() for cui_part in ids.split("|"))
        if not separator or not all([cui, *others]) or SEPARATOR in names:
            error = SapbertError(
                "E117",
                f"{path}:{number}: Expected an id, `||` and names, but got something "
                "else. Correct the line, or pass `--on-error skip` to count such "
                "lines and continue.",
            )
            report.skip("bad lines", error)
            continue
        for own in (cui, *others) if preprocessed else (cui,):
            for name in names.split("|"):
                yield Fact(own, NAME, name)
        if not preprocessed:
            for id in others:
                yield Fact(cui, RETIRED, id, source="ids of one line")


def has_repeated_ids(path: Path) -> bool:
    """Return whether two lines begin with the same id."""
    known: set[str] = set()
    for _, line in read_good_lines(path, Report(on_error="skip")):
        id = line.partition(SEPARATOR)[0].partition("|")[0].strip()
        if id in known:
            return True
        known.add(id)
    return False
