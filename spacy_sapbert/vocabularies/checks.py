"""Filters that name what is not there, and filters that leave nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from ..errors import Errors, SapbertError
from .concepts import Concept
from .report import Report

SHOWN = 30


def check_known(
    what: str, asked: Iterable[str], known: Sequence[str], path: Path
) -> None:
    """Check that what a filter names occurs in the file.

    what (str): What is filtered, e.g. "sources".
    asked (Iterable[str]): What the filter names.
    known (Sequence[str]): What the file has.
    path (Path): The file, for the error.
    RAISES (SapbertError): With the nearest names that the file has.
    """
    unknown = sorted(set(asked) - set(known))
    if not unknown:
        return
    near = get_close_matches(unknown[0].upper(), known, 3, 0.5)
    shown = sorted(known)[:SHOWN]
    raise SapbertError(
        Errors.E105.format(
            what=what,
            path=path,
            unknown=", ".join(unknown),
            hint=f" Did you mean {' or '.join(near)}?" if near else "",
            known=", ".join(shown) + (" …" if len(known) > SHOWN else ""),
        )
    )


def nothing_left(report: Report) -> str:
    """Say that no concept is left, and which rule dropped how many.

    report (Report): What was read.
    RETURNS (str): The text of the error.
    """
    dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items() if n)
    return Errors.E106.format(path=report.path, dropped=dropped or "nothing")


def count_concepts(concepts: Iterable[Concept], report: Report) -> Iterator[Concept]:
    """Count the concepts of a hierarchy that pass by.

    concepts (Iterable[Concept]): What a reader gives out.
    report (Report): Is told of concepts, names and parents.
    YIELDS (Concept): The same.
    RAISES (SapbertError): In the end, if there were none.
    """
    for concept in concepts:
        report.concepts += 1
        report.names += len(concept.aliases)
        report.counts["parents"] += len(concept.parents)
        yield concept
    if not report.concepts:
        raise SapbertError(nothing_left(report))


def compile_pattern(text: str) -> "re.Pattern[str]":
    """Make a pattern of ids out of its text.

    text (str): A regular expression.
    RETURNS (re.Pattern[str]): The pattern.
    RAISES (SapbertError): If it is none.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise SapbertError(Errors.E114.format(pattern=text, reason=error)) from None
