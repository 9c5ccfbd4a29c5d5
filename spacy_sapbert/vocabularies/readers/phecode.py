"""PhecodeX: a table of labels, and beside it a table of ancestors."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import Errors, SapbertError
from ..concepts import Concept
from ..merge import sort_concepts
from ..report import Report, clean_names, read_good_lines

LABELS = ("phenotype", "description")
ROLLUP = ("code", "phecode_unrolled")
SOURCE = "PHECODE"
MARK = "*"  # after the names of phenotypes that only ICD-10 defines


def read_phecode(
    path: Path, report: Report, *, type: str | None = None
) -> Iterator[Concept]:
    """Read phenotypes and their parents.

    Args:
        path: `…_labels.csv`, plain or `.gz`. Ancestors are in `…_rollup_map.csv` beside
            it, if that exists.
        type: Semantic type of all concepts.

    Yields:
        Each concept, sorted by id.

    Raises:
        SapbertError: With file and line, at the first invalid line.

    Source: Shuey et al. (2023), Next-generation phenotyping.
    """
    ancestors: dict[str, set[str]] = {}
    rollup = path.with_name(path.name.replace("_labels", "_rollup_map"))
    if rollup != path and rollup.is_file():
        for code, other in read_table(rollup, ROLLUP, report):
            ancestors.setdefault(code, set()).add(other)
    else:
        report.notes.append(f"{rollup.name} is not there: no parents.")
    concepts = (
        Concept(
            code,
            names,
            types=[type] if type else [],
            codes={SOURCE: [code]},
            parents=find_parents(code, ancestors),
            sources={SOURCE: [0]},
        )
        for code, label in read_table(path, LABELS, report)
        if (names := clean_names([label.removesuffix(MARK)], report))
    )
    yield from sort_concepts(concepts)


def find_parents(code: str, ancestors: dict[str, set[str]]) -> list[str]:
    """Return the nearest ancestors of a code, sorted: those of no other ancestor."""
    found = ancestors.get(code, set()) - {code}
    farther = {
        other for each in found for other in ancestors.get(each, ()) if other != each
    }
    return sorted(found - farther)


def read_table(
    path: Path, columns: Sequence[str], report: Report
) -> Iterator[list[str]]:
    """Read columns of a table with commas; its first line names all columns.

    Args:
        columns: The first one is an id and must not be empty.

    Raises:
        SapbertError: With file and line; if a column does not exist.
    """
    places: list[int] = []
    width = 0
    for number, line in read_good_lines(path, report):
        try:
            [fields] = csv.reader([line], strict=True)
        except csv.Error:
            fields = []
        if not places:
            if not set(columns) <= set(fields):
                raise SapbertError(
                    Errors.E755.format(
                        path=path,
                        line=number,
                        columns=" and ".join(columns),
                        got=", ".join(fields[:10]) or "no table",
                    )
                )
            places, width = [fields.index(name) for name in columns], len(fields)
        elif len(fields) == width and fields[places[0]].strip():
            yield [fields[place].strip() for place in places]
        else:
            expected = f"{width} fields between commas, and an id"
            text = Errors.E117.format(path=path, line=number, expected=expected)
            report.skip("bad lines", SapbertError(text))
