"""Tables that `map` wrote, in which a person has chosen the concepts of terms."""

from collections.abc import Iterator
from pathlib import Path

from ..mapping.run import read_reviewed
from .registry import GoldDocument, GoldSpan


def read_mapped(path: Path) -> Iterator[GoldDocument]:
    """Read a table of `map`; each term is a document. See `read_reviewed`."""
    for row, term, parts in read_reviewed(path):
        span = GoldSpan(0, len(term), "", term, parts, row)
        yield GoldDocument(f"{path.name}:{row}", term, [span])
