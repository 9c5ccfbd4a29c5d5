"""Reads vocabularies whole, with the report or to the error."""

from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.reader_table import read_vocabulary
from spacy_sapbert.vocabularies.report import Report


def read(
    path: Path, format: str | None = None, **options: Any
) -> tuple[list[Concept], Report]:
    report = Report()
    return list(read_vocabulary(path, format, report=report, **options)), report


def fail(path: Path, format: str | None = None, **options: Any) -> str:
    """Return the text of the error that reading ends with."""
    with pytest.raises(SapbertError) as caught:
        read(path, format, **options)
    return str(caught.value)
