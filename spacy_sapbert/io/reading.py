"""Read files of any size in bounded memory.

All readers have the same limits. A record (a line, an element of XML, a member of a
list in JSON) has at most `RECORD_BYTES` and `RECORD_VALUES`, so that memory stays under
1 GB: a value of one byte takes up to a hundred bytes in Python. `UNPACKED_BYTES` and
`UNPACKED_RATIO` limit what a packed file unpacks to.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import SapbertError, is_folder, missing_file

BLOCK_BYTES = 1 << 18
GZIP = 31  # window bits of zlib for data with a gzip header
RECORD_BYTES = 1 << 26  # a concept with 1,000,000 names of 40 characters
RECORD_VALUES = 1 << 23
USUAL_BYTES = 1 << 20  # the values of a shorter record need not be counted
# each value of a record has one of these before or after it
SEPARATORS = (b",", b":", b"[", b"{", b"|", b"\t")
# A packed file may unpack to the first; above it, to its size times the second.
# Vocabularies and texts have a ratio of 3 to 12, a bomb of 1,000.
UNPACKED_BYTES = 1 << 27
UNPACKED_RATIO = 100
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"


def check_file(path: Path) -> None:
    """Check that a path is a file."""
    if path.is_dir():
        raise is_folder(path=path)
    if not path.is_file():
        raise missing_file(path=path)


def check_not_empty(path: Path, what: str) -> None:
    """Check that a path is a file with something in it."""
    check_file(path)
    if not path.stat().st_size:
        raise wrong_content(path=path, what=what, found="the file is empty")


def open_to_read(path: Path) -> BinaryIO:
    """Open a file for reading bytes."""
    check_file(path)
    try:
        return open(path, "rb")
    except OSError as error:
        raise SapbertError(
            "E004",
            f"Expected to read {path}, but the system refused: {error.strerror}.",
        ) from None


def check_unpacked(path: Path, packed: int, unpacked: int) -> None:
    """Check that a packed file does not unpack to far more than text does."""
    if unpacked > max(UNPACKED_BYTES, UNPACKED_RATIO * packed):
        raise unpacks_to_too_much(path=path, ratio=UNPACKED_RATIO)


def is_too_large(record: bytes) -> bool:
    """Return whether a record is above the limits of this module."""
    if len(record) <= USUAL_BYTES:
        return False
    values = sum(map(record.count, SEPARATORS))
    return len(record) > RECORD_BYTES or values > RECORD_VALUES


def check_record(record: bytes, path: Path, line: int) -> None:
    """Check that a record is within the limits of this module."""
    if is_too_large(record):
        raise record_error(path, line)


def record_error(path: Path, line: int) -> SapbertError:
    """Return the error of a record that is too large."""
    return SapbertError(
        "E007",
        f"{path}:{line}: Expected lines or records of at most {RECORD_BYTES:,} bytes "
        f"and {RECORD_VALUES:,} values, but got a larger one. Check that the file is "
        "what it should be.",
    )


def read_blocks(paths: Sequence[Path]) -> Iterator[bytes]:
    """Read a file, or the parts of a split file, as bytes; `.gz` is decompressed.

    Either each part or the whole file may be compressed: concatenated gzip files are
    a gzip file.

    Args:
        paths: The file, or its parts in order.

    Yields:
        At most `BLOCK_BYTES`, never empty.

    Raises:
        EOFError, zlib.error: If a gzip file is truncated or damaged.
        SapbertError: If it cannot be opened, or a gzip file unpacks to too much.
    """
    packed = paths[0].suffix.lower() == ".gz"
    size = unpacked_size = 0
    unpacker = zlib.decompressobj(GZIP)
    for path in paths:
        with open_to_read(path) as file:
            while block := file.read(BLOCK_BYTES):
                if not packed:
                    yield block
                    continue
                size += len(block)
                while block:
                    if unpacker.eof:
                        # another gzip member follows, or padding with zeros
                        if not (block := block.lstrip(b"\0")):
                            break
                        unpacker = zlib.decompressobj(GZIP)
                    if unpacked := unpacker.decompress(block, BLOCK_BYTES):
                        unpacked_size += len(unpacked)
                        check_unpacked(path, size, unpacked_size)
                        yield unpacked
                    block = unpacker.unconsumed_tail or unpacker.unused_data
    if packed and not unpacker.eof:
        raise EOFError("it ends too early")


def read_start(path: Path) -> bytes:
    """Return the first block of a file; empty if it cannot be read."""
    with suppress(EOFError, SapbertError, zlib.error):
        return next(read_blocks([path]), b"")
    return b""


class BlockReader(RawIOBase):
    """A file that is made of blocks of bytes."""

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


def read_line_blocks(
    path: Path,
    *,
    parts: Sequence[Path] = (),
    blocks: Iterable[bytes] | None = None,
    keep_returns: bool = False,
) -> Iterator[tuple[int, list[bytes]]]:
    """Read a text file, plain or `.gz`, in blocks of lines.

    Only a line feed ends a line. A carriage return before it is removed; U+2028, U+0085
    and other carriage returns stay in the line. A UTF-8 byte order mark is removed.

    Args:
        parts: The parts of a split file, in order, cut at any byte; then `path` is only
            the name in errors.
        blocks: The content, if it is read elsewhere; then `path` is only the name in
            errors.
        keep_returns: Remove no carriage return.

    Yields:
        Number of the block's first line, from 1, and the lines without their ends.

    Raises:
        SapbertError: If the file is missing, truncated or UTF-16, or a line is too
            large.
    """
    number, first = 1, True
    rest: list[bytes] = []  # the pieces of a line that has not ended
    rest_bytes = 0
    try:
        for block in read_blocks(parts or [path]) if blocks is None else blocks:
            if first:
                first = False
                if block.startswith(UTF16_MARKS):
                    raise not_utf8_but_utf16(path=path)
                block = block.removeprefix(UTF8_MARK)
            rest.append(block)
            rest_bytes += len(block)
            if b"\n" not in block:
                if rest_bytes > RECORD_BYTES:
                    raise record_error(path, number)
                continue
            *lines, last = b"".join(rest).split(b"\n")
            rest, rest_bytes = [last], len(last)
            check_record(lines[0], path, number)  # others are parts of one block
            if not keep_returns and b"\r" in block:
                lines = [line.removesuffix(b"\r") for line in lines]
            elif not keep_returns:
                lines[0] = lines[0].removesuffix(b"\r")  # from the block before
            yield number, lines
            number += len(lines)
    except (EOFError, zlib.error) as error:
        raise damaged_gzip(path=path, line=number, reason=error) from None
    if line := b"".join(rest):
        check_record(line, path, number)
        yield number, [line if keep_returns else line.removesuffix(b"\r")]


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decode a line as UTF-8; an error has file, line and byte offset in the line."""
    try:
        return line.decode("utf8")
    except UnicodeDecodeError as error:
        raise not_utf8(path=path, line=number, offset=error.start) from None


