"""A vocabulary of one's own, in the form of concepts.jsonl."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import SapbertError
from .checks import nothing_left
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept, change_names, parse_concept
from .good_lines import read_good_lines
from .merge import sort_concepts
from .report import Report


def read_jsonl(
    path: Path, *, on_error: str = "fail", report: Report | None = None
) -> Iterator[Concept]:
    """Read concepts, clean their names, and put those of the same id together.

    path (Path): The file, plain or `.gz`: in each line `cui`, and `name` or `aliases`.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad line; if nothing is
        left.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "jsonl"
    for concept in sort_concepts(parse_lines(path, on_error=on_error, report=report)):
        report.concepts += 1
        report.names += len(concept.aliases)
        yield concept
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def parse_lines(
    path: Path,
    *,
    on_error: str,
    report: Report,
    parse: Callable[[str, Path, int], Concept] = parse_concept,
) -> Iterator[Concept]:
    """Read the lines of a file; see `read_jsonl`.

    parse (Callable[[str, Path, int], Concept]): Makes a concept of a line, given the
        file and the number of the line.
    YIELDS (Concept): One of each line that has a name.
    """
    for number, line in read_good_lines(path, on_error=on_error, report=report):
        if not line.strip():
            report.dropped["blank lines"] += 1
            continue
        try:
            concept = parse(line, path, number)
        except SapbertError:
            if on_error == "fail":
                raise
            report.dropped["bad lines"] += 1
            continue
        names = [clean_name(alias) for alias in concept.aliases]
        said = [name if has_letter_or_digit(name) else "" for name in names]
        silent = said.count("")
        change_names(concept, said)
        report.dropped["names without a letter or digit"] += silent
        repeated = len(said) - silent - len(concept.aliases)
        report.dropped["repeated names"] += repeated
        report.rows_kept += len(concept.aliases)
        if concept.aliases:
            yield concept
