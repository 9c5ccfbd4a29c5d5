"""Documents and mentions with the concepts that people found; without spaCy."""

import re
from typing import NamedTuple

NIL = "NIL"
LONGEST = 1_000_000  # characters of a document; spaCy's own limit
NO_ID = frozenset({"", "-", "-1", "NIL", "CUI-less"})
SEPARATORS = re.compile(r"[|+]")


class GoldSpan(NamedTuple):
    """One mention of a document, and what it means.

    start (int): Its first character in the text; -1 if the corpus does not say.
    end (int): The character after its last; -1 if the corpus does not say.
    type (str): As the corpus has it; empty if it has none.
    mention (str): The text.
    parts (list[list[str]]): For each part of a composite the ids of which one has to
        be found; a mention of one concept has one part. Empty if there is no id.
    line (int): Its line in the file, from 1; 0 if the format has no lines.
    """

    start: int
    end: int
    type: str
    mention: str
    parts: list[list[str]]
    line: int


class GoldDocument(NamedTuple):
    """A document and its mentions.

    id (str | int): As the corpus has it, else made of the file or the line.
    text (str): The text; empty if the corpus has none.
    spans (list[GoldSpan]): The mentions, in the order of the file.
    """

    id: str | int
    text: str
    spans: list[GoldSpan]


def split_ids(ids: str, *, bars_join_parts: bool = False) -> list[list[str]]:
    """Read a field of ids.

    ids (str): `A|B` = A or B, `A+B` = both, `A|B+C` = A or B, and C.
    bars_join_parts (bool): `A|B` = both, as NCBI disease and BC5CDR mean it.
    RETURNS (list[list[str]]): The ids of each part; empty if a part has no id, since
        then nobody can find all of them.
    """
    parts = SEPARATORS.split(ids) if bars_join_parts else ids.split("+")
    found = [
        [cui for cui in map(str.strip, part.split("|")) if cui not in NO_ID]
        for part in parts
    ]
    return found if all(found) else []


def choose_kb_id(span: GoldSpan) -> str:
    """Return the one id that an entity can have.

    span (GoldSpan): A mention.
    RETURNS (str): Its first; `NIL` if the corpus has none for it; empty if it is a
        composite, of which no id alone is right.
    """
    if not span.parts:
        return NIL
    return span.parts[0][0] if len(span.parts) == 1 else ""
