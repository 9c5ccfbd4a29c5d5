"""Dictionaries of lines `id||name`, or `id||name|name|…`."""

from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SapbertError
from .concepts import Concept
from .merge import sort_concepts
from .report import Report, clean_names, count_concepts, read_good_lines, start_report

SEPARATOR = "||"


def read_biosyn(
    path: Path,
    *,
    type: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read a dictionary; the first name of an id is preferred.

    path (Path): The file, plain or `.gz`. Of an id `A|B`, A is the id of the concept
        and B a retired id.
    type (str | None): Semantic type of all concepts.
    on_error (str): "fail", or "skip" to count invalid lines and continue.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by id.
    RAISES (SapbertError): With file and line, at the first invalid line; if no concept
        is left.
    SOURCE: The dictionaries of BioSyn (Sung et al. 2020).
    """
    report = start_report(report, path, "biosyn")
    lines = parse_lines(path, type=type, on_error=on_error, report=report)
    yield from count_concepts(sort_concepts(lines), report)


def parse_lines(
    path: Path, *, type: str | None, on_error: str, report: Report
) -> Iterator[Concept]:
    """Yield the concept of each line that has a name."""
    for number, line in read_good_lines(path, on_error=on_error, report=report):
        if not line.strip():
            report.dropped["blank lines"] += 1
            continue
        ids, separator, names = line.partition(SEPARATOR)
        cui, *retired = (each.strip() for each in ids.split("|"))
        if not separator or not all([cui, *retired]) or SEPARATOR in names:
            if on_error == "fail":
                raise SapbertError(Errors.E119.format(path=path, line=number))
            report.dropped["bad lines"] += 1
        elif aliases := clean_names(names.split("|"), report):
            types = [type] if type else []
            yield Concept(cui, aliases, types=types, retired=retired)
