"""Dictionaries of lines `id||name`, or `id||name|name|…`."""

from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SapbertError
from .checks import nothing_left
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept
from .good_lines import read_good_lines
from .merge import sort_concepts
from .report import Report

SEPARATOR = "||"


def read_biosyn(
    path: Path,
    *,
    type: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read a dictionary; lines of the same id are put together, the first name leads.

    path (Path): The file, plain or `.gz`. An id may be `A|B`: A is the concept's, the
        others lead to it as retired ids do.
    type (str | None): Semantic type of all concepts.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad line; if nothing is
        left.
    SOURCE: The dictionaries of BioSyn (Sung et al. 2020).
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "biosyn"
    lines = parse_lines(path, type=type, on_error=on_error, report=report)
    for concept in sort_concepts(lines):
        report.concepts += 1
        report.names += len(concept.aliases)
        report.counts["retired ids"] += len(concept.retired)
        yield concept
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def parse_lines(
    path: Path, *, type: str | None, on_error: str, report: Report
) -> Iterator[Concept]:
    """Read the lines of a dictionary; see `read_biosyn`.

    YIELDS (Concept): One of each line that has a name.
    """
    for number, line in read_good_lines(path, on_error=on_error, report=report):
        if not line.strip():
            report.dropped["blank lines"] += 1
            continue
        ids, separator, rest = line.partition(SEPARATOR)
        cuis = [cui.strip() for cui in ids.split("|")]
        if not separator or not all(cuis) or SEPARATOR in rest:
            if on_error == "fail":
                raise SapbertError(Errors.E119.format(path=path, line=number))
            report.dropped["bad lines"] += 1
            continue
        names = [clean_name(name) for name in rest.split("|")]
        said = [name for name in names if has_letter_or_digit(name)]
        report.dropped["names without a letter or digit"] += len(names) - len(said)
        distinct = list(dict.fromkeys(said))
        report.dropped["repeated names"] += len(said) - len(distinct)
        report.rows_kept += len(distinct)
        if distinct:
            types = [type] if type else []
            yield Concept(cuis[0], distinct, types=types, retired=cuis[1:])
