"""Vectors in a file, row after row, with 16 or 32 bits a value.

A value of 16 bits is an integer: fast to decode, and never NaN. A cosine changes by
less than 0.0001.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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


class RecordFile:
    """Records in a file, read one by one without mapping it.

    A mapped file counts as memory, and a cut one ends the process. Here it is an error.
    """

    def __init__(
        self, path: Path, record: np.dtype[Any], *, records: int, start: int = 0
    ) -> None:
        self.path = path
        self.record = record
        self.records = records
        self.start = start  # byte of the first one
        self.lock = ProcessLock()
        with name_damage(path):
            self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self.close = finalize(self, os.close, self.handle)

    def __len__(self) -> int:
        return self.records

    def read(self, first: int, many: int) -> bytes:
        size = self.record.itemsize
        at = self.start + first * size
        if hasattr(os, "pread"):
            return os.pread(self.handle, many * size, at)
        with self.lock:  # Windows
            os.lseek(self.handle, at, os.SEEK_SET)
            return os.read(self.handle, many * size)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        runs = list_runs(rows)
        data = b"".join([self.read(int(rows[at]), end - at) for at, end in runs])
        if len(data) != len(rows) * self.record.itemsize:
            reason = "it was cut while it was used"
            raise damaged_index(path=self.path, reason=reason)
        return np.frombuffer(data, self.record)


class RowFile(RecordFile):
    """Vectors in a file, which are all that it has."""

    def __init__(
        self, path: Path, *, rows: int, width: int, compact: bool = True
    ) -> None:
        record = np.dtype(("<i2" if compact else "<f4", (width,)))
        super().__init__(path, record, records=rows)
        self.shape = (rows, width)
        self.compact = compact
        with name_damage(path):
            check_size(os.fstat(self.handle).st_size, rows * record.itemsize)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        values = super().__getitem__(rows)
        return values * (1 / SCALE) if self.compact else values


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
