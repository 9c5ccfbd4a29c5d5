"""Rows of Rich Release Format, as places in a block of bytes.

Splitting seventeen million rows into eighteen fields each is most of the work of
reading them, and most fields are never looked at. So numpy finds the bars of a whole
block at once, filters compare bytes in place, and only what is kept is taken out.
"""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from ..errors import Errors, SapbertError
from ..files import LINE_FEED, decode_line, read_text_blocks
from .report import Report
from .rrf_files import COLUMNS, find_columns, name_parts

BAR = ord("|")
END: Tuple[int, int, bytes] = (0, 0, b"")  # after the last block


@dataclass(slots=True)
class Rows:
    """Some rows of a block.

    table (str): The table, e.g. "MRCONSO".
    block (bytes): Whole lines, UTF-8, each with all the fields of the table.
    codes (np.ndarray): The same as numbers, uint8. Shape: (len(block),).
    begins (np.ndarray): Place where each row begins, int64. Shape: (rows,).
    bars (np.ndarray): Place of each bar, int64. Shape: (rows, columns).
    numbers (np.ndarray): Line of each row in the file, from 1, int64. Shape: (rows,).
    """

    table: str
    block: bytes
    codes: np.ndarray
    begins: np.ndarray
    bars: np.ndarray
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.bars)

    def __getitem__(self, which: Any) -> "Rows":
        """Choose rows by a slice or a mask of bool."""
        begins, bars, numbers = (
            self.begins[which],
            self.bars[which],
            self.numbers[which],
        )
        return Rows(self.table, self.block, self.codes, begins, bars, numbers)

    def bounds(self, column: str) -> Tuple[np.ndarray, np.ndarray]:
        """Give the places where a column begins and ends.

        column (str): The column.
        RETURNS (Tuple[np.ndarray, np.ndarray]): Places, int64. Shape: (rows,) each.
        """
        (place,) = find_columns(self.table, column)
        begins = self.bars[:, place - 1] + 1 if place else self.begins
        return begins, self.bars[:, place]

    def spans(self, first: str, last: str) -> List[bytes]:
        """Take out neighbouring columns, with the bars between them.

        first (str): The first column.
        last (str): The last one.
        RETURNS (List[bytes]): One for each row.
        """
        begins, ends = self.bounds(first)[0].tolist(), self.bounds(last)[1].tolist()
        block = self.block
        return [block[begin:end] for begin, end in zip(begins, ends)]  # noqa: B905

    def texts(self, column: str, errors: str = "strict") -> List[str]:
        """Take out a column.

        column (str): The column.
        errors (str): What to do where it is not UTF-8, as in `bytes.decode`.
        RETURNS (List[str]): One for each row.
        """
        if not len(self):
            return []
        return b"|".join(self.spans(column, column)).decode("utf8", errors).split("|")

    def equal(self, column: str, *values: str) -> np.ndarray:
        """Tell in which rows a column has one of some values.

        column (str): The column.
        values (str): The values.
        RETURNS (np.ndarray): Mask, bool. Shape: (rows,).
        """
        begins, ends = self.bounds(column)
        lengths = ends - begins
        mask = np.zeros(len(self), dtype=bool)
        for value in values:
            letters = value.encode("utf8")
            same = lengths == len(letters)
            for offset, letter in enumerate(letters):
                # what is too short to have a letter there is not the same anyway
                same &= self.codes.take(begins + offset, mode="clip") == letter
            mask |= same
        return mask

    def begin_of_last(self, column: str) -> int:
        """Find the first of the rows at the end that are the same in a column.

        column (str): The column.
        RETURNS (int): Index of a row.
        """
        begins, ends = self.bounds(column)
        row = len(self) - 1
        value = self.block[begins[row] : ends[row]]
        while row and self.block[begins[row - 1] : ends[row - 1]] == value:
            row -= 1
        return row

    def changes(self, column: str) -> np.ndarray:
        """Find the rows whose column differs from the row before.

        column (str): The column.
        RETURNS (np.ndarray): Indices of rows, int64, ascending; 0 is the first.
        """
        begins, ends = self.bounds(column)
        lengths = ends - begins
        same = lengths[1:] == lengths[:-1]
        if same.all():
            for offset in range(int(lengths[0]) if len(self) else 0):
                letters = self.codes.take(begins + offset)
                same &= letters[1:] == letters[:-1]
        else:
            fields = self.spans(column, column)
            pairs = zip(fields, fields[1:])  # noqa: B905
            same = np.fromiter((a == b for a, b in pairs), bool, len(same))
        return np.concatenate(([0], np.flatnonzero(~same) + 1))[: len(self)]


def find_bars(table: str, block: bytes, numbers: np.ndarray) -> Optional[Rows]:
    """Find the fields of all the rows of a block.

    table (str): The table.
    block (bytes): Lines, each with a line feed at its end.
    numbers (np.ndarray): Line numbers, int64. Shape: (rows,).
    RETURNS (Optional[Rows]): The rows; None if one has too few or too many fields.
    """
    codes = np.frombuffer(block, dtype=np.uint8)
    rows, columns = len(numbers), len(COLUMNS[table])
    places = np.flatnonzero(codes == BAR)
    if len(places) != rows * columns:
        return None
    bars = places.reshape(rows, columns)
    ends = bars[:, -1] + 1
    # a row ends with a bar and a line feed; there are as many line feeds as rows
    if not (codes[ends] == LINE_FEED).all():
        return None
    begins = np.concatenate(([0], ends + 1))[:rows]
    return Rows(table, block, codes, begins, bars, numbers)


def read_rows(
    parts: List[Path],
    table: str,
    *,
    on_error: str,
    report: Report,
    whole: str = "",
    decodable: bool = True,
) -> Iterator[Rows]:
    """Read a table in blocks of rows that have all their fields.

    parts (List[Path]): The file, or its parts.
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
    waiting: List[bytes] = []
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


def find_good_bars(table: str, lines: List[Tuple[int, bytes]]) -> Rows:
    """Find the fields of lines that are known to have them all.

    table (str): The table.
    lines (List[Tuple[int, bytes]]): Their numbers and the lines, without their ends.
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
) -> Iterator[Tuple[int, bytes]]:
    """Count the fields of lines one by one; see `read_rows`.

    YIELDS (Tuple[int, bytes]): Number and line of those that have them all.
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
    """Tell whether bytes are UTF-8."""
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
