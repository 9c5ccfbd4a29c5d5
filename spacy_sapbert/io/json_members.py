"""Parse a JSON file in bounded memory: the members of its lists one by one."""

import codecs
import json
import re
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from .reading import (
    RECORD_BYTES,
    RECORD_VALUES,
    SEPARATORS,
    USUAL_BYTES,
    UTF16_MARKS,
    damaged_gzip,
    not_utf8,
    not_utf8_but_utf16,
    read_blocks,
    record_error,
)

Place = tuple[str, ...]

BLANKS = re.compile(r"[ \t\n\r]*")
PARSER = json.JSONDecoder()
DEPTH = 100  # lists in each other around the members
NUMBER_END = 3  # characters after which a number cannot go on: it may end with `e+`


class JSONError(ValueError):
    """A file is not JSON, or has another structure.

    Args:
        line: The line, from 1.
        reason: What is wrong; never text of the file.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


def read_members(path: Path, places: Collection[Place]) -> Iterator[tuple[Place, Any]]:
    """Parse the members of some lists in a file, one by one.

    Args:
        path: The file, plain or `.gz`.
        places: The keys that lead to each list. Lists on the way are passed through:
            `("graphs", "nodes")` leads to `{"graphs": [{"nodes": […]}]}`.

    Yields:
        The place and the member, in the order of the file.

    Raises:
        SapbertError: If the file is missing, truncated or not UTF-8, or a member is too
            large.
        JSONError: If it is not JSON, something else than a list or null is at a place,
            or no list is at any.
    """
    reader = MemberReader(path, places)
    yield from reader.read_value((), 0)
    if reader.peek():
        raise reader.fail("Extra data")
    if not reader.found:
        names = " or ".join(place[-1] for place in places)
        raise JSONError(1, f"no list of {names}")


def decode_blocks(path: Path) -> Iterator[str]:
    """Decode a file, plain or `.gz`, as UTF-8 in blocks; none is empty.

    Raises:
        SapbertError: With the line, if it is missing, truncated or not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line, column = 1, 0  # of the next block
    try:
        for number, block in enumerate(read_blocks([path])):
            if not number and block[:2] in UTF16_MARKS:
                raise not_utf8_but_utf16(path=path)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                start = error.start - pending  # negative: in the block before
                good = block[: max(start, 0)]
                ended = good.count(b"\n")
                offset = start - good.rfind(b"\n") - 1 if ended else column + start
                raise not_utf8(path=path, line=line + ended, offset=offset) from None
            ended = block.count(b"\n")
            line += ended
            column = len(block) - block.rfind(b"\n") - 1 + (0 if ended else column)
            if text:
                yield text
    except (EOFError, zlib.error) as error:
        raise damaged_gzip(path=path, line=line, reason=error) from None


class MemberReader:
    """A file, and the text of it that was read but is not parsed yet.

    Each value is parsed by Python's parser. If that fails, the value may go on after
    the text: more is read, and the value is parsed again.
    """

    def __init__(self, path: Path, places: Collection[Place]) -> None:
        self.path, self.places = path, places
        self.ways = {place[:end] for place in places for end in range(len(place))}
        self.found = False
        self.blocks = decode_blocks(path)
        self.text, self.at = "", 0
        self.lines = 0  # before the text

    def fail(self, reason: str, at: int | None = None) -> JSONError:
        """Return the error at a place in the text, by default the next to parse."""
        line = self.text.count("\n", 0, self.at if at is None else at)
        return JSONError(self.lines + line + 1, reason)

    def read_more(self) -> bool:
        """Read a block and at least half as much again; return whether there is any.

        Raises:
            SapbertError: If the value that is parsed next is too large.
        """
        rest = self.text[self.at :]
        if len(rest) > RECORD_BYTES:
            raise record_error(self.path, self.fail("").line)
        self.lines += self.text.count("\n", 0, self.at)
        self.text, self.at = "", 0
        pieces, wanted = [], len(rest) // 2
        while wanted >= 0 and (block := next(self.blocks, "")):
            pieces.append(block)
            wanted -= len(block) + 1
        self.text = "".join((rest, *pieces))
        if len(self.text) > USUAL_BYTES:
            separators = (mark.decode() for mark in SEPARATORS)
            if sum(map(self.text.count, separators)) > RECORD_VALUES:
                raise record_error(self.path, self.lines + 1)
        return bool(pieces)

    def peek(self) -> str:
        """Return the next character that is no white space; "" at the end."""
        while True:
            self.at = BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.read_more():
                return ""

    def expect(self, characters: str) -> str:
        """Return the next character, which has to be one of these, and go past it."""
        if (character := self.peek()) == "" or character not in characters:
            raise self.fail(f"Expecting one of {characters}")
        self.at += 1
        return character

    def parse(self) -> Any:
        """Parse the next value."""
        self.peek()
        while True:
            start = self.at
            try:
                value, end = PARSER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if not self.read_more():
                    raise self.fail(error.msg, error.pos - start) from None
            except (ValueError, RecursionError):
                reason = "endless nesting, or a number of too many digits"
                raise self.fail(reason) from None
            else:
                if end + NUMBER_END <= len(self.text):
                    self.at = end
                    return value
                if not self.read_more():
                    self.at = end - start
                    return value

    def read_list(self) -> Iterator[None]:
        """Go through the list that comes next; the caller parses each member."""
        self.expect("[")
        if self.peek() == "]":
            self.at += 1
            return
        while True:
            yield
            if self.expect(",]") == "]":
                return

    def read_object(self) -> Iterator[str]:
        """Yield the keys of the next object; the caller parses the values."""
        self.expect("{")
        if self.peek() == "}":
            self.at += 1
            return
        while True:
            if self.peek() != '"':
                raise self.fail("Expecting property name enclosed in double quotes")
            key = self.parse()
            self.expect(":")
            yield key
            if self.expect(",}") == "}":
                return

    def read_value(self, place: Place, depth: int) -> Iterator[tuple[Place, Any]]:
        """Yield the members of the lists in the next value; skip the rest."""
        if depth > DEPTH:
            raise self.fail("endless nesting")
        start = self.peek()
        if start == "[":
            is_wanted, is_way = place in self.places, place in self.ways
            self.found |= is_wanted
            for _ in self.read_list():
                if is_way:
                    yield from self.read_value(place, depth + 1)
                elif is_wanted:
                    yield place, self.parse()
                else:
                    self.parse()
        elif start == "{" and place in self.ways:
            for key in self.read_object():
                yield from self.read_value((*place, key), depth + 1)
        elif self.parse() is not None and place in self.places:
            raise self.fail(f"no list as `{place[-1]}`")
