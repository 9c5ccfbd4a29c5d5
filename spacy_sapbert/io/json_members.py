"""Parse the members of lists in a JSON file of any size, one by one."""

import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ijson

from ..errors import SapbertError
from .reading import (
    RECORD_BYTES,
    RECORD_VALUES,
    UTF8_MARK,
    UTF16_MARKS,
    BlockReader,
    damaged_gzip,
    not_utf8_but_utf16,
    read_blocks,
    record_error,
)

DEPTH = 100  # lists and objects in each other
START = ("start_map", "start_array")
END = ("end_map", "end_array")
Place = tuple[str, ...]
Events = Iterator[tuple[str, Any]]


class JSONError(Exception):
    """A file is not the JSON that was expected; the message is what it has instead."""


def read_members(
    path: Path, places: Collection[Place], values: Collection[Place] = ()
) -> Iterator[tuple[Place, Any]]:
    """Parse the members of some lists in a file.

    Args:
        path: The file, plain or `.gz`.
        places: The keys that lead to each list. Lists on the way are passed through:
            `("graphs", "nodes")` leads to `{"graphs": [{"nodes": […]}]}`.
        values: The keys that lead to texts and numbers, which are yielded too.

    Yields:
        The place and the member or the value, in the order of the file.

    Raises:
        SapbertError: If the file is missing, truncated or UTF-16, or a member is too
            large.
        JSONError: With what it has instead, if it is not JSON, something else than a
            list or null is at a place, or no list is at any.
    """
    reader = CountingReader(path)
    place: Place = ()
    around: list[tuple[Place, bool]] = []  # what is open, and whether it is wanted
    found = False
    with name_errors(reader):
        events: Events = ijson.basic_parse(reader, use_float=True)
        for event, value in events:
            reader.begun = reader.size
            if event == "map_key":
                place = (*around[-1][0], value)
            elif event in END:
                around.pop()
                place = around[-1][0] if around else ()
            elif around and around[-1][1]:
                is_node = event in START
                yield place, build_value(events, event, reader) if is_node else value
            else:
                is_wanted = place in places
                if is_wanted and event not in ("start_array", "null"):
                    raise JSONError("something else than a list")
                found |= is_wanted and event == "start_array"
                if event in START:
                    around.append((place, is_wanted))
                elif place in values:
                    yield place, value
                if len(around) > DEPTH:
                    raise JSONError("endless nesting")
    if not found:
        names = " or ".join(place[-1] for place in places if place)
        raise JSONError(f"no list of {names or 'objects'}")


def read_values(path: Path) -> Iterator[tuple[int, Any]]:
    """Parse the values of a file: the members of its list, else one after another.

    Args:
        path: One value, a list, or a value a line; plain or `.gz`.

    Yields:
        A line up to which the file was read, and the value.

    Raises:
        SapbertError, JSONError: See `read_members`.
    """
    reader = CountingReader(path)
    inside = False
    with name_errors(reader):
        events: Events = ijson.basic_parse(reader, use_float=True, multiple_values=True)
        for event, value in events:
            reader.begun = reader.size
            if event == "end_array" or (event == "start_array" and not inside):
                inside = not inside
            else:
                is_node = event in START
                found = build_value(events, event, reader) if is_node else value
                yield reader.lines, found


class CountingReader(BlockReader):
    """A file, plain or `.gz`, which is read at most `RECORD_BYTES` beyond `begun`.

    `lines` and `size` are those of what was read, up to a block ahead of the events.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(self.count_blocks())
        self.path = path
        self.lines, self.size, self.begun = 1, 0, 0

    def count_blocks(self) -> Iterator[bytes]:
        for number, block in enumerate(read_blocks([self.path])):
            if not number and block.startswith(UTF16_MARKS):
                raise not_utf8_but_utf16(path=self.path)
            self.size += len(block)
            if self.size - self.begun > RECORD_BYTES:
                raise record_error(self.path, self.lines)
            yield block if number else block.removeprefix(UTF8_MARK)
            self.lines += block.count(b"\n")


@contextmanager
def name_errors(reader: CountingReader) -> Iterator[None]:
    """Raise the errors of the parser as those of `read_members`."""
    try:
        yield
    except (EOFError, zlib.error) as error:
        line = reader.lines
        raise damaged_gzip(path=reader.path, line=line, reason=error) from None
    except SapbertError:
        raise
    except (ijson.JSONError, ValueError):
        # its message quotes the file
        raise JSONError("what is not JSON in UTF-8, or is cut") from None


def build_value(events: Events, start: str, reader: CountingReader) -> Any:
    """Build the list or object whose first event was `start`."""
    value: Any = {} if start == "start_map" else []
    around: list[Any] = []
    key = ""
    for count, (event, item) in enumerate(events):
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
            if count > RECORD_VALUES:  # texts and numbers are limited by their bytes
                raise record_error(reader.path, reader.lines)
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
