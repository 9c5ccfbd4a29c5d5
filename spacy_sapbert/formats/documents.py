"""A document to link, and how texts are read from files and the standard input."""

import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, cast

from ..errors import SapbertError, too_long
from ..io.reading import (
    BLOCK_BYTES,
    UTF8_MARK,
    UTF16_MARKS,
    damaged_gzip,
    not_utf8,
    not_utf8_but_utf16,
    read_blocks,
)
from ..io.system import STREAM
from ..io.tables.delimited import decode_blocks
from .gold import GoldMention

if TYPE_CHECKING:
    from spacy.tokens import Doc

TEXT_SUFFIXES = (".txt", ".txt.gz")
ID, FIELDS = "id", "fields"  # of a document, in `doc.user_data`
STDIN_NAME = "stdin"  # in the ids of documents, and in errors
BYTES_PER_CHARACTER = 6  # at the most: UTF-8 needs 4, JSON writes "\u0000"
ROOM = 1 << 16  # bytes of a line for what is not text

FailOrSkip = Literal["fail", "skip"]  # of invalid documents
OnError = Callable[[SapbertError], Any]  # for an invalid document; may raise the error


class Document(NamedTuple):
    """A text to link.

    Attributes:
        id: The id in the file, else file name and line.
        doc: Of a `.spacy` file: its tokens and entities.
        mentions: Those of an annotated text, whose concepts are not used; None = they
            are to be detected.
        fields: Other columns of the input that the output repeats.
        place: File and line, for errors.
        error: Why the document cannot be linked; "" = it can.
    """

    id: str | int
    text: str
    doc: "Doc | None" = None
    mentions: list[GoldMention] | None = None
    fields: dict[str, Any] | None = None
    place: str = ""
    error: str = ""

    def describe(self) -> str:
        """Return the id, and where the document is, for errors."""
        known = not self.place or self.place == self.id
        return repr(self.id) if known else f"{self.id!r} ({self.place})"


def raise_error(error: SapbertError) -> NoReturn:
    """Raise an error; readers that have no other `on_error` stop at the first."""
    raise error


def open_input(path: Path, encoding: str = "utf-8") -> tuple[Path, Iterator[bytes]]:
    """Return the name of a file in errors, and its blocks, in UTF-8."""
    if path == STREAM:
        stream = cast(BufferedReader, sys.stdin.buffer)
        path, blocks = Path(STDIN_NAME), iter(partial(stream.read1, BLOCK_BYTES), b"")
    else:
        blocks = read_blocks([path])
    return path, decode_blocks(blocks, path, encoding)


def read_text(path: Path, *, longest: int, encoding: str = "utf-8") -> str:
    """Read a file as one text with its line ends, so that offsets are correct.

    A byte order mark is left out. `-` is the standard input.
    """
    data = b""
    path, blocks = open_input(path, encoding)
    try:
        for block in blocks:
            data += block
            if len(data) > BYTES_PER_CHARACTER * longest + ROOM:
                break
    except (EOFError, zlib.error) as error:
        line = data.count(b"\n") + 1
        raise damaged_gzip(path=path, line=line, reason=error) from None
    if data.startswith(UTF16_MARKS):
        raise not_utf8_but_utf16(path=path)
    data = data.removeprefix(UTF8_MARK)
    longer = too_long(path=path, line=1, limit=longest)
    if len(data) > BYTES_PER_CHARACTER * longest:
        raise longer
    try:
        text = data.decode("utf8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        offset = error.start - (data.rfind(b"\n", 0, error.start) + 1)
        raise not_utf8(path=path, line=line, offset=offset) from None
    if len(text) > longest:
        raise longer
    return text
