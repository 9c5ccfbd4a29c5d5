"""The rows of Parquet files as documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from ...errors import SapbertError
from ...io.reading import (
    UNPACKED_BYTES,
    UNPACKED_RATIO,
    unpacks_to_too_much,
    wrong_content,
)
from .rows import COLUMNS, Columns, Row, missing_column

ROWS_AT_ONCE = 64  # each with a text
NULL = "__HIVE_DEFAULT_PARTITION__"  # as the value of a partition
BUFFER_BYTES = 1 << 20  # of a column
DAMAGED = (OSError, ValueError, TypeError, NotImplementedError)  # of pyarrow


def count_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file; 0 if it is damaged."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except DAMAGED:
        return 0  # an error, when it is read


def read_names(path: Path) -> list[str]:
    """Return the columns of a Parquet file; none if it is damaged."""
    try:
        return [*pq.read_schema(path).names]
    except DAMAGED:
        return []  # an error, when it is read


def check_packed(path: Path, metadata: Any) -> None:
    """Check that no column says that it unpacks to far more than it is."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.row_group(group).num_columns):
            column = metadata.row_group(group).column(number)
            most = max(UNPACKED_BYTES, UNPACKED_RATIO * column.total_compressed_size)
            if column.total_uncompressed_size > most:
                raise unpacks_to_too_much(path=path, ratio=UNPACKED_RATIO)


def read_partition(name: str) -> dict[str, str | None]:
    """Return the columns that engines write as folders: `year=2024/part-0.parquet`."""
    pairs = (part.split("=", 1) for part in Path(name).parts[:-1] if "=" in part)
    fields = {unquote(key): unquote(value) for key, value in pairs}
    return {key: None if value == NULL else value for key, value in fields.items()}


def read_parquet_rows(
    path: Path, columns: Columns, *, name: str = "", **_options: Any
) -> Iterator[Row]:
    """Read the rows of a Parquet file, some of them in memory; numbers are from 1."""
    try:
        # Without `pre_buffer` and with a buffer, a row group is read page by page.
        with pq.ParquetFile(
            path, pre_buffer=False, buffer_size=BUFFER_BYTES, memory_map=False
        ) as file:
            check_packed(path, file.metadata)
            partition = read_partition(name)
            known = [*file.schema_arrow.names, *partition]
            names = choose_names(path, known, columns)
            number = 0
            for batch in file.iter_batches(
                batch_size=ROWS_AT_ONCE, columns=names, use_threads=False
            ):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row | partition
    except DAMAGED as error:
        if isinstance(error, SapbertError):
            raise
        reason = f"it cannot be read ({type(error).__name__})"
        raise wrong_content(path=path, what="a Parquet file", found=reason) from None


def choose_names(path: Path, known: list[str], columns: Columns) -> list[str]:
    """Return the columns to read, of nested ones the outermost.

    Only the id may be missing, if it is not named.
    """
    chosen: dict[str, None] = {}
    for name in (columns.text, columns.id, *columns.keep):
        outer = name if name in known else name.partition(".")[0]
        if outer in known:
            chosen[outer] = None
        elif name != COLUMNS.id:
            raise missing_column(path, sorted(known), columns, name, is_header=True)
    return [*chosen]
