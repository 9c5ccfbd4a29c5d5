"""Parquet: one row per mention with nested columns, for data frames and databases."""

from collections.abc import Iterable
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .entities import (
    ATTRIBUTE_NAMES,
    AttributeNames,
    NamedDoc,
    choose_columns,
    mention_rows,
)

ROWS_PER_BATCH = 1_000  # as Python objects, which need much more memory

CODES = pa.map_(pa.string(), pa.list_(pa.string()))
TYPES: dict[str, pa.DataType] = {
    "id": pa.string(),
    "start": pa.int64(),
    "end": pa.int64(),
    "text": pa.string(),
    "label": pa.string(),
    "cui": pa.string(),
    "name": pa.string(),
    "score": pa.float64(),
    "probability": pa.float64(),
    "types": pa.list_(pa.string()),
    "codes": CODES,
    "candidates": pa.list_(
        pa.struct(
            {
                "cui": pa.string(),
                "name": pa.string(),
                "alias": pa.string(),
                "score": pa.float64(),
                "rank": pa.int64(),
                "types": pa.list_(pa.string()),
                "codes": CODES,
                "tie": pa.string(),
                "probability": pa.float64(),
            }
        )
    ),
    "note": pa.string(),
}


def with_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """Return a row or candidate with `codes` as pairs, as Arrow expects of a map."""
    return {**values, "codes": list((values.get("codes") or {}).items())}


def to_arrow(candidate: dict[str, Any]) -> dict[str, Any]:
    """Return a candidate for Arrow; `tie` was a bool in older versions."""
    tie = candidate.get("tie")
    return {**with_pairs(candidate), "tie": tie if isinstance(tie, str) else None}


def to_batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of `mention_rows` in Arrow's compact form."""
    plain = [
        {**with_pairs(row), "candidates": [to_arrow(c) for c in row["candidates"]]}
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(plain, schema=schema)


def write_docs(
    docs: Iterable[NamedDoc],
    file: IO[bytes],
    *,
    spans_key: str | None = None,
    include_text: bool = True,
    names: AttributeNames = ATTRIBUTE_NAMES,
    rows_per_group: int = 20_000,
) -> None:
    """Write a row for each mention; see `registry.Writer`.

    rows_per_group (int): Rows of a row group; one group is in memory.
    """
    schema = pa.schema([(name, TYPES[name]) for name in choose_columns(include_text)])
    rows = mention_rows(docs, spans_key=spans_key, names=names)
    batches: list[pa.RecordBatch] = []
    held = 0
    with pq.ParquetWriter(file, schema) as writer:
        while part := list(islice(rows, min(ROWS_PER_BATCH, rows_per_group - held))):
            batches.append(to_batch(part, schema))
            held += len(part)
            if held == rows_per_group:
                writer.write_table(pa.Table.from_batches(batches))
                batches, held = [], 0
        if batches:
            writer.write_table(pa.Table.from_batches(batches))
