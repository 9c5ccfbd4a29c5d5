"""What several tests of tables use."""

from pathlib import Path

import pytest

from spacy_sapbert.io.excel import text_of
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.mapping.tables import read_rows


@pytest.fixture(scope="module")
def kb(sample_kb) -> KnowledgeBase:
    return load_kb(sample_kb)


def read_dicts(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of any format."""
    header, *rows = ([*map(text_of, row)] for row in read_rows(path))
    return [dict(zip(header, row, strict=True)) for row in rows]
