"""`.spacy` files (`DocBin`): one Doc after the other, in bounded memory.

A `DocBin` is msgpack in zlib, where a few bytes can promise billions of values. It is
unpacked and checked here, and spaCy gets the bytes of some Docs at a time.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Errors, SapbertError
from ..system.reading import RECORD_VALUES, UNPACKED_BYTES, USUAL_BYTES, read_blocks

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

Fields = dict[bytes, int]  # the place of the value of each key

UNPACKED_RATIO = 30  # all is in memory; real files have 13
TOKENS = RECORD_VALUES // 8  # of a Doc; also different texts of a file
WIDTH = 1_000  # attributes of a token
BATCH_DOCS, BATCH_TOKENS = 100, 10_000  # that spaCy gets at once
LISTS = (b"cats", b"flags", b"span_groups", b"user_data")  # a value for each Doc
BINARY = {0xC4: 2, 0xC5: 3, 0xC6: 5}  # bytes before the content
# by the first byte of a value in msgpack: how many bytes follow …
FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2}
FIXED |= {0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
# … or the format of a number, and what that counts: bytes and more bytes, or values
SIZED = {0xC4: "B", 0xC5: ">H", 0xC6: ">I", 0xC7: "B", 0xC8: ">H", 0xC9: ">I"}
SIZED |= {0xD9: "B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I"}
SIZED |= {0xDE: ">H", 0xDF: ">I"}
VALUES = {0xDC: 1, 0xDD: 1, 0xDE: 2, 0xDF: 2}  # of a list, of an object
EXTENSIONS = (0xC7, 0xC8, 0xC9)  # with a byte for their type


class TooLargeError(ValueError):
    """A value has more values in it than fit in memory."""


def skip_value(data: memoryview, at: int, most: int) -> int:
    """Return the place after a value of msgpack.

    Args:
        most: Maximum number of values in it.

    Raises:
        IndexError, KeyError, struct.error: If the data ends before, or is invalid.
        TooLargeError: If it has more values.
    """
    left = 1
    while left:
        kind = data[at]
        at += 1
        left -= 1
        most -= 1
        if kind < 0x80 or kind >= 0xE0 or kind in (0xC0, 0xC2, 0xC3):
            continue
        if kind < 0x90:
            left += 2 * (kind & 15)
        elif kind < 0xA0:
            left += kind & 15
        elif kind < 0xC0:
            at += kind & 31
        elif kind in FIXED:
            at += FIXED[kind]
        else:
            (size,) = struct.unpack_from(SIZED[kind], data, at)
            at += struct.calcsize(SIZED[kind]) + (kind in EXTENSIONS)
            if kind in VALUES:
                left += size * VALUES[kind]
            else:
                at += size
        if left > most:
            raise TooLargeError
    if at > len(data):
        raise IndexError
    return at


def read_size(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number of values of a list or pairs of an object, and its start."""
    kind = data[at]
    if 0x80 <= kind < 0xA0:
        return kind & 15, at + 1
    if kind not in VALUES:
        raise KeyError
    (size,) = struct.unpack_from(SIZED[kind], data, at + 1)
    return size, at + 1 + struct.calcsize(SIZED[kind])


def load_binary(data: memoryview, at: int) -> tuple[memoryview, int]:
    """Return the content of a binary value, and the place after it."""
    end = skip_value(data, at, 1)
    return data[at + BINARY[data[at]] : end], end


def unpack_docbin(path: Path) -> memoryview:
    """Unpack a file.

    Raises:
        SapbertError: If it unpacks to too much.
    """
    unpacker, data, packed = zlib.decompressobj(), bytearray(), 0
    for block in read_blocks([path]):
        packed += len(block)
        while block:
            data += unpacker.decompress(block, len(block))
            block = unpacker.unconsumed_tail
            if len(data) > max(UNPACKED_BYTES, UNPACKED_RATIO * packed):
                raise SapbertError(Errors.E533.format(path=path, ratio=UNPACKED_RATIO))
    if not unpacker.eof:
        raise zlib.error
    return memoryview(data)


def find_fields(data: memoryview) -> Fields:
    """Return the place of the value of each key of the outermost object."""
    count, at = read_size(data, 0)
    fields: dict[bytes, int] = {}
    for _ in range(count):
        end = skip_value(data, at, 1)
        fields[bytes(data[at + 1 : end])] = end  # the keys are short texts
        at = skip_value(data, end, len(data))
    return fields


