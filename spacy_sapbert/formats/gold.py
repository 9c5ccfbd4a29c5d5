"""Annotated documents and mentions, and their checked offsets; without spaCy."""

import re
from collections.abc import Callable, Iterable, Sized
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ..errors import SapbertError, blank_mention, unexpected_line
from ..io.reading import RECORD_BYTES, RECORD_VALUES
from ..io.tables.headers import show_id

NIL = "NIL"
LABEL = "ENTITY"  # of a mention without a type: spaCy has no entities without one
LONGEST = 1_000_000  # characters of a document; spaCy's own limit
# whatever the case
NO_ID = frozenset({"", "-", "-1", "nil", "none", "cui-less", "no_code", "nocode"})
# a whole note or value that is an id: 8140/3, I21.9, C0027051, MESH:D001241, an address
LIKE_ID = re.compile(
    r"(?:[A-Za-z][\w.-]*:)?(?=\S{3})[A-Z]{0,4}_?\d[\dA-Z./_-]*|https?://\S+[/#=]\S+"
)
SEPARATORS = re.compile(r"[|+]")
BETWEEN_IDS = re.compile(r"[,;\s]+")  # as people write several
IN_IDS = re.compile(r"[^,;\s]*\d[^,;\s]*")
NOWHERE = (-1, -1)
NO_OFFSET = frozenset({"", "-1"})
NUMBER = re.compile(r"[0-9]{1,9}")
MENTIONS = RECORD_VALUES // 16  # of a document: each takes up to a kilobyte
UNSAID: list[list[str]] = [[]]  # `parts`: a concept, and nobody has said which
Fragments = list[tuple[int, int]]


class GoldMention(NamedTuple):
    """A mention that people annotated, and its concepts.

    Attributes:
        start, end: Offsets in characters; -1 if the file has none.
        type: The type in the file; may be empty.
        mention: The text, which may have gaps.
        parts: The correct ids of each part of a composite; a mention of one concept has
            one part. Empty if there is no concept (NIL), and `UNSAID` if nobody has
            said whether there is one.
        line: Line in the file, from 1; 0 if the format has no lines.
    """

    start: int
    end: int
    type: str
    mention: str
    parts: list[list[str]]
    line: int


class GoldDocument(NamedTuple):
    """A document that people annotated.

    Attributes:
        id: The id in the file, else made of the file or the line.
        text: The text; empty if the file has none, as a table of mentions.
        mentions: In the order of the file.
        source: Name of the file; "" = unknown.
        error: Why the document cannot be read; it then has no text and no mentions.
    """

    id: str | int
    text: str
    mentions: list[GoldMention]
    source: str = ""
    error: str = ""


def failed_document(id: str | int, error: SapbertError) -> GoldDocument:
    return GoldDocument(id, "", [], error=str(error))


def collect_mentions(
    mentions: Iterable[GoldMention], fail: Callable[[str], SapbertError]
) -> list[GoldMention]:
    """Return mentions in a list, unless their texts are too long for the memory."""
    found: list[GoldMention] = []
    length = 0
    for mention in mentions:
        length += len(mention.mention)
        if length > RECORD_BYTES or len(found) == MENTIONS:
            limits = f"{MENTIONS:,} mentions, of {RECORD_BYTES:,} characters in all"
            raise fail(f"at most {limits}")
        found.append(mention)
    return found


def check_count(path: Path, number: int, mentions: Sized) -> None:
    """Check that a document has room for one more mention."""
    if len(mentions) >= MENTIONS:
        raise SapbertError(
            "E007",
            f"{path}:{number}: Expected at most {MENTIONS:,} mentions in a document, "
            "but got more. Check that the file is what it should be.",
        )


def is_no_id(text: str) -> bool:
    """Return whether an annotator wrote that there is no concept."""
    return text.strip().casefold() in NO_ID


