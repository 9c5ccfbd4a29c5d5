"""Vectors in a file, row after row, with 16 or 32 bits a value.

A value of 16 bits is an integer: fast to decode, and never NaN. A cosine changes by
less than 0.0001.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from weakref import finalize

import numpy as np

from ...errors import SapbertError
from ...io.forks import ProcessLock
from ...io.progress import show_progress
from ...io.writing import link_file

COMPACT_SUFFIX = ".i16"
SCALE = np.float32(32767)  # a value of 1 in 16 bits
BLOCK_ROWS = 16_384


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
            "E004", f"Expected to read {path}, but the system refused: {error}."
        ) from None
    except ValueError as error:
        raise damaged_index(path=path, reason=error) from None


def check_size(size: int, expected: int) -> None:
    if size != expected or not size:
        raise ValueError(f"it has {size} bytes and not {expected}")


def check_numbers(record: Any, expected: Mapping[str, object]) -> None:
    for name, value in expected.items():
        if record[name] != value:
            raise ValueError(f"`{name}` is {record[name]}, not {value}")


def encode_rows(vectors: np.ndarray, *, compact: bool) -> np.ndarray:
    """Return vectors as they are stored. Shape: (n, width)."""
    if not compact:
        return np.ascontiguousarray(vectors, dtype="<f4")
    return np.rint(np.clip(vectors, -1, 1) * SCALE).astype("<i2")


class RowFile:
    """Vectors in a file, read row by row without mapping it.

    A mapped file counts as memory, and a cut one ends the process. Here it is an error.
    """

    def __init__(
        self, path: Path, *, rows: int, width: int, compact: bool = True
    ) -> None:
        self.path = path
        self.shape = (rows, width)
        self.compact = compact
        self.type = np.dtype("<i2" if compact else "<f4")
        self.row_bytes = width * self.type.itemsize
        self.lock = ProcessLock()
        with name_damage(path):
            self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            has_pread = hasattr(os, "pread")
            self.read = partial(os.pread, self.handle) if has_pread else self.read_at
            self.close = finalize(self, os.close, self.handle)
            check_size(os.fstat(self.handle).st_size, rows * self.row_bytes)

    def __len__(self) -> int:
        return self.shape[0]

    def read_at(self, size: int, place: int) -> bytes:
        with self.lock:  # Windows has no `pread`
            os.lseek(self.handle, place, os.SEEK_SET)
            return os.read(self.handle, size)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        ends = find_runs(rows)
        sizes = (ends[1:] - ends[:-1]) * self.row_bytes
        places = rows[ends[:-1]] * self.row_bytes
        data = b"".join(map(self.read, sizes.tolist(), places.tolist()))
        if len(data) != len(rows) * self.row_bytes:
            reason = "it was cut while it was used"
            raise damaged_index(path=self.path, reason=reason)
        values = np.frombuffer(data, self.type).reshape(len(rows), self.shape[1])
        return values * (1 / SCALE) if self.compact else values


def find_runs(rows: np.ndarray) -> np.ndarray:
    """Return where runs of rows that follow each other begin and end. (runs + 1,)"""
    is_first = np.ones(len(rows) + 1, dtype=bool)
    is_first[1:-1] = rows[1:] != rows[:-1] + 1
    return np.flatnonzero(is_first)


def write_at(file: BinaryIO, rows: np.ndarray, stored: np.ndarray) -> None:
    """Write some rows, from `encode_rows`, to their places in a file."""
    order = np.argsort(rows)
    rows, stored = rows[order], stored[order]
    for start, end in pairwise(find_runs(rows).tolist()):
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
            file.write(encode_rows(block, compact=compact).tobytes())


def not_finite() -> SapbertError:
    return SapbertError(
        "E315",
        "Expected finite vectors from the encoder, but some are not. Try another "
        "encoder, or `--precision float32`.",
    )


def damaged_index(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E306",
        f"{path}: Expected an index as `spacy sapbert kb build` writes it, but "
        f"{reason}. Copy or build the knowledge base again.",
    )
