"""Search structures: one file a backend, all behind one small protocol."""

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...errors import Errors, SapbertError

# A backend is a module with `DEFAULTS`, `build_index` and `load_index`.
BACKENDS: dict[str, str] = {
    "hnsw": "spacy_sapbert.kb.indexes.hnsw",
    "exact": "spacy_sapbert.kb.indexes.exact",
}


class Index(Protocol):
    """What every backend's `load_index` returns."""

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows.

        queries (np.ndarray): Unit vectors in float32. Shape: (n, width).
        k (int): How many; there may come fewer, where an index cannot reach them.
        RETURNS (tuple[np.ndarray, np.ndarray]): Rows, int64, and their cosines,
            float32, best first, equal ones by row. Shape: (n, up to k) each.
        """

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows.

        rows (np.ndarray): Numbers of rows. Shape: (n,).
        RETURNS (np.ndarray): float32. Shape: (n, width).
        """


def load_backend(backend: str) -> Any:
    """Import the module of a backend.

    backend (str): Its name.
    RETURNS (ModuleType): The module.
    RAISES (SapbertError): If there is no such backend.
    """
    if backend not in BACKENDS:
        raise SapbertError(Errors.E302.format(known=sorted(BACKENDS), backend=backend))
    return import_module(BACKENDS[backend])


def best_first(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort what a library returns, equal scores by row.

    rows (np.ndarray): Shape: (n, k).
    scores (np.ndarray): Shape: (n, k).
    RETURNS (tuple[np.ndarray, np.ndarray]): The same in order, int64 and float32.
    """
    order = np.lexsort((rows, -scores))
    return (
        np.take_along_axis(rows, order, 1).astype(np.int64),
        np.take_along_axis(scores, order, 1).astype(np.float32),
    )


def check_width(queries: np.ndarray, width: int) -> None:
    """Check the width of queries before they reach native code.

    queries (np.ndarray): Shape: (n, width).
    width (int): Of the index.
    RAISES (SapbertError): If they differ.
    """
    if queries.ndim != 2 or queries.shape[1] != width:
        raise SapbertError(Errors.E301.format(width=width, got=queries.shape[1:]))


def build_index(
    vectors: np.ndarray,
    folder: Path,
    *,
    backend: str,
    settings: dict[str, int],
    threads: int = 0,
    progress: bool = False,
) -> dict[str, int]:
    """Build an index and write its file.

    vectors (np.ndarray): Unit vectors in float32, may be a memory map.
        Shape: (rows, width).
    folder (Path): Where to write it.
    backend (str): Name of the backend.
    settings (dict[str, int]): Settings of the backend that differ from its defaults.
    threads (int): Threads, 0 = all. With one, equal vectors give equal bytes.
    progress (bool): Show a bar.
    RETURNS (dict[str, int]): All settings that the index was built with.
    RAISES (SapbertError): If the backend or a setting is unknown.
    """
    module = load_backend(backend)
    if unknown := sorted(settings.keys() - module.DEFAULTS.keys()):
        raise SapbertError(
            Errors.E314.format(
                backend=backend, unknown=unknown[0], known=sorted(module.DEFAULTS)
            )
        )
    complete = {**module.DEFAULTS, **settings}
    module.build_index(
        vectors, folder, settings=complete, threads=threads, progress=progress
    )
    return complete


def load_index(
    path: Path, *, backend: str, settings: dict[str, int], rows: int, width: int
) -> Index:
    """Open an index whose files have been checked.

    path (Path): The file.
    backend (str): Name of the backend.
    settings (dict[str, int]): What it was built with.
    rows (int): How many rows it holds.
    width (int): Of its vectors.
    RETURNS (Index): The index.
    """
    module = load_backend(backend)
    index: Index = module.load_index(path, settings=settings, rows=rows, width=width)
    return index


def index_file(backend: str) -> str:
    """Return the name of the file of a backend."""
    name: str = load_backend(backend).FILE
    return name


def check_settings(backend: str, settings: dict[str, int]) -> dict[str, int]:
    return {**load_backend(backend).DEFAULTS, **settings}
