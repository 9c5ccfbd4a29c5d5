"""Parse XML in UTF-8 in bounded memory; entities are refused."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from ..errors import SapbertError
from .reading import (
    RECORD_BYTES,
    RECORD_VALUES,
    USUAL_BYTES,
    UTF16_MARKS,
    damaged_gzip,
    not_utf8_but_utf16,
    read_blocks,
    record_error,
)

MARKS = (b"<", b"=")  # of tags and attributes
# of a tag or a comment, which expat scans again for each block that it needs
TOKEN_BYTES = 4 * USUAL_BYTES
VALUES_PER_MARK = 4  # an element takes up to 270 bytes


def make_parser(
    path: Path, *, separator: str | None = None, entities: bool = False
) -> Any:
    """Return a parser of expat that loads no DTD and expands no entity.

    Args:
        path: The file, for errors.
        separator: Between the namespace and the name of a tag; None = no namespaces.
        entities: Expand those without other entities in them: Protégé declares
            namespaces in this way, and expat itself limits how much they expand.
    """
    # a declared encoding must not select a codec of Python
    parser = expat.ParserCreate("utf-8", separator)
    parser.buffer_text = True

    def refuse_entity(*_: Any) -> None:
        raise SapbertError(
            "E150",
            f"{path}:{parser.CurrentLineNumber}: Expected XML that declares no "
            "entities, but it declares or uses one. Replace each entity by its text.",
        )

    def check_entity(name: str, is_parameter: int, value: str | None, *_: Any) -> None:
        if is_parameter or value is None or "&" in value:
            refuse_entity()

    # Declared entities can expand to any size; expat skips undeclared ones silently.
    parser.EntityDeclHandler = check_entity if entities else refuse_entity
    parser.SkippedEntityHandler = refuse_entity
    return parser


def feed_blocks(parser: Any, path: Path, begin: Callable[[], int]) -> Iterator[bytes]:
    """Feed a file, plain or `.gz`, to a parser; yield each block after it.

    Args:
        parser: Of `make_parser`.
        begin: Returns the byte at which the record begins that has not ended: what the
            handlers keep since then is limited.

    Raises:
        SapbertError: With file and line, if the file is missing, truncated or damaged,
            not in UTF-8, or declares or uses an entity; if a record, a tag or a comment
            is too large.
    """
    fed = marks = begun = 0
    try:
        for block in read_blocks([path]):
            if not fed and block.startswith(UTF16_MARKS):
                raise not_utf8_but_utf16(path=path)
            fed += len(block)
            found = sum(map(block.count, MARKS))
            marks = found + (marks if begin() == begun else 0)
            begun = begin()
            if fed - begun > RECORD_BYTES or marks * VALUES_PER_MARK > RECORD_VALUES:
                raise record_error(path, parser.CurrentLineNumber)
            parser.Parse(block, False)
            if fed - parser.CurrentByteIndex > TOKEN_BYTES:
                raise SapbertError(
                    "E007",
                    f"{path}:{parser.CurrentLineNumber}: Expected tags and comments "
                    f"of at most {TOKEN_BYTES >> 20} MiB, but got a larger one. Check "
                    "that the file is what it should be.",
                )
            yield block
        parser.Parse(b"", True)
        yield b""
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise SapbertError(
            "E150",
            f"{path}:{error.lineno}: Expected complete XML in UTF-8, but it is "
            f"truncated or damaged here ({reason}). Download or copy the file again.",
        ) from None
    except (EOFError, zlib.error) as error:
        line = parser.CurrentLineNumber
        raise damaged_gzip(path=path, line=line, reason=error) from None


def read_children(
    path: Path, check_root: Callable[[str, dict[str, str], int], None]
) -> Iterator[tuple[int, Element]]:
    """Parse the children of the root element; memory has those of one block.

    Args:
        path: The file, plain or `.gz`.
        check_root: Called with the tag, the attributes and the line of the root; raises
            an error if it is another.

    Yields:
        The line of a child, and the child.

    Raises:
        SapbertError: See `feed_blocks`.
    """
    parser = make_parser(path)
    children: list[tuple[int, Element]] = []
    builder, child = TreeBuilder(), Element("")
    line = begin = 0

    def start_root(tag: str, attributes: dict[str, str]) -> None:
        check_root(tag, attributes, parser.CurrentLineNumber)
        parser.StartElementHandler = start_child

    def start_child(tag: str, attributes: dict[str, str]) -> None:
        nonlocal builder, child, line, begin
        line, begin = parser.CurrentLineNumber, parser.CurrentByteIndex
        builder = TreeBuilder()
        child = builder.start(tag, attributes)
        parser.StartElementHandler = builder.start
        parser.CharacterDataHandler = builder.data
        parser.EndElementHandler = end

    def end(tag: str) -> None:
        nonlocal begin
        if builder.end(tag) is child:
            children.append((line, child))
            begin = parser.CurrentByteIndex
            parser.StartElementHandler = start_child
            parser.CharacterDataHandler = parser.EndElementHandler = None

    parser.StartElementHandler = start_root
    for _ in feed_blocks(parser, path, lambda: begin):
        yield from children
        children.clear()
