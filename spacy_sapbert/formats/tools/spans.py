"""What the readers of annotation tools share: spans, their offsets, and records."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ...errors import SapbertError
from ...io.json_members import JSONError
from ..documents import OnError
from ..gold import (
    LIKE_ID,
    NIL,
    UNSAID,
    GoldDocument,
    GoldMention,
    collect_mentions,
    failed_document,
    is_no_id,
)

Fail = Callable[[str], SapbertError]
Record = TypeVar("Record")
# of a record that has another structure; `JSONError` is not one
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)


class Mark(NamedTuple):
    """A span that a person marked, with offsets as the tool counts them.

    `covered` is the text that the file has for it; None = it has none.
    """

    start: int
    end: int
    label: str
    covered: str | None = None
    parts: list[list[str]] = UNSAID


def number_units(text: str) -> Mapping[int, int]:
    """Return the character at which each UTF-16 unit of a text begins, and its end."""
    units = accumulate((1 + (sign > "\uffff") for sign in text), initial=0)
    return {unit: character for character, unit in enumerate(units)}


def place_marks(
    text: str, marks: Sequence[Mark], fail: Fail, *, utf16: bool | None = None
) -> list[GoldMention]:
    """Return the mentions of a text, if all offsets fit.

    Args:
        utf16: Offsets count UTF-16 units, as Java and JavaScript do; None = characters,
            unless only units give the texts that the file has. Both differ in texts
            with signs such as emoji.
    """
    is_plain = not text or max(text) <= "\uffff"
    for units in (False, True) if utf16 is None else (utf16,):
        if units and is_plain and utf16 is None:
            break
        is_same = is_plain or not units
        starts = range(len(text) + 1) if is_same else number_units(text)
        mentions = [place_mark(text, mark, starts) for mark in marks]
        found = [mention for mention in mentions if mention is not None]
        if len(found) == len(marks):
            return collect_mentions(found, fail)
    raise fail("mentions whose offsets are inside the text and give their text")


def place_mark(
    text: str, mark: Mark, starts: Mapping[int, int] | range
) -> GoldMention | None:
    """Return a mention at the characters of a mark; None if they do not fit."""
    if not 0 <= mark.start < mark.end:
        return None
    try:
        start, end = starts[mark.start], starts[mark.end]
    except LookupError:
        return None
    mention = text[start:end]
    if mark.covered is not None and mark.covered.split() != mention.split():
        return None
    return GoldMention(start, end, mark.label, mention, mark.parts, 0)


def read_ids(values: Iterable[Any], *, named: bool = False) -> list[list[str]]:
    """Return the ids among what an annotator wrote of a mention, as alternatives.

    Args:
        named: The field is for ids, so that each text in it is one. Else ids are told
            by their form.
    """
    texts = [str(value).strip() for value in values if value not in (None, "")]
    if ids := [t for t in texts if not is_no_id(t) and (named or LIKE_ID.fullmatch(t))]:
        return [[*dict.fromkeys(ids)]]
    nothing = [text for text in texts if is_no_id(text)]
    return [] if nothing and (named or NIL in nothing) else UNSAID


def read_records(
    path: Path,
    format: str,
    records: Callable[[Path, Fail], Iterable[Record]],
    make: Callable[[Record, Fail], GoldDocument | None],
    name: Callable[[Record], str],
    on_error: OnError,
) -> Iterator[GoldDocument]:
    """Yield the documents of a file; one that cannot be read is an error.

    Args:
        format: In words, for errors, which have the number of the document.
        make: Returns the document of a record; None = nobody has annotated it.
        name: Returns the id of a record that cannot be read; "" = it is unknown.
    """
    number = 1

    def fail(expected: str) -> SapbertError:
        return SapbertError(
            "E117",
            f"{path}: Expected {format}, with {expected}, but document {number} has "
            "another structure. Check `format`, or export the file again.",
        )

    try:
        for record in records(path, fail):
            try:
                document = make(record, fail)
            except UNREADABLE as reason:
                if isinstance(reason, SapbertError):
                    error = reason
                elif isinstance(reason, KeyError):
                    error = fail(f"the field `{reason.args[0]}`")
                else:
                    error = fail("fields of the usual types")
                on_error(error)
                with suppress(*UNREADABLE):
                    if id := name(record):
                        yield failed_document(id, error)
            else:
                if document is not None:
                    yield document
            number += 1
    except JSONError as got:
        raise SapbertError(
            "E117",
            f"{path}: Expected {format}, but got {got}. Check `format`, or export the "
            "file again.",
        ) from None


def warn_left_out(path: Path, left_out: Counter[str]) -> None:
    """Report the annotations of a file that were left out, in a warning."""
    if counts := ", ".join(f"{n:,} {what}" for what, n in left_out.items() if n):
        warnings.warn(
            f"[W540] {path}: Expected annotations that people have made and accepted, "
            f"each once, but left out {counts}.",
            stacklevel=2,
        )
