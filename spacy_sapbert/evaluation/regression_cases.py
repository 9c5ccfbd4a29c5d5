"""Cases of a YAML file: mention and context → concept, checked strictly."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
)

from ..errors import Errors, SapbertError
from ..formats.documents import read_text
from ..formats.entities import NIL

MOST_BYTES = 8 << 20
OPENING, CLOSING = "[[", "]]"
KEYS = ("mention", "context", "expected", "label", "note")
# What people call the parser's events.
EVENTS = {
    "AliasEvent": "an alias",
    "DocumentStartEvent": "a second document",
    "MappingStartEvent": "a mapping",
    "ScalarEvent": "a text",
    "SequenceStartEvent": "a list",
}


class Case(NamedTuple):
    """What a mention should be linked to.

    path (Path): The file.
    line (int): Where the case begins, from 1.
    text (str): The context without marks, or the mention alone.
    start (int): Of the mention in the text.
    mention (str): The mention.
    expected (tuple[str, ...]): Ids that are right; "NIL" for no concept.
    label (str | None): Of the entity.
    note (str | None): For people.
    """

    path: Path
    line: int
    text: str
    start: int
    mention: str
    expected: tuple[str, ...]
    label: str | None
    note: str | None


class Value(NamedTuple):
    """What a key of a case has: a text or texts, and the line where it begins."""

    content: str | list[str]
    line: int


def read_events(path: Path) -> Iterator[Any]:
    """Read a YAML file step by step; nothing is made of what it says.

    path (Path): The file, in UTF-8.
    YIELDS (Event): The parser's events.
    RAISES (SapbertError): If it is too large, or no YAML; with the line.
    """
    from srsly.ruamel_yaml import SafeLoader, parse

    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise SapbertError(Errors.E569.format(path=path, limit=MOST_BYTES))
    text = read_text(path, longest=MOST_BYTES)
    try:
        yield from parse(text, Loader=SafeLoader)
    except Exception as error:  # YAMLError, or e.g. ValueError of a wrong escape
        reason = getattr(error, "problem", None) or "a character is not allowed"
        mark = getattr(error, "problem_mark", None)
        if "end of stream" in reason:
            mark = getattr(error, "context_mark", None) or mark
        before = text[: getattr(mark or error, "index" if mark else "position", 0)]
        # What the error itself says would quote the line.
        raise SapbertError(
            Errors.E566.format(path=path, line=before.count("\n") + 1, reason=reason)
        ) from None


def read_cases(path: Path) -> Iterator[Case]:
    """Read cases.

    path (Path): A YAML file: a list of mappings with the keys `KEYS`.
    YIELDS (Case): Each, checked.
    RAISES (SapbertError): If there is none, or with the line, if one is wrong.
    """
    count = 0
    for line, values in parse_cases(path):
        count += 1
        yield check_case(path, line, values)
    if not count:
        raise SapbertError(Errors.E568.format(path=path))


def parse_cases(path: Path) -> Iterator[tuple[int, dict[str, Value]]]:
    """Read a YAML file as a list of mappings from texts to a text or texts.

    Everything else that YAML has (nesting, tags, anchors and aliases, several
    documents) is an error, so that a small file stays small in memory.

    path (Path): The file.
    YIELDS (tuple[int, dict[str, Value]]): The line where a mapping begins, and it.
    RAISES (SapbertError): With the line, if it is something else.
    """
    from srsly import ruamel_yaml as yaml

    events = read_events(path)

    def fail(event: Any, expected: str) -> SapbertError:
        got = EVENTS.get(type(event).__name__, "something else")
        line = event.start_mark.line + 1
        return SapbertError(
            Errors.E567.format(path=path, line=line, expected=expected, got=got)
        )

    def take(expected: str, *kinds: Any) -> Any:
        event = next(events)
        if getattr(event, "tag", None) or getattr(event, "anchor", None):
            raise SapbertError(
                Errors.E567.format(
                    path=path,
                    line=event.start_mark.line + 1,
                    expected=f"{expected}, without tags, anchors and aliases",
                    got="one",
                )
            )
        if not isinstance(event, kinds):
            raise fail(event, expected)
        return event

    take("a YAML file", yaml.StreamStartEvent)
    start = take("a list", yaml.DocumentStartEvent, yaml.StreamEndEvent)
    if isinstance(start, yaml.StreamEndEvent):
        return
    take("a list of cases", yaml.SequenceStartEvent)
    while True:
        case = take(
            "a case with keys and values", yaml.MappingStartEvent, yaml.SequenceEndEvent
        )
        if isinstance(case, yaml.SequenceEndEvent):
            break
        yield case.start_mark.line + 1, parse_mapping(path, yaml, take)
    take("the end of the file", yaml.DocumentEndEvent)
    take("one list in the file", yaml.StreamEndEvent)


def parse_mapping(path: Path, yaml: Any, take: Callable[..., Any]) -> dict[str, Value]:
    """Read what is left of a mapping; see `parse_cases`.

    path (Path): The file, for the error.
    yaml (Any): The parser's module.
    take (Callable[..., Any]): Gives the next event if it is of a kind.
    RETURNS (dict[str, Value]): By key.
    RAISES (SapbertError): With the line, if a key comes twice or a value is nested.
    """
    values: dict[str, Value] = {}
    scalar, end = yaml.ScalarEvent, yaml.SequenceEndEvent
    while True:
        key = take("a key", scalar, yaml.MappingEndEvent)
        if isinstance(key, yaml.MappingEndEvent):
            return values
        line = key.start_mark.line + 1
        if key.value in values:
            got = f"a second `{key.value}`"
            raise SapbertError(
                Errors.E567.format(
                    path=path, line=line, expected="each key once", got=got
                )
            )
        value = take("a text, or a list of texts", scalar, yaml.SequenceStartEvent)
        content: str | list[str] = []
        if isinstance(value, scalar):
            content = value.value
        else:
            content = []
            while not isinstance(item := take("a text", scalar, end), end):
                content.append(item.value)
        values[key.value] = Value(content, line)


def place_mention(
    mention: str | None,
    context: str | None,
    fail: Callable[[str, str], Exception],
) -> tuple[str, str, int]:
    """Find a mention in its context, and take the marks around it away.

    mention (str | None): The mention, if it is said besides.
    context (str | None): The text with marks, or with the mention in it, where the
        first place counts; None = the mention alone.
    fail (Callable[[str, str], Exception]): Makes the error of what was expected and
        what was there instead.
    RETURNS (tuple[str, str, int]): The mention, the text without marks, and where the
        mention begins in it.
    RAISES (Exception): What `fail` makes, if there is not one place.
    """
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


def check_case(path: Path, line: int, values: dict[str, Value]) -> Case:
    """Make a case of what the file says.

    path (Path): The file.
    line (int): Where the case begins.
    values (dict[str, Value]): From `parse_cases`.
    RETURNS (Case): The case.
    RAISES (SapbertError): With the line, if a key is unknown, missing or wrong.
    """

    def fail(expected: str, got: str, key: str | None = None) -> SapbertError:
        at = line if key is None else values[key].line
        return SapbertError(
            Errors.E567.format(path=path, line=at, expected=expected, got=got)
        )

    texts: dict[str, str] = {}
    for key, (content, _) in values.items():
        if key not in KEYS:
            raise fail(f"keys of {', '.join(KEYS)}", "another", key)
        if key != "expected":
            if not isinstance(content, str):
                raise fail(f"a text as `{key}`", "a list", key)
            if not content.strip():
                raise fail(f"a text as `{key}`", "nothing", key)
            texts[key] = content
    if "expected" not in values:
        raise fail(f"`expected`: an id, a list of ids, or {NIL}", "none")
    content = values["expected"].content
    expected = [content] if isinstance(content, str) else content
    if not expected or not all(cui.strip() for cui in expected):
        raise fail(f"an id, a list of ids, or {NIL}", "nothing", "expected")
    at = "context" if "context" in texts else None
    mention, text, start = place_mention(
        texts.get("mention"),
        texts.get("context"),
        lambda expected, got: fail(expected, got, at),
    )
    return Case(
        path=path,
        line=line,
        text=text,
        start=start,
        mention=mention,
        expected=tuple(dict.fromkeys(cui.strip() for cui in expected)),
        label=texts.get("label"),
        note=texts.get("note"),
    )
