"""SSSOM: mappings between concepts of vocabularies, as a table.

Source: mapping-commons.github.io/sssom.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...io.reading import read_lines
from ...io.tables.delimited import Row
from ..concepts import BROADER, NARROWER, RELATED
from ..facts import CODE, NAME, Fact
from ..ids import split_id
from ..options import ReadOptions
from ..report import Report
from ..tables.delimited import read_rows, select_columns

COLUMNS = ("object_id", "predicate_id")
OPTIONAL = (
    *("subject_id", "subject_label", "object_label", "predicate_modifier"),
    "confidence",
)
EXACT = "exact"
CLOSE = "skos:closeMatch"
# What the object is to the subject. A cross reference, of which the file says nothing
# else, makes them equal, as in other ontologies.
PREDICATES = {
    "skos:exactMatch": EXACT,
    "owl:sameAs": EXACT,
    "owl:equivalentClass": EXACT,
    "oboInOwl:hasDbXref": EXACT,
    "oio:hasDbXref": EXACT,
    "skos:broadMatch": BROADER,
    "skos:narrowMatch": NARROWER,
    CLOSE: RELATED,
    "skos:relatedMatch": RELATED,
}
INVERSE = {BROADER: NARROWER, NARROWER: BROADER}
NAMESPACES = {
    "http://www.w3.org/2004/02/skos/core#": "skos:",
    "http://www.w3.org/2002/07/owl#": "owl:",
    "http://www.geneontology.org/formats/oboInOwl#": "oboInOwl:",
}
NOTHING = "sssom:NoTermFound"
COMMENT = "#"  # before each line of the metadata
LEAST_CONFIDENCE = 0.5  # of a mapping that counts; one without confidence does


class Mapping(NamedTuple):
    """A row that says what a concept is to another concept, or to a text.

    Attributes:
        subject: Id; "" = the subject is a text, its label.
        target: Id, or `NOTHING`.
        relation: What the target is to the subject: `EXACT` or one of `RELATIONS`.
    """

    line: int
    subject: str
    target: str
    subject_label: str
    target_label: str
    relation: str = EXACT


def read_sssom(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the concepts of mappings that have a label.

    Each has the ids that it is mapped to as codes, and the text that is exactly mapped
    to it as a name.

    Args:
        path: With or without the metadata above the table.
    """
    for row in read_mappings(path, report):
        inverse = INVERSE.get(row.relation, row.relation)
        ends = (
            (row.subject, row.subject_label, row.target, row.relation),
            (row.target, row.target_label, row.subject, inverse),
        )
        for id, label, mapped, relation in ends:
            if not id or not label:
                continue
            yield Fact(id, NAME, label)
            prefix, local = split_id(mapped)
            if prefix:
                kind = CODE if relation == EXACT else relation
                yield Fact(id, kind, local, source=prefix)
        if not row.subject and row.subject_label and row.relation == EXACT:
            yield Fact(row.target, NAME, row.subject_label)


def read_mappings(path: Path, report: Report) -> Iterator[Mapping]:
    """Yield the mappings between two concepts, or a text and a concept."""
    for row in read_rows_of(path, report):
        if NOTHING in (row.subject, row.target) or row.subject == row.target:
            report.dropped["mappings to nothing"] += 1
        else:
            yield row


def read_exact(path: Path, report: Report) -> Iterator[Mapping]:
    """Yield exact mappings; of several objects with bars between them, one each."""
    for row in read_rows_of(path, report):
        if row.relation == EXACT:
            yield row
        else:
            report.dropped["mappings that are no exact matches"] += 1


def read_rows_of(path: Path, report: Report) -> Iterator[Mapping]:
    """Yield the mappings of a file with a known predicate."""
    first = next((line for _, line in read_lines(path) if is_row(line)), "")
    separator = "\t" if "\t" in first else ","
    rows = skip_comments(read_rows(path, separator, report, quoted=True))
    for line, cells in select_columns(rows, path, COLUMNS, report, optional=OPTIONAL):
        targets, predicate, subject, label, other, modifier, confidence = cells
        predicate = shorten_predicate(predicate)
        if modifier or predicate not in PREDICATES:
            report.dropped["mappings with other predicates"] += 1
        elif is_doubtful(confidence):
            rule = f"mappings with a confidence below {LEAST_CONFIDENCE}"
            report.dropped[rule] += 1
        else:
            relation = PREDICATES[predicate]
            for target in targets.split("|"):
                yield Mapping(line, subject, target.strip(), label, other, relation)


def shorten_predicate(predicate: str) -> str:
    """Return a predicate with the prefix of its namespace, if it is an address."""
    for namespace, prefix in NAMESPACES.items():
        predicate = predicate.replace(namespace, prefix)
    return predicate


def says_same(predicate: str) -> bool:
    """Return whether a predicate says that two are the same, or nearly so."""
    predicate = shorten_predicate(predicate)
    return predicate == CLOSE or PREDICATES.get(predicate) == EXACT


def is_doubtful(confidence: str) -> bool:
    """Return whether a confidence is a low number."""
    try:
        return float(confidence) < LEAST_CONFIDENCE
    except ValueError:
        return False


def is_row(line: str) -> bool:
    """Return whether a line is part of the table."""
    return bool(line.strip()) and not line.startswith(COMMENT)


def skip_comments(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of the table, without the metadata."""
    for number, fields in rows:
        if not fields or not fields[0].startswith(COMMENT):
            yield number, fields
