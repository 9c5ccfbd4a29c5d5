"""Reads tables that the commands write."""

from pathlib import Path

from spacy_sapbert.io.tables.files import read_rows
from spacy_sapbert.io.tables.spreadsheets import text_of


def read_dicts(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of any format."""
    header, *rows = ([*map(text_of, row)] for row in read_rows(path))
    return [dict(zip(header, row, strict=True)) for row in rows]
