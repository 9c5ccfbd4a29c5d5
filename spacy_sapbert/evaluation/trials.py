"""What may mend a link, and whether it does: settings tried out on a mention."""

import shlex
from dataclasses import replace
from typing import Any

from .trace import Lookup, Question, ask_linker

# What to do, maybe the command, and whether it was tried and works.
Mend = dict[str, Any]
Located = dict[str, Any]


def make_mend(
    what: str, *, command: str | None = None, tried: bool | None = None
) -> Mend:
    """Write a mend down.

    what (str): What to do, in words.
    command (str | None): The command that does it.
    tried (bool | None): Whether the mention then has the concept; None = not tried.
    RETURNS (Mend): Plain JSON types.
    """
    return {"what": what, "command": command, "tried": tried}


def works(
    lookup: Lookup,
    located: Located,
    question: Question | None = None,
    **changes: Any,
) -> bool:
    """Ask again with other settings.

    lookup (Lookup): The answer.
    located (Located): The expected concept.
    question (Question | None): Another question; None = the same.
    changes (Any): Fields of `LinkOptions`.
    RETURNS (bool): Whether the mention then has the expected concept.
    """
    options = replace(lookup.options, **changes)
    linked = ask_linker(lookup.kb, question or lookup.question, options)[0]
    return located["cui"] is not None and linked.cui == located["cui"]


def kb_command(lookup: Lookup, verb: str, *arguments: str) -> str:
    """Write a command that changes the knowledge base."""
    words = ["spacy", "sapbert", "kb", verb, str(lookup.kb.folder), *arguments]
    return shlex.join(words)