def check_values(data: memoryview, key: bytes) -> None:
    """Check the data of a Doc, which is msgpack in a binary value.

    Raises:
        TooLargeError: If it has too many values.
    """
    if data[0] in BINARY:
        content, _ = load_binary(data, 0)
        # span groups are msgpack in msgpack, where a byte can be a value
        if key == b"user_data":
            skip_value(content, 0, RECORD_VALUES)
        elif len(content) > RECORD_VALUES:
            raise TooLargeError


def slice_lists(data: memoryview, fields: Fields, docs: int) -> dict[bytes, memoryview]:
    """Return the values of each list that has one for each Doc.

    Raises:
        IndexError: If a list has more or fewer. Of user data there may be fewer.
    """
    lists: dict[bytes, memoryview] = {}
    for key in LISTS:
        if key in fields:
            size, at = read_size(data, fields[key])
            if size > docs or size < docs and key != b"user_data":
                raise IndexError
            lists[key] = data[at:]
            if size < docs:
                values = slice_value(data, fields[key], len(data))
                start = at - fields[key]
                lists[key] = memoryview(values[start:] + b"\xc0" * (docs - size))
    return lists


def skip_docs(
    lists: dict[bytes, memoryview], ats: dict[bytes, int], most: int
) -> tuple[dict[bytes, int], int]:
    """Return the places after the values of some Docs in each list, and how many.

    Args:
        ats: The places in the lists.
        most: Maximum number of Docs; fewer if their values are not of a usual size.
    """
    begin = sum(ats.values())
    for count in range(most):
        nexts = dict(ats)
        for key, data in lists.items():
            nexts[key] = skip_value(data, ats[key], RECORD_VALUES)
            check_values(data[ats[key] : nexts[key]], key)
        if count and sum(nexts.values()) - begin > USUAL_BYTES:
            return ats, count
        ats = nexts
    return ats, most


def pack_binary(content: bytes) -> bytes:
    """Return a binary value of msgpack."""
    return b"\xc6" + struct.pack(">I", len(content)) + content


def iter_docbin(path: Path, vocab: "Vocab") -> Iterator["Doc"]:
    """Yield the Docs of a file.

    Raises:
        Exception: Of zlib, msgpack, numpy or spaCy, if the file is damaged.
        TooLargeError: If a Doc has too many tokens or values.
    """
    import numpy as np
    from spacy.tokens import DocBin

    data = unpack_docbin(path)
    fields = find_fields(data)
    width, _ = read_size(data, fields[b"attrs"])
    tokens, spaces, lengths = (
        np.frombuffer(load_binary(data, fields[key])[0], dtype=kind)
        for key, kind in ((b"tokens", "u8"), (b"spaces", "?"), (b"lengths", "i4"))
    )
    if width > WIDTH:
        raise IndexError
    lists = slice_lists(data, fields, len(lengths))
    ats = dict.fromkeys(lists, 0)
    whole = {
        key: slice_value(data, fields[key], TOKENS) for key in (b"attrs", b"strings")
    }
    first = row = 0
    while first < len(lengths):
        # as many Docs as have a usual size together, and at least one
        ends = np.cumsum(lengths[first : first + BATCH_DOCS], dtype=np.int64)
        most = max(1, int(np.searchsorted(ends, BATCH_TOKENS, "right")))
        nexts, count = skip_docs(lists, ats, most)
        part, last = lengths[first : first + count], row + int(ends[count - 1])
        if part.max() > TOKENS:
            raise TooLargeError
        if part.min() < 0 or last > len(spaces) or last * width > len(tokens):
            raise IndexError
        message = {
            **whole,
            b"tokens": pack_binary(tokens[row * width : last * width].tobytes()),
            b"spaces": pack_binary(spaces[row:last].tobytes()),
            b"lengths": pack_binary(part.tobytes()),
        }
        for key, values in lists.items():
            head = b"\xdd" + struct.pack(">I", count)
            message[key] = head + bytes(values[ats[key] : nexts[key]])
        ats = nexts
        pairs = (bytes([0xA0 + len(key)]) + key + message[key] for key in message)
        packed = b"".join((bytes([0x80 + len(message)]), *pairs))
        yield from DocBin().from_bytes(zlib.compress(packed, 0)).get_docs(vocab)
        whole[b"strings"] = b"\x90"  # they are in the vocabulary now
        first, row = first + count, last


def slice_value(data: memoryview, at: int, most: int) -> bytes:
    """Return the bytes of a value; see `skip_value`."""
    return bytes(data[at : skip_value(data, at, most)])
