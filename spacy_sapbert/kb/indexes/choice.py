"""Chooses the index of a knowledge base by its number of rows."""

import warnings
from typing import NamedTuple

from ...errors import Warnings
from .registry import EXACT_ROWS, complete_settings, index_files, is_usable

HNSW_ROWS = 3_000_000  # more need some 6 GB of memory and more, at width 384
COMPACT_SUFFIX = ".i16"


class Choice(NamedTuple):
    """A backend, and the settings that differ from its defaults."""

    backend: str
    settings: dict[str, int]


def choose_index(rows: int) -> Choice:
    """Choose the index for a number of rows.

    Up to `EXACT_ROWS` comparing all rows is about as fast as a graph. Up to `HNSW_ROWS`
    the graph of hnsw, which has the full vectors, fits into the memory of most
    machines. For more rows faiss has a byte a value. If a library is not installed,
    the other one is used: hnsw then with shorter vectors, and a warning.
    """
    if rows <= EXACT_ROWS:
        return Choice("exact", {})
    if rows > HNSW_ROWS and not is_usable("faiss") and is_usable("hnsw"):
        warnings.warn(Warnings.W558.format(rows=rows), UserWarning, stacklevel=2)
        return Choice("hnsw", {"pca": 128})
    graphs = ("hnsw", "faiss") if rows <= HNSW_ROWS else ("faiss",)
    return Choice(next(filter(is_usable, graphs), "exact"), {})


def uses_compact_rows(choice: Choice) -> bool:
    """Return whether an index stores the full vectors with 16 bits a value."""
    files = index_files(choice.backend, complete_settings(*choice))
    return any(name.endswith(COMPACT_SUFFIX) for name in files)
