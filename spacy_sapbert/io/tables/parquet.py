"""The rows of Parquet files, some of them in memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ...errors import SapbertError
from ..reading import UNPACKED_BYTES, UNPACKED_RATIO, unpacks_to_too_much, wrong_content

ROWS_AT_ONCE = 64  # each with a text
BUFFER_BYTES = 1 << 20  # of a column
DAMAGED = (OSError, ValueError, TypeError, NotImplementedError)  # of pyarrow


def count_rows(path: Path) -> int:
    """Return the number of rows of a file; 0 if it is damaged."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except DAMAGED:
        return 0  # an error, when it is read


def read_names(path: Path) -> list[str]:
    """Return the columns of a file."""
    try:
        return [*pq.read_schema(path).names]
    except DAMAGED as error:
        raise damaged(path, error) from None


def check_packed(path: Path, metadata: Any) -> None:
    """Check that no column says that it unpacks to far more than it is."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.row_group(group).num_columns):
            column = metadata.row_group(group).column(number)
            most = max(UNPACKED_BYTES, UNPACKED_RATIO * column.total_compressed_size)
            if column.total_uncompressed_size > most:
                raise unpacks_to_too_much(path=path, ratio=UNPACKED_RATIO)


def read_records(path: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the columns that have some names, of nested ones the outermost."""
    try:
        # Without `pre_buffer` and with a buffer, a row group is read page by page.
        with pq.ParquetFile(
            path, pre_buffer=False, buffer_size=BUFFER_BYTES, memory_map=False
        ) as file:
            check_packed(path, file.metadata)
            for batch in file.iter_batches(
                batch_size=ROWS_AT_ONCE, columns=[*names], use_threads=False
            ):
                yield from batch.to_pylist()
    except DAMAGED as error:
        if isinstance(error, SapbertError):
            raise
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> SapbertError:
    found = f"it cannot be read ({type(error).__name__})"
    return wrong_content(path=path, what="a Parquet file", found=found)
