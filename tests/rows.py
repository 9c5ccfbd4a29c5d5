"""Reads tables that the commands write."""

from pathlib import Path

from spacy_sapbert.io.excel import text_of
from spacy_sapbert.mapping.tables import read_rows


def read_dicts(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of any format."""
    header, *rows = ([*map(text_of, row)] for row in read_rows(path))
    return [dict(zip(header, row, strict=True)) for row in rows]