def check_ids(
    path: Path,
    document: GoldDocument,
    find: Callable[[str], object],
    on_error: Callable[[SapbertError], object],
) -> GoldDocument:
    """Return a document without mentions whose ids are not written as ids.

    That is an id that has another case, blanks or commas, or no digit. An id that is
    only unknown is not an error: no vocabulary has the ids of all corpora.

    Args:
        find: Returns the concept of an id; None = it is unknown.
        on_error: Called with the error of each mention that is left out.
    """
    mentions: list[GoldMention] = []
    for mention in document.mentions:
        unknown = [ids for ids in mention.parts if not any(map(find, ids))]
        for id in (id for ids in unknown for id in ids):
            meant = [other for other in list_spellings(id) if find(other)]
            if meant or IN_IDS.fullmatch(id) is None:
                place = f":{mention.line}" if mention.line else f", {document.id!r}"
                on_error(misread_id(path=f"{path}{place}", id=id, meant=meant))
                break
        else:
            mentions.append(mention)
    return document._replace(mentions=mentions)


def list_spellings(id: str) -> list[str]:
    """Return an id in other cases, and the parts of one with commas or blanks."""
    parts = BETWEEN_IDS.split(id)
    spellings = (*parts, *map(str.upper, parts), *map(str.lower, parts))
    return [*dict.fromkeys(filter(None, spellings))]


def misread_id(*, path: object, id: str, meant: list[str]) -> SapbertError:
    got = f"{show_id(id)}; it has {' and '.join(meant)}" if meant else show_id(id)
    return SapbertError(
        "E117",
        f"{path}: Expected an id of the knowledge base, several with bars between "
        f"them, or NIL, but got {got}. Correct it.",
    )


def split_ids(ids: str, *, bars_join_parts: bool = False) -> list[list[str]]:
    """Return the ids of each part: `A|B` = A or B, `A+B` = both.

    With `bars_join_parts`, as in NCBI disease and BC5CDR, `A|B` = both.
    """
    parts = SEPARATORS.split(ids) if bars_join_parts else ids.split("+")
    found = [
        [cui for cui in map(str.strip, part.split("|")) if not is_no_id(cui)]
        for part in parts
    ]
    return found if all(found) else []


def choose_kb_id(mention: GoldMention) -> str:
    """Return the first id of a mention; `NIL` for none; "" for composites, `UNSAID`."""
    if not mention.parts:
        return NIL
    return mention.parts[0][0] if len(mention.parts) == 1 and mention.parts[0] else ""


def parse_offsets(path: Path, number: int, start: str, end: str) -> tuple[int, int]:
    """Parse ascending whole numbers; both empty or -1 = `NOWHERE`."""
    start, end = start.strip(), end.strip()
    if start in NO_OFFSET and end in NO_OFFSET:
        return NOWHERE
    if NUMBER.fullmatch(start) and NUMBER.fullmatch(end) and int(start) < int(end):
        return int(start), int(end)
    expected = "two whole numbers as offsets, the start below the end"
    raise unexpected_line(path=path, line=number, expected=expected)


def parse_fragments(path: Path, number: int, field: str) -> Fragments:
    """Parse the offsets of a mention: `start end`, or several with `;` between them."""
    fragments: Fragments = []
    for fragment in field.split(";"):
        start, _, end = fragment.strip().partition(" ")
        fragments.append(parse_offsets(path, number, start, end))
    return fragments


def place_mention(
    path: Path, number: int, text: str, fragments: Fragments, mention: str
) -> tuple[int, int, str]:
    """Check that a mention is in the text; return its place and itself, stripped.

    Blanks and line ends do not count: mentions of NCBI disease end with blanks that are
    not in the text, brat writes an annotation in one line, and some tools join
    fragments without a blank. The error quotes neither.
    """
    if not mention.strip():
        raise blank_mention(path=path, line=number)
    blanks = len(mention) - len(mention.rstrip())
    start, end = fragments[0][0], fragments[-1][1]
    in_order = all(one[1] <= other[0] for one, other in pairwise(fragments))
    pieces = [text[first:last] for first, last in fragments if in_order and first >= 0]
    same = "".join("".join(pieces).split()) == "".join(mention.split())
    if not same or end > len(text) + blanks:
        raise mention_not_in_text(path=path, line=number, start=start, end=end)
    start += len(pieces[0]) - len(pieces[0].lstrip())
    return start, fragments[-1][0] + len(pieces[-1].rstrip()), mention.strip()


def mention_not_in_text(
    *, path: object, line: object, start: object, end: object
) -> SapbertError:
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected the mention from character {start} to {end} of the "
        "text, but something else is there. Correct the offsets or the mention.",
    )
