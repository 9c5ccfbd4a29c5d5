"""The columns of tables: texts and ids of any type that Arrow has, and maps."""

import pyarrow as pa

from ..errors import Errors, SapbertError
from ..io.tables import list_columns


def find_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column of a table; none, or several of that name, are an error."""
    if table.column_names.count(name) != 1:
        columns = list_columns(sorted(table.column_names))
        raise SapbertError(Errors.E370.format(name=name, found=columns))
    return table.column(name)


def is_text(type: pa.DataType) -> bool:
    """Return whether a column of a type has texts, or only nulls."""
    return (
        pa.types.is_string(type)
        or pa.types.is_large_string(type)
        or pa.types.is_string_view(type)
        or pa.types.is_null(type)
    )


def read_texts(table: pa.Table, name: str, *, numbers: bool = False) -> pa.Array:
    """Return a column of texts; with `numbers` also one of whole numbers, as texts."""
    column = find_column(table, name)
    type = column.type
    if pa.types.is_dictionary(type):
        type = type.value_type
    if not (is_text(type) or numbers and pa.types.is_integer(type)):
        expected = "texts or whole numbers" if numbers else "texts"
        raise SapbertError(
            Errors.E371.format(name=name, expected=expected, got=column.type)
        )
    # `string` has room for 2 GB, which a dictionary may unpack to
    return column.cast(type).cast(pa.large_string()).combine_chunks()


def take_rows(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Return some rows of a column, which keep its type."""
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:  # e.g. of string_view
        is_binary = pa.types.is_binary_view(column.type)
        taken = column.cast(pa.large_binary() if is_binary else pa.large_string())
        return taken.take(rows).cast(column.type)


def decode_value(value: pa.Scalar) -> str | None:
    """Return a text of Arrow; None if it is null or not UTF-8."""
    try:
        text: str | None = value.as_py()
    except UnicodeDecodeError:
        return None
    return text


def without_maps(type: pa.DataType) -> pa.DataType:
    """Return a type with lists of `key` and `value` in place of maps."""
    if pa.types.is_map(type):
        pairs = {"key": type.key_type, "value": without_maps(type.item_type)}
        return pa.list_(pa.struct(pairs))
    if pa.types.is_list(type):
        return pa.list_(without_maps(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([(f.name, without_maps(f.type)) for f in type])
    return type
