"""PhecodeX: a table of labels, and beside it a table of ancestors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..concepts import Concept
from ..merge import sort_concepts
from ..report import Report, clean_names
from ..tables.delimited import read_columns

LABELS = ("phenotype", "description")
ROLLUP = ("code", "phecode_unrolled")
COMMAS: Any = {"separator": ",", "quoted": True}
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
        for _, (code, other) in read_columns(rollup, ROLLUP, report, **COMMAS):
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
        for _, (code, label) in read_columns(path, LABELS, report, **COMMAS)
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
