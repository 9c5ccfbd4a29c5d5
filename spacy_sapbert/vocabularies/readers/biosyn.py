"""Dictionaries of lines `id||name`, or `id||name|name|…`."""

from collections.abc import Iterator
from pathlib import Path

from ...errors import Errors, SapbertError
from ..concepts import Concept
from ..merge import sort_concepts
from ..report import Report, clean_names, read_good_lines

SEPARATOR = "||"


def read_biosyn(
    path: Path, report: Report, *, type: str | None = None
) -> Iterator[Concept]:
    """Read a dictionary; the first name of an id is preferred.

    Args:
        path: The file, plain or `.gz`. Of an id `A|B`, A is the id of the concept and B
            a retired id.
        type: Semantic type of all concepts.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: With file and line, at the first invalid line.

    Source: The dictionaries of BioSyn (Sung et al. 2020).
    """
    return sort_concepts(parse_lines(path, report, [type] if type else []))


def parse_lines(path: Path, report: Report, types: list[str]) -> Iterator[Concept]:
    """Yield the concept of each line that has a name."""
    for number, line in read_good_lines(path, report):
        ids, separator, names = line.partition(SEPARATOR)
        cui, *retired = (each.strip() for each in ids.split("|"))
        if not separator or not all([cui, *retired]) or SEPARATOR in names:
            error = SapbertError(Errors.E119.format(path=path, line=number))
            report.skip("bad lines", error)
        elif aliases := clean_names(names.split("|"), report):
            yield Concept(cui, aliases, types=types, retired=retired)