def read_lines(
    path: Path, blocks: Iterable[bytes] | None = None
) -> Iterator[tuple[int, str]]:
    """Yield number, from 1, and text of each line of a text file, plain or `.gz`.

    Args:
        blocks: See `read_line_blocks`.
    """
    for first, lines in read_line_blocks(path, blocks=blocks):
        for number, line in enumerate(lines, first):
            yield number, decode_line(line, path, number)


def file_digest(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def not_utf8_but_utf16(*, path: object) -> SapbertError:
    return SapbertError(
        "E009",
        f"{path}: Expected UTF-8, but got UTF-16. Pass `--encoding utf-16` if the "
        "command has this option; else convert it with `iconv -f utf-16 -t utf-8`.",
    )


def damaged_gzip(*, path: object, line: object, reason: object) -> SapbertError:
    return SapbertError(
        "E150",
        f"{path}:{line}: Expected a whole gzip file, but it is cut or damaged after "
        f"this line ({reason}). Fetch or copy the file again.",
    )


def not_utf8(*, path: object, line: object, offset: object) -> SapbertError:
    return SapbertError(
        "E009",
        f"{path}:{line}: Expected UTF-8, but got another byte at offset {offset} of "
        "the line. Pass `--encoding cp1252`, or the encoding in which the file was "
        "saved, if the command has this option; else convert the file, e.g. with "
        "`iconv -f cp1252 -t utf-8`, or correct the line.",
    )


def unpacks_to_too_much(*, path: object, ratio: object) -> SapbertError:
    return SapbertError(
        "E007",
        f"{path}: Expected a packed file that unpacks to at most {ratio} times its "
        "size, but got more. If it is not a damaged or hostile file, unpack it, e.g. "
        "with `gunzip`, and pass the unpacked file.",
    )


def wrong_content(*, path: object, what: object, found: object) -> SapbertError:
    return SapbertError(
        "E150",
        f"{path}: Expected {what}, but {found}. Check that this is the right file, or "
        "write or copy it again.",
    )
