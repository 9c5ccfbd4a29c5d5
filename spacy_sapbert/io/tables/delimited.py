"""Tables as text: lines → rows of fields. All tables are split here."""

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from ...errors import SapbertError
from ..reading import (
    RECORD_BYTES,
    USUAL_BYTES,
    decode_line,
    read_blocks,
    read_line_blocks,
    read_lines,
)

QUOTE = '"'
QUOTED = re.compile(r'"[^"]*"')
TAB, BARS = "\t", "||"
SEPARATORS = "\t,;|"
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|"}
OPEN_LINES = 1000  # of a field in quotes
Row = tuple[int, list[str]]  # the number of its first line, from 1, and its fields
ReadLines = Callable[..., Iterator[tuple[int, str]]]


def split_rows(
    lines: Iterable[tuple[int, str]],
    separator: str,
    path: Path,
    *,
    quoted: bool = True,
    open_lines: int = OPEN_LINES,
) -> Iterator[Row]:
    """Split lines into rows, without blank lines.

    Args:
        lines: The number of each line, and the line without its line feed.
        path: For the error.
        quoted: A field in double quotes may have separators and line feeds, and two
            quotes are one. Else, and in a line with tabs where quotes do not fit,
            quotes are characters like others.
        open_lines: Maximum number of lines of a field in quotes.

    Yields:
        The rows; no field if the quotes in one line are wrong.

    Raises:
        SapbertError: If a field in quotes does not end, or ends wrongly in another
            line: where the next row begins is not known then.
    """
    if not quoted:
        for number, line in lines:
            if line.strip():
                yield number, line.split(separator)
        return
    # the limit is of the process, and that of lines is checked already
    csv.field_size_limit(max(csv.field_size_limit(), RECORD_BYTES))
    lines = iter(lines)
    for number, line in lines:
        if QUOTE not in line:
            if line.strip():
                yield number, line.removesuffix("\r").split(separator)
            continue
        taken: list[str] = []
        try:
            text = join_lines(line, lines, taken, open_lines)
            fields = next(csv.reader(text, delimiter=separator, strict=True), [])
        except csv.Error:
            if taken:
                raise SapbertError(
                    "E117",
                    f"{path}:{number}: Expected the end of the quotes that begin in "
                    f"this line within {len(taken):,} lines, and a separator after "
                    "them, but got neither. Correct the quotes, or double them where "
                    "they are characters.",
                ) from None
            fields = line.split(separator) if separator == "\t" else []
        yield number, fields


def join_lines(
    line: str, lines: Iterator[tuple[int, str]], taken: list[str], most: int
) -> Iterator[str]:
    """Yield a line and, as long as a field is open, the next ones, kept in `taken`."""
    yield f"{line}\n"
    size = len(line)
    while len(taken) < most and size < USUAL_BYTES and (following := next(lines, None)):
        taken.append(following[1])
        size += len(following[1])
        yield f"{following[1]}\n"


def end_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Write line feeds for carriage returns if one ends the first line of a table.

    Old programs on a Mac wrote such tables. One in quotes ends no line.
    """
    blocks = iter(blocks)
    first = next(blocks, b"")
    line = first.lstrip().partition(b"\n")[0]
    header, _, rest = line.partition(b"\r")
    ends = bool(rest) and header.count(b'"') % 2 == 0
    for block in chain([first] if first else [], blocks):
        yield block.replace(b"\r", b"\n") if ends else block


def decode_blocks(
    blocks: Iterable[bytes], path: Path, encoding: str
) -> Iterator[bytes]:
    """Convert blocks in any encoding to UTF-8; those in UTF-8 are not checked here."""
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        yield from blocks
        return
    try:
        b"a".decode(encoding, "ignore")  # `zip`, which encodes bytes, is an error
        decoder = codecs.getincrementaldecoder(encoding)()
    except (LookupError, UnicodeError, ValueError):
        raise SapbertError(
            "E331",
            "Expected `--encoding` to be a text encoding that Python has, but got "
            f"{encoding[:40]!r}. Pass e.g. `cp1252`, `latin-1` or `utf-16`.",
        ) from None
    offset = 0
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text.encode("utf8")
            offset += len(block)
        if text := decoder.decode(b"", True):
            yield text.encode("utf8")
    except UnicodeError:
        raise SapbertError(
            "E009",
            f"{path}: Expected text in {encoding}, as `--encoding` says, but got "
            f"other bytes after offset {offset}. Pass the encoding in which the file "
            "was saved.",
        ) from None


def read_first_line(path: Path, encoding: str = "utf-8", comment: str = "#") -> str:
    """Return the first line of a table that is no comment, or else the first."""
    blocks = end_lines(decode_blocks(read_blocks([path]), path, encoding))
    _, lines = next(read_line_blocks(path, blocks=blocks), (1, [b""]))
    lines = [*filter(bytes.strip, lines)]
    comments = (b"#", comment.encode())
    header = next((line for line in lines if not line.startswith(comments)), b"")
    return decode_line(header or next(iter(lines), b""), path, 1)


def name_delimiter(text: str) -> str:
    """Return the delimiter that the value of `--delimiter` names."""
    delimiter = DELIMITERS.get(text.lower(), text)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise SapbertError(
            "E331",
            "Expected `--delimiter` to be one character, or one of "
            f"{', '.join(DELIMITERS)}, but got {text[:40]!r}.",
        )
    return delimiter


def read_delimited(
    path: Path,
    separator: str | None = None,
    *,
    quoted: bool | None = True,
    encoding: str = "utf-8",
    read: ReadLines = read_lines,
    comment: str = "",
) -> Iterator[Row]:
    """Read the rows of a table; see `split_rows`.

    Args:
        separator: None = the one of the first line.
        quoted: None = unless tabs or two bars separate.
        comment: What lines begin with that are no rows; empty = all are rows.
        read: Reads the lines of a path and its `blocks`; by default, one that is not
            UTF-8 is an error.
    """
    if separator is None:
        separator = find_separator(read_first_line(path, encoding, comment or "#"))
    if quoted is None:
        quoted = separator not in (TAB, BARS)
    blocks = decode_blocks(read_blocks([path]), path, encoding)
    if quoted:
        blocks = end_lines(blocks)
    lines: Iterable[tuple[int, str]] = read(path, blocks=blocks)
    if comment:
        lines = (line for line in lines if not line[1].startswith(comment))
    if quoted:  # csv takes a carriage return for the end of a row
        lines = ((number, line.replace("\r", " ")) for number, line in lines)
    return split_rows(lines, separator, path, quoted=quoted)


def find_separator(line: str, separators: str = SEPARATORS) -> str:
    """Return what a line has most often outside of quotes, the first of equal ones."""
    return max(separators, key=QUOTED.sub("", line).count)
