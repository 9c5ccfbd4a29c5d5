"""Vectors in a file, row after row, with 16 or 32 bits a value.

In 16 bits a value is an integer, so that a file has no NaN, equal vectors stay equal,
and numpy decodes it several times faster than float16. A cosine changes by less than
0.0001 (a half unit is 0.000015 of a value; float16 is no more exact).
"""

import os
from pathlib import Path
from typing import Protocol
from weakref import finalize

import numpy as np

from ...errors import Errors, SapbertError
from ...system.forks import ProcessLock
from ...system.progress import show_progress
from ...system.writing import link_file

SCALE = np.float32(32767)  # a value of 1 in 16 bits
BLOCK_ROWS = 16_384
UNIT_TOLERANCE = 1e-3  # of the squared length of a vector


class Vectors(Protocol):
    """Unit vectors in float32 that are read in parts; arrays are so too."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and their width."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows. Shape: (n, width)."""


def value_type(*, compact: bool) -> np.dtype:
    """Return the type of a value in a file."""
    return np.dtype("<i2" if compact else "<f4")


def encode_rows(vectors: np.ndarray, *, compact: bool) -> np.ndarray:
    """Return vectors as they are stored. Shape: (n, width)."""
    if not compact:
        return np.ascontiguousarray(vectors, dtype="<f4")
    return np.rint(np.clip(vectors, -1, 1) * SCALE).astype("<i2")


def decode_rows(values: np.ndarray) -> np.ndarray:
    """Return stored values as float32; an array of float32 is not copied."""
    if values.dtype.kind == "i":
        return values * (1 / SCALE)
    return np.asarray(values, dtype=np.float32)


def find_bad_vector(vectors: np.ndarray) -> int | None:
    """Return the first row that is no finite unit vector, None if all are.

    vectors (np.ndarray): float32. Shape: (n, width).
    """
    squares = np.einsum("nd,nd->n", vectors, vectors)
    good = np.abs(squares - 1) < UNIT_TOLERANCE  # false for NaN
    return None if good.all() else int(np.argmin(good))


class RowFile:
    """Vectors in a file, read row by row without mapping it.

    A mapped file counts as memory of the process, and ends it with a signal if it is
    cut; here this is an error.

    path (Path): The file.
    rows (int): Number of its rows.
    width (int): Width of its vectors.
    compact (bool): 16 bits a value.
    writable (bool): Create the file if it is missing, to write rows.
    RAISES (SapbertError): If it cannot be opened, or has another size.
    """

    def __init__(
        self,
        path: Path,
        *,
        rows: int,
        width: int,
        compact: bool = True,
        writable: bool = False,
    ) -> None:
        self.path = path
        self.shape = (rows, width)
        self.compact = compact
        self.lock = ProcessLock()
        self.type = value_type(compact=compact)
        self.row_bytes = width * self.type.itemsize
        flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
        try:
            self.handle = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
            self.close = finalize(self, os.close, self.handle)
            size = os.fstat(self.handle).st_size
            if writable and size != rows * self.row_bytes:
                os.ftruncate(self.handle, rows * self.row_bytes)
                size = rows * self.row_bytes
        except OSError as error:
            raise SapbertError(Errors.E010.format(path=path, reason=error)) from None
        if size != rows * self.row_bytes or not size:
            reason = f"it has {size} bytes and not {rows * self.row_bytes}"
            raise SapbertError(Errors.E343.format(path=path, reason=reason))

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, first: int, many: int) -> bytes:
        """Read rows that are next to each other."""
        if hasattr(os, "pread"):
            return os.pread(self.handle, many * self.row_bytes, first * self.row_bytes)
        with self.lock:  # Windows
            os.lseek(self.handle, first * self.row_bytes, os.SEEK_SET)
            return os.read(self.handle, many * self.row_bytes)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows in float32; those of a slice are next to each other.

        RAISES (SapbertError): If the file was cut, or a row is no unit vector.
        """
        if not isinstance(rows, slice) and are_neighbours(rows):
            rows = slice(int(rows[0]), int(rows[-1]) + 1)
        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            many = max(0, last - first)
            data = self.read(first, many)
        else:
            many = len(rows)
            numbers = np.asarray(rows, dtype=np.int64).tolist()
            data = b"".join([self.read(number, 1) for number in numbers])
        if len(data) != many * self.row_bytes:
            reason = "it was cut while it was used"
            raise SapbertError(Errors.E343.format(path=self.path, reason=reason))
        vectors = decode_rows(
            np.frombuffer(data, self.type).reshape(many, self.shape[1])
        )
        if (bad := find_bad_vector(vectors)) is not None:
            row = bad + first if isinstance(rows, slice) else rows[bad]
            raise SapbertError(Errors.E391.format(path=self.path, row=row))
        return vectors

    def write(self, rows: np.ndarray, stored: np.ndarray) -> None:
        """Write some rows.

        rows (np.ndarray): Their numbers. Shape: (n,).
        stored (np.ndarray): Their values, from `encode_rows`. Shape: (n, width).
        RAISES (OSError): If the system refuses, e.g. because the disk is full.
        """
        order = np.argsort(rows, kind="stable")
        # Rows that are next to each other are written at once.
        numbers = np.asarray(rows)[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            os.lseek(self.handle, int(numbers[start]) * self.row_bytes, os.SEEK_SET)
            write_all(self.handle, stored[order[start:end]].tobytes())

    def sync(self) -> None:
        """Flush what was written to the disk."""
        os.fsync(self.handle)


def are_neighbours(rows: np.ndarray) -> bool:
    """Return whether each row follows the one before."""
    if len(rows) < 2 or rows[-1] - rows[0] != len(rows) - 1:
        return False
    return bool((np.diff(rows) == 1).all())


def write_all(handle: int, data: bytes) -> None:
    """Write bytes to a descriptor; the system may take them in parts."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def write_rows(vectors: Vectors, path: Path, *, compact: bool, progress: bool) -> None:
    """Write vectors to a file; a file of the same kind is linked, not copied.

    vectors (Vectors): Unit vectors. Shape: (rows, width).
    path (Path): The file.
    compact (bool): 16 bits a value.
    progress (bool): Show a bar.
    """
    if isinstance(vectors, RowFile) and vectors.compact == compact:
        link_file(vectors.path, path)
        return
    starts = range(0, len(vectors), BLOCK_ROWS)
    with open(path, "wb") as file:
        for start in show_progress(
            starts, unit="blocks", desc="Write", quiet=not progress
        ):
            block = vectors[start : start + BLOCK_ROWS]
            if find_bad_vector(block) is not None:
                raise SapbertError(Errors.E315)
            file.write(encode_rows(block, compact=compact).tobytes())
