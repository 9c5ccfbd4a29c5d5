"""CSV: one row per mention, for spreadsheets and programs; RFC 4180, UTF-8."""

import json
from collections.abc import Iterable
from typing import IO, Any

from ..io.tables.files import CSV, write_text
from .entities import LinkedDoc, choose_columns, mention_rows


def to_cell(value: Any) -> Any:
    """Return the cell of a value: JSON, but for texts and numbers."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return str(value) if isinstance(value, bool) else value


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    keep: Iterable[str] = (),
) -> None:
    """Write a row for each mention or error, with the fields to keep as columns."""
    columns = [*choose_columns(include_text), "error", *keep]
    rows = ([*map(to_cell, row)] for row in mention_rows(docs, columns))
    write_text(file, [columns], CSV)
    write_text(file, rows, CSV)
