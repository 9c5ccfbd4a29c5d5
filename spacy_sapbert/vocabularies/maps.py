"""Hierarchies in two tables: one of names, and beside it one of parents."""

from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SapbertError
from .concepts import Concept
from .merge import sort_concepts
from .report import Report, clean_names, count_concepts, read_good_lines, start_report


def read_maps(
    path: Path,
    *,
    type: str | None = None,
    on_error: str = "fail",
    report: Report | None = None,
) -> Iterator[Concept]:
    """Read codes with their names and parents.

    path (Path): `…_names.tsv`, plain or `.gz`: a code, a tab, a name; the first name of
        a code is preferred. Parents are in `…_parents.tsv` beside it, if that exists:
        a code, a tab, a parent.
    type (str | None): Semantic type of all concepts.
    on_error (str): "fail", or "skip" to count invalid lines and continue.
    report (Report | None): Filled while reading.
    YIELDS (Concept): Each concept, sorted by id.
    RAISES (SapbertError): With file and line, at the first invalid line; if no concept
        is left.
    SOURCE: The maps of HiPrBERT (2023): code → names, parent → children.
    """
    report = start_report(report, path, "maps")
    parents: dict[str, set[str]] = {}
    beside = path.with_name(path.name.replace("_names", "_parents"))
    if beside != path and beside.is_file():
        for code, parent in read_fields(beside, on_error=on_error, report=report):
            parents.setdefault(code, set()).add(parent)
    else:
        report.notes.append(f"{beside.name} is not there: no parents.")
    rows = read_fields(path, on_error=on_error, report=report)
    concepts = (
        Concept(
            code,
            names,
            types=[type] if type else [],
            parents=sorted(parents.get(code, set()) - {code}),
        )
        for code, name in rows
        if (names := clean_names([name], report))
    )
    yield from count_concepts(sort_concepts(concepts), report)


def read_fields(path: Path, *, on_error: str, report: Report) -> Iterator[list[str]]:
    """Yield the two fields of each line; neither is empty."""
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
