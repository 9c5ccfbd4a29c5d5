"""SSSOM: the concepts that mappings are about."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ..facts import CODE, NAME, Fact
from ..ids import split_id
from ..options import ReadOptions
from ..report import Report
from ..sssom import EXACT, INVERSE, Mapping, read_mappings


def read_sssom(path: Path, report: Report, options: ReadOptions) -> Iterator[Fact]:
    """Read the concepts of mappings that have a label.

    Each has the ids that it is mapped to as codes, and the text that is exactly mapped
    to it as a name.

    Args:
        path: With or without the metadata above the table.
    """
    return mapping_facts(list_mappings(path, report, options), report)


def list_mappings(
    path: Path, report: Report, options: ReadOptions
) -> Iterator[Mapping]:
    """Yield the mappings of a file; see `read_mappings`."""
    return read_mappings(path, report, options.least_confidence)


def mapping_facts(rows: Iterable[Mapping], report: Report) -> Iterator[Fact]:
    """Yield the facts of the concepts of mappings that have a label."""
    unnamed, named = 0, False
    for row in rows:
        inverse = INVERSE.get(row.relation, row.relation)
        ends = (
            (row.subject, row.subject_label, row.target, row.relation),
            (row.target, row.target_label, row.subject, inverse),
        )
        for id, label, mapped, relation in ends:
            if not id or not label:
                unnamed += bool(id)
                continue
            named = True
            yield Fact(id, NAME, label)
            prefix, local = split_id(mapped)
            if prefix:
                kind = CODE if relation == EXACT else relation
                yield Fact(id, kind, local, source=prefix)
        if not row.subject and row.subject_label and row.relation == EXACT:
            yield Fact(row.target, NAME, row.subject_label)
    if not named:
        report.dropped["ids without a label"] += unnamed
