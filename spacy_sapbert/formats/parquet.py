"""Parquet: one row per mention with nested columns, for data frames and databases."""

from collections.abc import Iterable
from itertools import islice
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from .arrow import find_type, make_batch
from .entities import RUN_COLUMNS, LinkedDoc, choose_columns, mention_rows

ROWS_PER_BATCH = 1_000  # as Python objects, which need much more memory


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    rows_per_group: int = 20_000,
    keep: Iterable[str] = (),
    kb_digest: str | None = None,
) -> None:
    """Write a row for each mention; fields to keep are texts, maybe of JSON.

    One group of rows is in memory. `kb_digest` has a column.
    """
    keep = [*keep]
    columns = [*choose_columns(include_text), "error", *keep]
    names = [*choose_columns(include_text), *RUN_COLUMNS, *keep]
    types = [pa.string() if name in keep else find_type(name) for name in names]
    schema = pa.schema(list(zip(names, types, strict=True)))
    rows = mention_rows(docs, columns)
    batches: list[pa.RecordBatch] = []
    held = 0
    with pq.ParquetWriter(file, schema) as writer:
        while part := list(islice(rows, min(ROWS_PER_BATCH, rows_per_group - held))):
            batches.append(make_batch(part, columns, schema, kb_digest=kb_digest))
            held += len(part)
            if held == rows_per_group:
                writer.write_table(pa.Table.from_batches(batches))
                batches, held = [], 0
        if batches:
            writer.write_table(pa.Table.from_batches(batches))
