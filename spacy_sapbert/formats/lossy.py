"""What a format of one line a mention cannot hold: put right, counted, and said."""

import re
import warnings
from collections import Counter
from urllib.parse import quote

from ..errors import Warnings

# What some program takes for the end of a line, and tabs, which part fields.
BREAKING = "\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
BREAKS = re.compile(f"[{BREAKING}]")
UNBROKEN = re.compile(f"[^{BREAKING}]+")
BLANKS = re.compile(r"\s+")
NOT_IN_IDS = re.compile(r"[|+\s]")  # they part ids and fields

Losses = Counter[str]


def blank_breaks(text: str) -> str:
    """Put a blank in the place of each line end and tab, so that offsets stay.

    text (str): Any text.
    RETURNS (str): As long as before, and one line.
    """
    return BREAKS.sub(" ", text)


def trim_place(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Leave out the blanks around a mention.

    text (str): Of the document.
    start (int): First character of the mention.
    end (int): The character after its last.
    RETURNS (tuple[int, int] | None): Where the mention is without them; None if
        there is nothing else.
    """
    mention = text[start:end]
    core = mention.strip()
    if not core:
        return None
    start += len(mention) - len(mention.lstrip())
    return start, start + len(core)


def quote_id(cui: str, losses: Losses) -> str:
    """Write an id without the characters that part ids.

    cui (str): Id of a concept.
    losses (Losses): Is added to.
    RETURNS (str): The same, with `%7C` for `|` and so on.
    """
    quoted = NOT_IN_IDS.sub(lambda match: quote(match.group()), cui)
    losses["ids quoted"] += quoted != cui
    return quoted


def name_type(label: str, losses: Losses) -> str:
    """Make a label the name of a type, which has to be one word.

    label (str): Of an entity.
    losses (Losses): Is added to.
    RETURNS (str): With `_` for blanks; `ENTITY` if it is empty.
    """
    name = BLANKS.sub("_", label) or "ENTITY"
    losses["labels changed"] += name != label
    return name


def warn_losses(format: str, losses: Losses) -> None:
    """Say once what is not as it was.

    format (str): The format.
    losses (Losses): How often what.
    """
    said = ", ".join(f"{count} {what}" for what, count in losses.items() if count)
    if said:
        warnings.warn(Warnings.W520.format(format=format, losses=said), stacklevel=3)
