"""The row of a mention in Arrow: the columns of Parquet files and of `LinkBatches`.

So what one machine and what a cluster wrote can be read as one table.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..io.version import __version__
from ..linking.candidates import Candidate
from .entities import COLUMNS, RUN_COLUMNS

CODES = pa.map_(pa.string(), pa.list_(pa.string()))
BY_NAME = {
    "start": pa.int64(),
    "end": pa.int64(),
    "rank": pa.int64(),
    "score": pa.float64(),
    "probability": pa.float64(),
    "types": pa.list_(pa.string()),
    "codes": CODES,
}  # others are texts


def find_type(name: str) -> pa.DataType:
    """Return the type of a column or of a field of a candidate."""
    if name == "candidates":
        fields = Candidate.__annotations__
        return pa.list_(pa.struct({field: find_type(field) for field in fields}))
    return BY_NAME.get(name, pa.string())


MENTION_SCHEMA = pa.schema(
    [(name, find_type(name)) for name in (*COLUMNS, *RUN_COLUMNS)]
)


def to_pairs(codes: Mapping[str, list[str]] | None) -> list[tuple[str, list[str]]]:
    """Return codes as Arrow expects a map."""
    return list((codes or {}).items())


def to_arrow(candidate: Candidate) -> dict[str, Any]:
    return {**candidate, "codes": to_pairs(candidate.get("codes"))}


def to_text(value: Any) -> str | None:
    """Return the value of a field as a text."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def to_array(field: pa.Field, values: Sequence[Any]) -> pa.Array:
    """Return the values of a column; those of kept fields as texts."""
    if field.name == "codes":
        values = [codes if codes is None else to_pairs(codes) for codes in values]
    elif field.name == "candidates":
        values = [items and [to_arrow(item) for item in items] for items in values]
    elif field.name not in MENTION_SCHEMA.names:
        values = [to_text(value) for value in values]
    return pa.array(values, field.type)


def make_batch(
    rows: Iterable[Sequence[Any]],
    columns: Sequence[str],
    schema: pa.Schema = MENTION_SCHEMA,
    *,
    kb_digest: str | None = None,
) -> pa.RecordBatch:
    """Return rows of mentions in Arrow; columns that they lack are null."""
    rows = list(rows)
    values = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    run = {"kb_digest": kb_digest, "package_version": __version__}
    arrays = []
    for field in schema:
        if field.name in values:
            arrays.append(to_array(field, values[field.name]))
        elif (value := run.get(field.name)) is not None:
            arrays.append(pa.repeat(pa.scalar(value, field.type), len(rows)))
        else:
            arrays.append(pa.nulls(len(rows), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
