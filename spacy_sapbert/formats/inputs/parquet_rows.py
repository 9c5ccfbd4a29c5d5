"""The rows of Parquet files as documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...io.tables.headers import missing_columns
from ...io.tables.parquet import read_names, read_records
from .rows import COLUMNS, FIX, Columns, Row

NULL = "__HIVE_DEFAULT_PARTITION__"  # as the value of a partition


def read_partition(name: str) -> dict[str, str | None]:
    """Return the columns that engines write as folders: `year=2024/part-0.parquet`."""
    pairs = (part.split("=", 1) for part in Path(name).parts[:-1] if "=" in part)
    fields = {unquote(key): unquote(value) for key, value in pairs}
    return {key: None if value == NULL else value for key, value in fields.items()}


def read_parquet_rows(
    path: Path, columns: Columns, *, name: str = "", **_options: Any
) -> Iterator[Row]:
    """Read the rows of a Parquet file; numbers are from 1."""
    partition = read_partition(name)
    names = choose_names(path, [*read_names(path), *partition], columns)
    for number, row in enumerate(read_records(path, names), 1):
        yield number, row | partition


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
            raise missing_columns(path, sorted(known), [name], FIX, is_header=True)
    return [*chosen]
