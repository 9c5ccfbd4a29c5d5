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

    Of an id `A|B`, A is the id of the concept and B a retired id.
    """
    for number, line in read_good_lines(path, report):
        ids, separator, names = line.partition(SEPARATOR)
        cui, *retired = (cui_part.strip() for cui_part in ids.split("|"))
        if not separator or not all([cui, *retired]) or SEPARATOR in names:
            error = SapbertError(
                "E117",
                f"{path}:{number}: Expected an id, `||` and names, but got something "
                "else. Correct the line, or pass `--on-error skip` to count such "
                "lines and continue.",
            )
            report.skip("bad lines", error)
            continue
        for name in names.split("|"):
            yield Fact(cui, NAME, name)
        for id in retired:
            yield Fact(cui, RETIRED, id)
