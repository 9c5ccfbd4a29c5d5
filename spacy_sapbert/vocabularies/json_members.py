"""Parse the members of lists in a JSON file of any size, one by one."""

import io
import zlib
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import ijson

from ..io.reading import (
    UTF8_MARK,
    UTF16_MARKS,
    damaged_gzip,
    not_utf8_but_utf16,
    read_blocks,
)

DEPTH = 100  # lists and objects in each other
START = ("start_map", "start_array")
END = ("end_map", "end_array")
Place = tuple[str, ...]
Events = Iterator[tuple[str, Any]]


class JSONError(Exception):
    """A file is not the JSON that was expected; the message is what it has instead."""


class BlockReader(io.RawIOBase):
    """A file of blocks of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.blocks = blocks
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            block = next(self.blocks, None)
            if block is None:
                return 0
            self.rest = block
        part, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def read_members(path: Path, places: Collection[Place]) -> Iterator[tuple[Place, Any]]:
    """Parse the members of some lists in a file.

    Args:
        path: The file, plain or `.gz`.
        places: The keys that lead to each list. Lists on the way are passed through:
            `("graphs", "nodes")` leads to `{"graphs": [{"nodes": […]}]}`.

    Yields:
        The place and the member, in the order of the file.

    Raises:
        SapbertError: If the file is missing, truncated or UTF-16.
        JSONError: With what it has instead, if it is not JSON, something else than a
            list or null is at a place, or no list is at any.
    """
    events = parse_events(path)
    place: Place = ()
    around: list[tuple[Place, bool]] = []  # what is open, and whether it is wanted
    found = False
    for event, value in events:
        if event == "map_key":
            place = (*around[-1][0], value)
        elif event in END:
            around.pop()
            place = around[-1][0] if around else ()
        elif around and around[-1][1]:
            yield place, build_value(events, event) if event in START else value
        else:
            is_wanted = place in places
            if is_wanted and event not in ("start_array", "null"):
                raise JSONError("something else than a list")
            found |= is_wanted and event == "start_array"
            if event in START:
                around.append((place, is_wanted))
            if len(around) > DEPTH:
                raise JSONError("endless nesting")
    if not found:
        raise JSONError("no list of concepts")


def parse_events(path: Path) -> Events:
    """Yield the events of a JSON file; see `read_members`."""
    blocks = read_blocks([path])
    try:
        first = next(blocks, b"")
        if first.startswith(UTF16_MARKS):
            raise not_utf8_but_utf16(path=path)
        reader = BlockReader(chain([first.removeprefix(UTF8_MARK)], blocks))
        yield from ijson.basic_parse(reader, use_float=True)
    except (EOFError, zlib.error) as error:
        raise damaged_gzip(path=path, line=1, reason=error) from None
    except ijson.JSONError:
        # its message quotes the file
        raise JSONError("what is not JSON in UTF-8, or is cut") from None


def build_value(events: Events, start: str) -> Any:
    """Build the list or object whose first event was `start`."""
    value: Any = {} if start == "start_map" else []
    around: list[Any] = []
    key = ""
    for event, item in events:
        if event == "map_key":
            key = item
        elif event == "end_map" or event == "end_array":
            if not around:
                return value
            value = around.pop()
        elif event == "start_map" or event == "start_array":
            around.append(value)
            if len(around) > DEPTH:
                raise JSONError("endless nesting")
            new: Any = {} if event == "start_map" else []
            if type(value) is dict:
                value[key] = new
            else:
                value.append(new)
            value = new
        elif type(value) is dict:
            value[key] = item
        else:
            value.append(item)
    return value
