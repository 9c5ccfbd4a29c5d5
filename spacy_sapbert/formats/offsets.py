"""Where a mention is, checked: what the formats with offsets share."""

import re
from pathlib import Path

from ..errors import Errors, SapbertError

NOWHERE = (-1, -1)
NO_OFFSET = frozenset({"", "-1"})
NUMBER = re.compile(r"[0-9]{1,9}")

Fragments = list[tuple[int, int]]


def parse_offsets(path: Path, number: int, start: str, end: str) -> tuple[int, int]:
    """Read the offsets of a mention.

    path (Path): The file, for the error.
    number (int): The line, for the error.
    start (str): A whole number; or, like the end, empty or -1 for none.
    end (str): A larger one.
    RETURNS (tuple[int, int]): The offsets; `NOWHERE` if there are none.
    RAISES (SapbertError): If they are something else.
    """
    start, end = start.strip(), end.strip()
    if start in NO_OFFSET and end in NO_OFFSET:
        return NOWHERE
    if NUMBER.fullmatch(start) and NUMBER.fullmatch(end) and int(start) < int(end):
        return int(start), int(end)
    raise SapbertError(Errors.E714.format(path=path, line=number))


def place_mention(
    path: Path, number: int, text: str, offsets: tuple[int, int], mention: str
) -> tuple[int, int, str]:
    """Hold a mention against the text that it is from.

    Blanks around a mention do not count: NCBI disease has one with two blanks after
    it that the text does not have.

    path (Path): The file, for the error.
    number (int): The line, for the error.
    text (str): Of the document.
    offsets (tuple[int, int]): Start and end.
    mention (str): As the file has it.
    RETURNS (tuple[int, int, str]): Start, end and mention without blanks around.
    RAISES (SapbertError): If it is blank, or something else is there. Neither is
        quoted.
    """
    mention = mention.strip()
    if not mention:
        raise SapbertError(Errors.E704.format(path=path, line=number))
    start, end = offsets
    found = text[start:end] if start >= 0 else ""
    if found.strip() != mention:
        raise SapbertError(
            Errors.E713.format(path=path, line=number, start=start, end=end)
        )
    start += len(found) - len(found.lstrip())
    return start, start + len(mention), mention


def parse_fragments(path: Path, number: int, field: str) -> Fragments:
    """Read the offsets of a mention that may have gaps.

    path (Path): The file, for the error.
    number (int): The line, for the error.
    field (str): `start end`, or several with `;` between them.
    RETURNS (Fragments): Start and end of each.
    RAISES (SapbertError): If it is something else.
    """
    fragments: Fragments = []
    for each in field.split(";"):
        start, _, end = each.strip().partition(" ")
        offsets = parse_offsets(path, number, start, end)
        if offsets == NOWHERE:
            raise SapbertError(Errors.E714.format(path=path, line=number))
        fragments.append(offsets)
    return fragments


def place_fragments(
    path: Path, number: int, text: str, fragments: Fragments, mention: str
) -> tuple[int, int, str]:
    """Hold a mention that may have gaps against the text that it is from.

    What is between the words, blanks or line ends, does not count: an annotation is
    one line, so that brat writes its mention with blanks.

    path (Path): The file, for the error.
    number (int): The line, for the error.
    text (str): Of the document.
    fragments (Fragments): Start and end of each.
    mention (str): As the file has it.
    RETURNS (tuple[int, int, str]): Start of the first fragment, end of the last, and
        the mention without blanks around it.
    RAISES (SapbertError): If it is blank, or something else is there. Neither is
        quoted.
    """
    if not mention.strip():
        raise SapbertError(Errors.E704.format(path=path, line=number))
    start, end = fragments[0][0], fragments[-1][1]
    found = " ".join(text[first:last] for first, last in fragments)
    in_order = all(
        one[1] <= other[0] for one, other in zip(fragments, fragments[1:], strict=False)
    )
    if found.split() != mention.split() or not in_order:
        raise SapbertError(
            Errors.E713.format(path=path, line=number, start=start, end=end)
        )
    return start, end, mention.strip()
