"""Regression cases of a YAML file: mention and context → concept, checked strictly."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import SapbertError
from ..formats.documents import read_text
from ..formats.entities import NIL
from ..kb.database import is_encodable

MAX_BYTES = 8 << 20
OPENING, CLOSING = "[[", "]]"
KEYS = ("mention", "context", "expected", "label", "note")
IDS = f"an id, a list of ids, or {NIL}"
KINDS = {"scalar": "a text", "sequence": "a list", "mapping": "a mapping"}
# The tags that YAML gives to values without a tag; every scalar is read as text.
PLAIN_TAGS = {
    f"tag:yaml.org,2002:{kind}"
    for kind in ("bool", "float", "int", "map", "null", "seq", "str", "timestamp")
}


class Case(NamedTuple):
    """The expected link of one mention.

    Attributes:
        line: Line of the file where the case begins, from 1.
        text: The context without marks, or the mention alone.
        start: Start of the mention in the text.
        expected: Ids that are right; "NIL" for no concept.
    """

    path: Path
    line: int
    text: str
    start: int
    mention: str
    expected: tuple[str, ...]
    label: str | None
    note: str | None


def read_cases(path: Path) -> Iterator[Case]:
    """Read cases from a list of mappings with the keys `KEYS`."""
    documents = read_documents(path)
    if not documents or not documents[0].value:
        raise SapbertError(
            "E106", f"Expected at least one case in {path}, but it has none. Add one."
        )
    if len(documents) > 1:
        raise case_error(path, documents[1], "one list in the file", "a second one")
    check_node(path, documents[0], "a list of cases", "sequence")
    for node in documents[0].value:
        yield parse_case(path, node)


def read_documents(path: Path) -> list[Any]:
    """Read YAML as nodes, without Python objects; an error does not quote it."""
    from srsly.ruamel_yaml import BaseLoader, compose_all

    if path.is_file() and path.stat().st_size > MAX_BYTES:
        raise SapbertError(
            "E007",
            f"Expected a file of at most {MAX_BYTES} bytes at {path}, but got a "
            "larger one. Split it; `spacy sapbert regress` reads several files.",
        )
    text = read_text(path, longest=MAX_BYTES)
    try:
        return list(compose_all(text, Loader=BaseLoader))
    except Exception as error:  # YAMLError, or e.g. ValueError of a wrong escape
        reason = getattr(error, "problem", None) or "a character is not allowed"
        mark = getattr(error, "problem_mark", None)
        if "end of stream" in reason:
            mark = getattr(error, "context_mark", None) or mark
        before = text[: getattr(mark or error, "index" if mark else "position", 0)]
        line = before.count("\n") + 1
        raise SapbertError(
            "E117",
            f"{path}:{line}: Expected YAML, but {reason}. Correct it; quotes around "
            "the value often help.",
        ) from None


def case_error(path: Path, node: Any, expected: str, got: str) -> SapbertError:
    line = node.start_mark.line + 1
    return SapbertError(
        "E117",
        f"{path}:{line}: Expected {expected}, but got {got}. Correct the case; `spacy "
        "sapbert regress --help` shows one.",
    )


def check_node(path: Path, node: Any, expected: str, *kinds: str) -> None:
    """Check that a node is of a kind and has no tag, anchor or alias."""
    if node.anchor or node.tag not in PLAIN_TAGS:
        without = f"{expected}, without tags, anchors and aliases"
        raise case_error(path, node, without, "one")
    if node.id not in kinds:
        raise case_error(path, node, expected, KINDS[node.id])


def parse_case(path: Path, case: Any) -> Case:
    check_node(path, case, "a case with keys and values", "mapping")
    nodes: dict[str, Any] = {}
    texts: dict[str, str] = {}
    expected: list[str] = []
    for key, value in case.value:
        check_node(path, key, "a key", "scalar")
        name = key.value
        if name in nodes:
            raise case_error(path, key, "each key once", f"a second `{name}`")
        nodes[name] = key
        check_node(path, value, "a text, or a list of texts", "scalar", "sequence")
        is_list = value.id == "sequence"
        for item in value.value if is_list else ():
            check_node(path, item, "a text", "scalar")
        if name not in KEYS:
            raise case_error(path, key, f"keys of {', '.join(KEYS)}", "another")
        if name == "expected":
            expected = [n.value for n in value.value] if is_list else [value.value]
            if not expected or not all(cui.strip() for cui in expected):
                raise case_error(path, key, IDS, "nothing")
        elif is_list or not value.value.strip():
            got = "a list" if is_list else "nothing"
            raise case_error(path, key, f"a text as `{name}`", got)
        else:
            texts[name] = value.value
    if not expected:
        raise case_error(path, case, f"`expected`: {IDS}", "none")
    mention, text, start = place_mention(
        texts.get("mention"),
        texts.get("context"),
        lambda what, got: case_error(path, nodes.get("context", case), what, got),
    )
    cuis = tuple(dict.fromkeys(cui.strip() for cui in expected))
    line = case.start_mark.line + 1
    more = texts.get("label"), texts.get("note")
    return Case(path, line, text, start, mention, cuis, *more)


def place_mention(
    mention: str | None,
    context: str | None,
    fail: Callable[[str, str], Exception],
) -> tuple[str, str, int]:
    """Return a mention, its context without marks, and where the mention starts in it.

    Without marks around the mention the first place counts.
    """
    for text in (mention, context):
        if text is not None and not is_encodable(text):
            raise fail("a text in UTF-8", "other bytes")
    if mention is not None and not mention.strip():
        raise fail("a mention", "blanks or nothing")
    if context is None:
        if mention is None:
            raise fail("`mention`, or a `context` that marks it", "neither")
        return mention, mention, 0
    if OPENING in context or CLOSING in context:
        before, opening, rest = context.partition(OPENING)
        marked, closing, after = rest.partition(CLOSING)
        if not (opening and closing and marked.strip()):
            raise fail(f"one {OPENING}mention{CLOSING}", "half of it")
        if any(mark in part for mark in (OPENING, CLOSING) for part in (marked, after)):
            raise fail(f"one {OPENING}mention{CLOSING}", "several")
        if mention not in (None, marked):
            raise fail("the mention that the context marks", "another")
        return marked, before + marked + after, len(before)
    if mention is None:
        raise fail(f"`mention`, or {OPENING}marks{CLOSING} around it", "neither")
    start = context.find(mention)
    if start < 0:
        raise fail("a context with the mention in it", "another")
    return mention, context, start
