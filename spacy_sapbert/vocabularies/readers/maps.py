"""Hierarchies in two tables: one of names, and beside it one of parents."""

from collections.abc import Iterator
from pathlib import Path

from ...errors import Errors, SapbertError
from ..concepts import Concept
from ..merge import sort_concepts
from ..report import Report, clean_names, read_good_lines


def read_maps(
    path: Path, report: Report, *, type: str | None = None
) -> Iterator[Concept]:
    """Read codes with their names and parents.

    Args:
        path: `…_names.tsv`, plain or `.gz`: a code, a tab, a name; the first name of a
            code is preferred. Parents are in `…_parents.tsv` beside it, if that exists:
            a code, a tab, a parent.
        type: Semantic type of all concepts.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: With file and line, at the first invalid line.

    Source: The maps of HiPrBERT (2023): code → names, parent → children.
    """
    parents: dict[str, set[str]] = {}
    beside = path.with_name(path.name.replace("_names", "_parents"))
    if beside != path and beside.is_file():
        for code, parent in read_fields(beside, report):
            parents.setdefault(code, set()).add(parent)
    else:
        report.notes.append(f"{beside.name} is not there: no parents.")
    concepts = (
        Concept(
            code,
            names,
            types=[type] if type else [],
            parents=sorted(parents.get(code, set()) - {code}),
        )
        for code, name in read_fields(path, report)
        if (names := clean_names([name], report))
    )
    yield from sort_concepts(concepts)


def read_fields(path: Path, report: Report) -> Iterator[list[str]]:
    """Yield the two fields of each line; neither is empty."""
    for number, line in read_good_lines(path, report):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) == 2 and all(fields):
            yield fields
        else:
            expected = "a code, a tab, and a name or parent"
            text = Errors.E117.format(path=path, line=number, expected=expected)
            report.skip("bad lines", SapbertError(text))
