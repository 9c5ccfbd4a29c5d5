"""Files read in bounded memory and written all or nothing."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import (
    BinaryIO,
)

import numpy as np

from ..errors import Errors, SapbertError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BLOCK_BYTES = 1 << 18
GZIP = 31  # zlib's window bits that ask for a gzip header
LINE_BYTES = 1 << 20
LINE_FEED = ord("\n")
AT_FDCWD = -100
RENAME_EXCHANGE = 2


def check_file(path: Path) -> None:
    """Check that there is a file to read.

    path (Path): The file.
    RAISES (SapbertError): If nothing is there, or a folder.
    """
    if path.is_dir():
        raise SapbertError(Errors.E002.format(path=path))
    if not path.is_file():
        raise SapbertError(Errors.E001.format(path=path))


def open_to_read(path: Path) -> BinaryIO:
    """Open a file.

    path (Path): The file.
    RETURNS (BinaryIO): Its bytes.
    RAISES (SapbertError): If it is not there, a folder, or not ours to read.
    """
    check_file(path)
    try:
        return open(path, "rb")
    except OSError as error:
        raise SapbertError(
            Errors.E010.format(path=path, reason=error.strerror)
        ) from None


def read_blocks(paths: Sequence[Path]) -> Iterator[bytes]:
    """Read a file, or the parts of one, as bytes; `.gz` is unpacked.

    Whether each part was compressed or the compressed file was cut makes no
    difference: gzip files put together are a gzip file.

    paths (Sequence[Path]): The file, or its parts in order.
    YIELDS (bytes): At most `BLOCK_BYTES`, never empty.
    RAISES (EOFError, zlib.error): If a gzip file is cut or damaged.
    """
    packed = paths[0].suffix == ".gz"
    unpacker = zlib.decompressobj(GZIP)
    for path in paths:
        with open_to_read(path) as file:
            while block := file.read(BLOCK_BYTES):
                if not packed:
                    yield block
                    continue
                while block:
                    if unpacker.eof:
                        # one gzip file may follow another, or zeros that pad a tape
                        if not (block := block.lstrip(b"\0")):
                            break
                        unpacker = zlib.decompressobj(GZIP)
                    if unpacked := unpacker.decompress(block, BLOCK_BYTES):
                        yield unpacked
                    block = unpacker.unconsumed_tail or unpacker.unused_data
    if packed and not unpacker.eof:
        raise EOFError("it ends too early")


def count_lines(block: bytes) -> int:
    """Count line feeds, three times as fast as `bytes.count`.

    block (bytes): Some bytes.
    RETURNS (int): How many there are.
    """
    return int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == LINE_FEED))


def read_text_blocks(
    path: Path,
    *,
    line_bytes: int = LINE_BYTES,
    parts: Sequence[Path] = (),
    blocks: Iterable[bytes] | None = None,
) -> Iterator[tuple[int, int, bytes]]:
    """Read a text file, plain or `.gz`, in blocks of whole lines.

    Only a line feed ends a line: a carriage return before it is taken away with it,
    and U+2028, U+0085 or a lone carriage return stay inside the line. A byte order
    mark of UTF-8 is dropped, and the last line gets an end if it has none.

    path (Path): The file.
    line_bytes (int): A longer line is an error, so that memory stays bounded.
    parts (Sequence[Path]): Files that make up the file when put together in this
        order, cut anywhere; `path` then is only its name in errors.
    blocks (Iterable[bytes] | None): What the file says, if somebody has it open;
        `path` then is only its name in errors.
    YIELDS (tuple[int, int, bytes]): Number of the block's first line, from 1, how many
        lines there are, and the lines, each with a line feed at its end.
    RAISES (SapbertError): If the file is missing, cut, UTF-16, or a line too long.
    """
    number, rest, first = 1, b"", True
    try:
        for read in read_blocks(parts or [path]) if blocks is None else blocks:
            block = read
            if first:
                first = False
                if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    raise SapbertError(Errors.E006.format(path=path))
                block = block.removeprefix(b"\xef\xbb\xbf")
            end = block.rfind(b"\n") + 1
            if end:
                lines = b"".join((rest, memoryview(block)[:end]))
                rest = block[end:]
            else:
                lines, rest = b"", rest + block
            count = count_lines(lines)
            if len(rest) > line_bytes:
                raise SapbertError(
                    Errors.E007.format(path=path, line=number + count, limit=line_bytes)
                )
            if b"\r" in lines:
                lines = lines.replace(b"\r\n", b"\n")
            if lines:
                yield number, count, lines
                number += count
    except (EOFError, zlib.error) as error:
        raise SapbertError(
            Errors.E008.format(path=path, line=number, reason=error)
        ) from None
    if rest:
        yield number, 1, rest.removesuffix(b"\r") + b"\n"


def read_line_blocks(
    path: Path,
    *,
    line_bytes: int = LINE_BYTES,
    blocks: Iterable[bytes] | None = None,
) -> Iterator[tuple[int, list[bytes]]]:
    """Read a text file, plain or `.gz`, in blocks of lines; see `read_text_blocks`.

    path (Path): The file.
    line_bytes (int): A longer line is an error, so that memory stays bounded.
    blocks (Iterable[bytes] | None): See `read_text_blocks`.
    YIELDS (tuple[int, list[bytes]]): Number of the block's first line, from 1, and
        the lines without their ends.
    RAISES (SapbertError): If the file is missing, cut, UTF-16, or a line too long.
    """
    read = read_text_blocks(path, line_bytes=line_bytes, blocks=blocks)
    for number, _, block in read:
        yield number, block[:-1].split(b"\n")


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decode one line as UTF-8.

    line (bytes): The line.
    path (Path): The file, for the error.
    number (int): Its number, from 1, for the error.
    RETURNS (str): The text.
    RAISES (SapbertError): With file, line and byte offset in the line.
    """
    try:
        return line.decode("utf8")
    except UnicodeDecodeError as error:
        raise SapbertError(
            Errors.E009.format(path=path, line=number, offset=error.start)
        ) from None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read a text file, plain or `.gz`, line by line; see `read_line_blocks`.

    path (Path): The file.
    YIELDS (tuple[int, str]): Number of the line, from 1, and the line.
    RAISES (SapbertError): If the file is missing, cut or not UTF-8.
    """
    for first, lines in read_line_blocks(path):
        for number, line in enumerate(lines, first):
            yield number, decode_line(line, path, number)


def file_digest(path: Path) -> str:
    """Compute the sha256 of a file.

    path (Path): The file.
    RETURNS (str): In hexadecimal.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
