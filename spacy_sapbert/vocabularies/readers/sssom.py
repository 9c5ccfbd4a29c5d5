"""SSSOM: mappings between concepts of vocabularies, as a table.

Source: mapping-commons.github.io/sssom.
"""

from collections.abc import Iterator
from pathlib import Path

from ...io.reading import read_lines
from ...io.tables import Row
from ..facts import CODE, NAME, Fact
from ..ids import split_id
from ..options import ReadOptions
from ..report import Report
from ..tables.delimited import read_rows, select_columns

COLUMNS = ("subject_id", "predicate_id", "object_id")
OPTIONAL = ("predicate_modifier", "subject_label", "object_label")
# what makes two concepts equal; others are broader, narrower, close or related
EXACT = ("skos:exactMatch", "owl:sameAs", "owl:equivalentClass")
NAMESPACES = {
    "http://www.w3.org/2004/02/skos/core#": "skos:",
    "http://www.w3.org/2002/07/owl#": "owl:",
}
NOTHING = "sssom:NoTermFound"
COMMENT = "#"  # before each line of the metadata


def read_sssom(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the concepts of exact mappings that have a label.

    Each has the ids that it is mapped to as codes.

    Args:
        path: With or without the metadata above the table.
    """
    for subject, target, name, other in read_exact(path, report):
        for id, label, mapped in ((subject, name, target), (target, other, subject)):
            if label:
                yield Fact(id, NAME, label)
                prefix, local = split_id(mapped)
                if prefix:
                    yield Fact(id, CODE, local, source=prefix)


def read_mappings(path: Path, report: Report) -> Iterator[tuple[str, str]]:
    """Yield the ids of each exact mapping; see `read_sssom`."""
    for subject, target, *_ in read_exact(path, report):
        yield subject, target


def read_exact(path: Path, report: Report) -> Iterator[list[str]]:
    """Yield the ids and the labels of each exact mapping."""
    first = next((line for _, line in read_lines(path) if is_row(line)), "")
    separator = "\t" if "\t" in first else ","
    rows = skip_comments(read_rows(path, separator, report, quoted=True))
    for _, (subject, predicate, target, modifier, *labels) in select_columns(
        rows, path, COLUMNS, report, optional=OPTIONAL
    ):
        for namespace, prefix in NAMESPACES.items():
            predicate = predicate.replace(namespace, prefix)
        if modifier or predicate not in EXACT:
            report.dropped["mappings that are no exact matches"] += 1
        elif not target or subject == target or NOTHING in (subject, target):
            report.dropped["mappings to nothing"] += 1
        else:
            yield [subject, target, *labels]


def is_row(line: str) -> bool:
    """Return whether a line is part of the table."""
    return bool(line.strip()) and not line.startswith(COMMENT)


def skip_comments(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of the table, without the metadata."""
    for number, fields in rows:
        if not fields or not fields[0].startswith(COMMENT):
            yield number, fields
