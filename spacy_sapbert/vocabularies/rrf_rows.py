"""Rows of Rich Release Format, as places in a block of bytes.

Splitting seventeen million rows into eighteen fields each is most of the work of
reading them, and most fields are never looked at. So numpy finds the bars of a whole
block at once, filters compare bytes in place, and only what is kept is taken out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.reading import LINE_FEED
from .rrf_files import COLUMNS, find_columns

BAR = ord("|")
SHORT = 64  # bytes in what is taken out of a row
MOST_BYTES = np.iinfo(np.int32).max  # whose places are half as long as others
WORD = 8  # bytes that are compared at once
# what is left of a word if only its first bytes belong to a field, by their number
MASKS = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], dtype="<u8")


@dataclass(slots=True)
class Rows:
    """Some rows of a block.

    table (str): The table, e.g. "MRCONSO".
    block (bytes): Whole lines, UTF-8, each with all the fields of the table.
    codes (np.ndarray): The same as numbers, uint8. Shape: (len(block),).
    words (np.ndarray): The eight bytes that begin at each place of the block as one
        number, uint64; behind its end there are zeros. Shape: (len(block),).
    begins (np.ndarray): Place where each row begins, int64. Shape: (rows,).
    bars (np.ndarray): Place of each bar, int64. Shape: (rows, columns).
    numbers (np.ndarray): Line of each row in the file, from 1, int64. Shape: (rows,).
    """

    table: str
    block: bytes
    codes: np.ndarray
    words: np.ndarray
    begins: np.ndarray
    bars: np.ndarray
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.bars)

    def __getitem__(self, which: Any) -> "Rows":
        """Choose rows by a slice, a mask of bool or their indices."""
        if isinstance(which, slice):
            chosen = [each[which] for each in (self.begins, self.bars, self.numbers)]
        else:
            # numpy takes rows by index in half the time that it needs for a mask
            rows = np.flatnonzero(which) if which.dtype == bool else which
            chosen = [
                each.take(rows, axis=0)
                for each in (self.begins, self.bars, self.numbers)
            ]
        return Rows(self.table, self.block, self.codes, self.words, *chosen)

    def bounds(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the places where a column begins and ends.

        column (str): The column.
        RETURNS (tuple[np.ndarray, np.ndarray]): Places, int64. Shape: (rows,) each.
        """
        (place,) = find_columns(self.table, column)
        begins = self.bars[:, place - 1] + 1 if place else self.begins
        return begins, self.bars[:, place]

    def spans(self, first: str, last: str) -> list[bytes]:
        """Take out neighbouring columns, with the bars between them.

        first (str): The first column.
        last (str): The last one.
        RETURNS (list[bytes]): One for each row.
        """
        begins, ends = self.bounds(first)[0].tolist(), self.bounds(last)[1].tolist()
        block = self.block
        return [block[begin:end] for begin, end in zip(begins, ends)]  # noqa: B905

    def letters(self, first: str, last: str) -> np.ndarray:
        """Take out neighbouring columns, each with the bar behind it.

        first (str): The first column.
        last (str): The last one.
        RETURNS (np.ndarray): The bytes of one row after the other, uint8; there must be
            a row.
        """
        begins, ends = self.bounds(first)[0], self.bounds(last)[1] + 1
        lengths = ends - begins
        behind = np.cumsum(lengths)
        if behind[-1] > SHORT * len(self) or len(self.block) > MOST_BYTES:
            joined = b"|".join([*self.spans(first, last), b""])
            return np.frombuffer(bytearray(joined), dtype=np.uint8)
        # byte by byte beats row by row as long as there are few bytes in a row
        places = np.repeat((begins - behind + lengths).astype(np.int32), lengths)
        places += np.arange(len(places), dtype=np.int32)
        return self.codes.take(places)

    def texts(self, column: str, errors: str = "strict") -> list[str]:
        """Take out a column.

        column (str): The column.
        errors (str): What to do where it is not UTF-8, as in `bytes.decode`.
        RETURNS (list[str]): One for each row.
        """
        if not len(self):
            return []
        return str(self.letters(column, column).data, "utf8", errors).split("|")[:-1]

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

    def keys(self, column: str) -> np.ndarray | None:
        """Put short fields as numbers that are the same only if the fields are.

        column (str): The column.
        RETURNS (np.ndarray | None): The letters, and their number in the highest
            byte, uint64; None if a field is longer than seven bytes. Shape: (rows,).
        """
        begins, ends = self.bounds(column)
        lengths = ends - begins
        if lengths.max(initial=0) >= WORD:
            return None
        counts = lengths.astype(np.uint64) << np.uint64(8 * (WORD - 1))
        keys: np.ndarray = self.words[begins] & MASKS[lengths] | counts
        return keys

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
        for offset in range(0, int(lengths.max(initial=0)), WORD):
            # what is too short to have letters there is masked as a whole
            places = np.minimum(begins + offset, len(self.block) - 1)
            words = self.words[places] & MASKS[np.clip(lengths - offset, 0, WORD)]
            same &= words[1:] == words[:-1]
        return np.concatenate(([0], np.flatnonzero(~same) + 1))[: len(self)]


def key_to_text(key: int) -> str:
    """Return the field that `Rows.keys` put as a number.

    key (int): The number.
    RETURNS (str): The field.
    RAISES (UnicodeDecodeError): If it is not UTF-8.
    """
    letters = key.to_bytes(WORD, "little")
    return letters[: letters[-1]].decode("utf8")


def find_bars(table: str, block: bytes, numbers: np.ndarray) -> Rows | None:
    """Find the fields of all the rows of a block.

    table (str): The table.
    block (bytes): Lines, each with a line feed at its end.
    numbers (np.ndarray): Line numbers, int64. Shape: (rows,).
    RETURNS (Rows | None): The rows; None if one has too few or too many fields.
    """
    padded = block + bytes(WORD)
    codes = np.frombuffer(padded, np.uint8, len(block))
    words = np.ndarray(len(block), "<u8", padded, strides=1)
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
    return Rows(table, block, codes, words, begins, bars, numbers)
