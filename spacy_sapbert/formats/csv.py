"""CSV: one row per mention, for spreadsheets and programs; RFC 4180, UTF-8."""

import csv
import json
from collections.abc import Iterable
from io import TextIOWrapper
from typing import IO, Any

from ..io.tables.formulas import defuse
from .entities import LinkedDoc, choose_columns, mention_rows


def to_cell(value: Any) -> Any:
    """Return the cell of a value: lists and dicts as JSON, other values as they are."""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return defuse(value) if isinstance(value, str) else value


def write_docs(
    docs: Iterable[LinkedDoc],
    file: IO[bytes],
    *,
    include_text: bool = True,
    keep: Iterable[str] = (),
) -> None:
    """Write a row for each mention or error, with the fields to keep as columns."""
    columns = [*choose_columns(include_text), "error", *keep]
    text = TextIOWrapper(file, "utf8", newline="", write_through=True)
    try:
        writer = csv.writer(text)  # ends lines with CR LF
        writer.writerow(map(to_cell, columns))
        for row in mention_rows(docs, columns):
            writer.writerow(map(to_cell, row))
    finally:
        text.detach()  # else the file would be closed with it
