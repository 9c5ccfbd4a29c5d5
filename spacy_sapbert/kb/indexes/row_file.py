"""Vectors in a file, row after row, with 16 or 32 bits a value.

In 16 bits a value is an integer, so that a file has no NaN, equal vectors stay equal,
and numpy decodes it several times faster than float16. A cosine changes by less than
0.0001 (a half unit is 0.000015 of a value; float16 is no more exact).
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol
from weakref import finalize

import numpy as np

from ...errors import SapbertError
from ...io.forks import ProcessLock
from ...io.progress import show_progress
from ...io.writing import link_file

SCALE = np.float32(32767)  # a value of 1 in 16 bits
BLOCK_ROWS = 16_384
UNIT_TOLERANCE = 1e-3  # of the squared length of a vector


class Vectors(Protocol):
    """Unit vectors in float32 that are read in parts, for example an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, and their width."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows. Shape: (n, width)."""


@contextmanager
def name_damage(path: Path) -> Iterator[None]:
    """Raise the error of a file of an index for a ValueError or OSError within."""
    try:
        yield
    except OSError as error:
        raise SapbertError(
            "E010", f"Expected to read {path}, but the system refused: {error}."
        ) from None
    except ValueError as error:
        raise damaged_index(path=path, reason=error) from None


def check_size(size: int, expected: int) -> None:
    """Raise a ValueError if a file has another size, or is empty."""
    if size != expected or not size:
        raise ValueError(f"it has {size} bytes and not {expected}")


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
    """Return the first row that is not a finite unit vector, None if all are."""
    squares = np.einsum("nd,nd->n", vectors, vectors)
    good = np.abs(squares - 1) < UNIT_TOLERANCE  # false for NaN
    return None if good.all() else int(np.argmin(good))


class RowFile:
    """Vectors in a file, read row by row without mapping it.

    A mapped file counts as memory of the process, and ends it with a signal if it is
    cut; here this is an error, and so is a row that is not a unit vector.
    """

    def __init__(
        self, path: Path, *, rows: int, width: int, compact: bool = True
    ) -> None:
        self.path = path
        self.shape = (rows, width)
        self.compact = compact
        self.lock = ProcessLock()
        self.type = value_type(compact=compact)
        self.row_bytes = width * self.type.itemsize
        with name_damage(path):
            self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self.close = finalize(self, os.close, self.handle)
            check_size(os.fstat(self.handle).st_size, rows * self.row_bytes)

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
        """Return some rows in float32."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        numbers = rows.tolist()
        runs = list_runs(rows)
        data = b"".join([self.read(numbers[at], end - at) for at, end in runs])
        if len(data) != len(numbers) * self.row_bytes:
            reason = "it was cut while it was used"
            raise damaged_index(path=self.path, reason=reason)
        values = np.frombuffer(data, self.type).reshape(len(numbers), self.shape[1])
        vectors = decode_rows(values)
        if (bad := find_bad_vector(vectors)) is not None:
            raise SapbertError(
                "E391",
                f"{self.path}: Expected unit vectors, but row {numbers[bad]} has "
                "none: the file is damaged. Copy or build the knowledge base again; "
                "`spacy sapbert kb verify` checks all of it.",
            )
        return vectors


def list_runs(rows: np.ndarray) -> Iterable[tuple[int, int]]:
    """Return where each run of rows that follow each other begins, and ends."""
    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1).tolist()
    return zip(starts, [*starts[1:], len(rows)], strict=False)


def write_at(file: BinaryIO, rows: np.ndarray, stored: np.ndarray) -> None:
    """Write some rows, from `encode_rows`, to their places in a file."""
    order = np.argsort(rows)
    rows, stored = rows[order], stored[order]
    for start, end in list_runs(rows):
        file.seek(int(rows[start]) * stored[0].nbytes)
        file.write(stored[start:end].tobytes())


def write_rows(vectors: Vectors, path: Path, *, compact: bool, progress: bool) -> None:
    """Write unit vectors to a file; a file of the same kind is linked, not copied."""
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
                raise not_finite()
            file.write(encode_rows(block, compact=compact).tobytes())


def not_finite() -> SapbertError:
    return SapbertError(
        "E315",
        "Expected finite vectors from the encoder, but some are not. Try another "
        "encoder, or `--precision float32`.",
    )


def damaged_index(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E343",
        f"{path}: Expected an index as `spacy sapbert kb build` writes it, but "
        f"{reason}. Copy or build the knowledge base again.",
    )
