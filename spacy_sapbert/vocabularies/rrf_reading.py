"""Tables of Rich Release Format read in blocks; bad rows fail or are counted."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from ..errors import Errors, SapbertError
from ..system.reading import decode_line, read_text_blocks
from .report import Report
from .rrf_files import COLUMNS, name_parts
from .rrf_rows import Rows, find_bars

END: tuple[int, int, bytes] = (0, 0, b"")  # after the last block


def read_rows(
    parts: list[Path],
    table: str,
    *,
    on_error: str,
    report: Report,
    whole: str = "",
    decodable: bool = True,
) -> Iterator[Rows]:
    """Read a table in blocks of rows that have all their fields.

    parts (list[Path]): The file, or its parts.
    table (str): The table, e.g. "MRCONSO".
    on_error (str): "fail", or "skip" to count bad rows and go on.
    report (Report): Counts the rows.
    whole (str): A column; neighbouring rows in which it is the same stay in one block.
    decodable (bool): Whether rows that are not UTF-8 are bad rows; else the caller has
        to look out for them.
    YIELDS (Rows): Some rows, in the order of the file.
    RAISES (SapbertError): With file and line, at the first bad row.
    """
    path = name_parts(parts, table)
    held, numbers = b"", np.empty(0, dtype=np.int64)
    waiting: list[bytes] = []
    for first, count, read in chain(read_text_blocks(path, parts=parts), [END]):
        report.read(path.name, count)
        numbers = np.concatenate((numbers, np.arange(first, first + count)))
        waiting.append(read)
        if read and sum(map(len, waiting)) < len(held):
            # one concept fills the block: let it double, not grow a little each time
            continue
        block, waiting = b"".join((held, *waiting)), []
        rows = find_bars(table, block, numbers)
        if rows is None:
            lines = check_lines(block, numbers, path, table, on_error, report)
            rows = find_good_bars(table, list(lines))
        if decodable and not is_utf8(rows.block):
            rows = drop_undecodable(rows, path, on_error, report)
        held, numbers = b"", rows.numbers[:0]
        if whole and read and len(rows):
            last = rows.begin_of_last(whole)
            held, numbers = rows.block[rows.begins[last] :], rows.numbers[last:]
            rows = rows[:last]
        if len(rows):
            yield rows


def find_good_bars(table: str, lines: list[tuple[int, bytes]]) -> Rows:
    """Find the fields of lines that are known to have them all.

    table (str): The table.
    lines (list[tuple[int, bytes]]): Their numbers and the lines, without their ends.
    RETURNS (Rows): The rows.
    """
    block = b"".join(line + b"\n" for _, line in lines)
    numbers = np.array([number for number, _ in lines], dtype=np.int64)
    rows = find_bars(table, block, numbers)
    assert rows is not None
    return rows


def check_lines(
    block: bytes,
    numbers: np.ndarray,
    path: Path,
    table: str,
    on_error: str,
    report: Report,
) -> Iterator[tuple[int, bytes]]:
    """Count the fields of lines one by one; see `read_rows`.

    YIELDS (tuple[int, bytes]): Number and line of those that have them all.
    """
    expected = len(COLUMNS[table])
    for number, line in zip(numbers.tolist(), block[:-1].split(b"\n"), strict=True):
        got = line.count(b"|")
        if got == expected and line.endswith(b"|"):
            yield number, line
        elif not line:
            report.dropped["blank lines"] += 1
        elif on_error == "fail":
            raise SapbertError(
                Errors.E102.format(path=path, line=number, expected=expected, got=got)
            )
        else:
            report.dropped[f"rows of {table} with a wrong number of fields"] += 1


def is_utf8(block: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        return block.isascii() or bool(block.decode("utf8"))
    except UnicodeDecodeError:
        return False


def drop_undecodable(rows: Rows, path: Path, on_error: str, report: Report) -> Rows:
    """Leave out rows that are not UTF-8, or fail at the first.

    rows (Rows): Some rows.
    path (Path): The file, for the error.
    on_error (str): "fail", or "skip" to count them.
    report (Report): Counts them.
    RETURNS (Rows): The other rows.
    RAISES (SapbertError): With file, line and offset, if they are not to be skipped.
    """
    lines = rows.spans(COLUMNS[rows.table][0], COLUMNS[rows.table][-1])
    good = np.fromiter(map(is_utf8, lines), dtype=bool, count=len(rows))
    if on_error == "fail" and not good.all():
        first = int(np.argmin(good))
        decode_line(lines[first], path, int(rows.numbers[first]))
    rule = f"rows of {rows.table} that are not UTF-8"
    report.dropped[rule] += int(np.count_nonzero(~good))
    return rows[good]
