"""Hierarchies of two maps: a table of names, and beside it a table of parents."""

from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SapbertError
from .checks import count_concepts
from .clean import clean_name, has_letter_or_digit
from .concepts import Concept
from .good_lines import read_good_lines
from .merge import sort_concepts
from .report import Report


def read_maps(
    path: Path,
    *,
    type: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read codes with their names and, where that map lies beside, their parents.

    path (Path): `…_names.tsv`, plain or `.gz`: a code, a tab, a name; the first name of
        a code leads. The other map is `…_parents.tsv` beside it, with the same ending:
        a code, a tab, a parent; a code may have several.
    type (str | None): Semantic type of all concepts.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by its id.
    RAISES (SapbertError): With file and line, at the first bad line; if nothing is
        left.
    SOURCE: A hierarchy as HiPrBERT (2023) takes it: code → names, parent → children.
    """
    report = Report() if report is None else report
    report.path, report.format = str(path), "maps"
    parents: dict[str, list[str]] = {}
    beside = path.with_name(path.name.replace("_names", "_parents"))
    if beside != path and beside.is_file():
        for code, parent in read_fields(beside, on_error=on_error, report=report):
            parents.setdefault(code, []).append(parent)
    else:
        report.notes.append(f"{beside.name} is not there: no parents.")
    named = name_codes(path, parents, type=type, on_error=on_error, report=report)
    yield from count_concepts(sort_concepts(named), report)


def name_codes(
    path: Path,
    parents: dict[str, list[str]],
    *,
    type: str | None,
    on_error: str,
    report: Report,
) -> Iterator[Concept]:
    """Read the names; see `read_maps`.

    parents (dict[str, list[str]]): Of each code; one that is its own is passed over.
    YIELDS (Concept): One of each line that has a name.
    """
    for code, text in read_fields(path, on_error=on_error, report=report):
        name = clean_name(text)
        if not has_letter_or_digit(name):
            report.dropped["names without a letter or digit"] += 1
            continue
        report.rows_kept += 1
        above = sorted({*parents.get(code, ())} - {code})
        yield Concept(code, [name], types=[type] if type else [], parents=above)


def read_fields(path: Path, *, on_error: str, report: Report) -> Iterator[list[str]]:
    """Read a table of two columns.

    path (Path): The table, plain or `.gz`, without a header.
    on_error (str): "fail", or "skip" to count bad lines and go on.
    report (Report): Is told of lines and bad ones.
    YIELDS (list[str]): Two texts, neither empty.
    RAISES (SapbertError): With file and line.
    """
    for number, line in read_good_lines(path, on_error=on_error, report=report):
        if not line.strip():
            report.dropped["blank lines"] += 1
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == 2 and all(fields):
            yield fields
        elif on_error == "fail":
            expected = "a code, a tab, and a name or parent"
            raise SapbertError(
                Errors.E117.format(path=path, line=number, expected=expected)
            )
        else:
            report.dropped["bad lines"] += 1
