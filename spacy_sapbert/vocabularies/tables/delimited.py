"""Tables as text: a header, then rows, with a character between fields."""

import codecs
import csv
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import Errors, SapbertError
from ...system.reading import RECORD_BYTES, USUAL_BYTES, read_blocks
from ..report import Report, read_good_lines

QUOTE = '"'
OPEN_LINES = 1000  # of a field in quotes, which may have line feeds
Row = tuple[int, list[str]]


def read_decoded(path: Path, encoding: str) -> Iterator[bytes]:
    """Read a file in any encoding as blocks of UTF-8.

    Raises:
        SapbertError: If there is no such encoding, or the file is in another.
    """
    try:
        b"a".decode(encoding, "ignore")  # `zip`, which encodes bytes, is an error
        decoder = codecs.getincrementaldecoder(encoding)()
    except (LookupError, UnicodeError, ValueError):
        raise SapbertError(Errors.E411.format(encoding=encoding[:40])) from None
    offset = 0
    try:
        for block in read_blocks([path]):
            if text := decoder.decode(block):
                yield text.encode("utf8")
            offset += len(block)
        if text := decoder.decode(b"", True):
            yield text.encode("utf8")
    except UnicodeError:
        values = {"path": path, "encoding": encoding, "offset": offset}
        raise SapbertError(Errors.E412.format(**values)) from None


def read_rows(
    path: Path,
    separator: str,
    report: Report,
    *,
    quoted: bool = False,
    encoding: str = "utf-8",
) -> Iterator[Row]:
    """Read the rows of a table, without blank lines.

    Args:
        quoted: A field in double quotes may have separators and line feeds, and two
            quotes are one. Else, and in tables with tabs where they do not fit, quotes
            are characters like others.
        encoding: Other than UTF-8.

    Yields:
        Number of the first line, from 1, and the fields; no field if quotes are wrong.

    Raises:
        SapbertError: See `read_good_lines`.
    """
    is_utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    blocks = None if is_utf8 else read_decoded(path, encoding)
    lines = read_good_lines(path, report, blocks=blocks, blank=quoted)
    if not quoted:
        for number, line in lines:
            yield number, line.split(separator)
        return
    # the limit is of the process, and that of lines is checked already
    csv.field_size_limit(max(csv.field_size_limit(), RECORD_BYTES))
    ahead: deque[tuple[int, str]] = deque()
    while ahead or (ahead := deque([*take_one(lines)])):
        number, line = ahead.popleft()
        if QUOTE not in line:
            if line.strip():
                yield number, line.split(separator)
            else:
                report.dropped["blank lines"] += 1
            continue
        taken: list[tuple[int, str]] = []

        def feed(
            line: str = line, taken: list[tuple[int, str]] = taken
        ) -> Iterator[str]:
            size = len(line)
            yield line.replace("\r", " ") + "\n"
            while len(taken) < OPEN_LINES and size < USUAL_BYTES:
                if not ahead:
                    ahead.extend(take_one(lines))
                if not ahead:
                    return
                taken.append(ahead.popleft())
                size += len(taken[-1][1])
                yield taken[-1][1].replace("\r", " ") + "\n"

        try:
            fields = next(csv.reader(feed(), delimiter=separator, strict=True), [])
        except csv.Error:
            # the quote may be wrong in this line alone; with tabs it may be a character
            ahead.extendleft(reversed(taken))
            fields = line.split(separator) if separator == "\t" else []
        yield number, fields


def take_one(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the next line, if there is one."""
    line = next(lines, None)
    if line is not None:
        yield line


def column_key(name: str) -> str:
    """Return the form of a column's name that is equal for equal names."""
    return "".join(filter(str.isalnum, name.casefold()))


def read_columns(
    path: Path,
    columns: Sequence[str],
    report: Report,
    *,
    separator: str = "\t",
    quoted: bool = False,
    optional: Sequence[str] = (),
) -> Iterator[Row]:
    """Read columns of a table whose first line names all columns.

    Args:
        columns: Names, whatever their case; the first one is an id and must not be
            empty.
        quoted: See `read_rows`.
        optional: Names of more columns, which may be absent and then are empty.

    Returns:
        Number of the line, and the stripped values of `columns` and `optional`.

    Raises:
        SapbertError: With file and line, at the first invalid row; if a column does not
            exist.
    """
    rows = read_rows(path, separator, report, quoted=quoted)
    return select_columns(rows, path, columns, report, optional=optional)


def select_columns(
    rows: Iterator[Row],
    path: Path,
    columns: Sequence[str],
    report: Report,
    *,
    optional: Sequence[str] = (),
    pad: bool = False,
) -> Iterator[Row]:
    """Yield columns of rows, of which the first has the names; see `read_columns`.

    Args:
        pad: Empty fields at the end of a row may be absent.
    """
    number, header = next(rows, (1, []))
    keys = [column_key(name) for name in header]
    missing = [name for name in columns if column_key(name) not in keys]
    if missing:
        raise SapbertError(
            Errors.E410.format(
                path=path,
                line=number,
                columns=" and ".join(missing),
                got=", ".join(name[:40] for name in header[:60]) or "no table",
            )
        )
    known = [name for name in optional if column_key(name) in keys]
    places = [keys.index(column_key(name)) for name in (*columns, *known)]
    positions = [
        known.index(name) + len(columns) if name in known else -1 for name in optional
    ]
    width, first = len(header), places[0]
    complete = len(known) == len(optional)
    for number, fields in rows:
        if pad:
            fields += [""] * (width - len(fields))
        if len(fields) != width or not fields[first].strip():
            expected = f"{width} fields, and something as `{columns[0]}`"
            values = {"path": path, "line": number, "expected": expected}
            report.skip("bad lines", SapbertError(Errors.E117.format(**values)))
            continue
        found = [fields[place].strip() for place in places]
        if not complete:
            found.append("")
            extra = [found[position] for position in positions]
            found = [*found[: len(columns)], *extra]
        yield number, found
