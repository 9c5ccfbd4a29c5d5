"""Parquet: one row per mention with nested columns, for data frames and databases."""

import json
from collections.abc import Iterable
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .entities import LinkedCandidate, LinkedDoc, choose_columns, mention_rows, read_tie

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
    "tie": pa.string(),
}


def to_pairs(codes: dict[str, list[str]] | None) -> list[tuple[str, list[str]]]:
    """Return codes as Arrow expects a map."""
    return list((codes or {}).items())


def to_arrow(candidate: LinkedCandidate) -> dict[str, Any]:
    """Return a candidate for Arrow."""
    plain = {"codes": to_pairs(candidate.get("codes"))}
    return {**candidate, **plain, "tie": read_tie(candidate)}


def to_text(value: Any) -> str | None:
    """Return the value of a field as a text."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def to_batch(rows: list[list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of `mention_rows` in Arrow's compact form."""
    arrays = []
    for field, column in zip(schema, zip(*rows, strict=True), strict=True):
        values = list(column)
        if field.name == "codes":
            values = [to_pairs(codes) for codes in column]
        elif field.name == "candidates":
            values = [[to_arrow(each) for each in found] for found in column]
        elif field.name not in TYPES:
            values = [to_text(value) for value in column]
        arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    rows_per_group: int = 20_000,
    keep: Iterable[str] = (),
) -> None:
    """Write a row for each mention; see `registry.Writer`.

    keep (Iterable[str]): Fields of the documents to write as columns of texts; lists
        and objects as JSON.
    rows_per_group (int): Rows of a row group; one group is in memory.
    """
    columns = choose_columns(include_text, keep)
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in columns])
    rows = mention_rows(docs, columns)
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
