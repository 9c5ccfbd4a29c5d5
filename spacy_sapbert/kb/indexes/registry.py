"""Search structures: one file a backend, all behind one small protocol."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...errors import Errors, SapbertError, check_range

# A backend is a module with `FILE`, `DEFAULTS`, `RANGES`, `CHANGEABLE` (settings that
# need no new build), `build_index` and `load_index`.
EXACT_ROWS = 20_000  # fewer rows are searched exactly
UNIT_TOLERANCE = 1e-3  # of the squared length of a vector
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


def index_file(backend: str) -> str:
    """Return the name of the file of a backend.

    RAISES (SapbertError): If there is no such backend.
    """
    name: str = load_backend(backend).FILE
    return name


def complete_settings(backend: str, given: Mapping[str, int]) -> dict[str, int]:
    """Return all settings of a backend: those given, else the defaults.

    RAISES (SapbertError): See `check_settings`.
    """
    complete = {**load_backend(backend).DEFAULTS, **given}
    check_settings(backend, complete)
    return complete


def check_settings(backend: str, settings: Mapping[str, int]) -> None:
    """Check settings of a backend, e.g. those of meta.json, which has all of them.

    backend (str): Its name.
    settings (Mapping[str, int]): All of its settings.
    RAISES (SapbertError): If the backend is unknown, or a setting is unknown, missing
        or out of range.
    """
    module = load_backend(backend)
    known = sorted(module.DEFAULTS)
    if unknown := sorted(settings.keys() - module.DEFAULTS.keys()):
        raise SapbertError(
            Errors.E314.format(
                backend=backend, unknown=unknown[0], known=", ".join(known) or "none"
            )
        )
    if missing := sorted(module.DEFAULTS.keys() - settings.keys()):
        raise SapbertError(
            Errors.E344.format(backend=backend, missing=missing[0], known=known)
        )
    for name, value in settings.items():
        check_range(name, value, *module.RANGES[name])


def change_settings(
    backend: str, settings: Mapping[str, int], changes: Mapping[str, int]
) -> dict[str, int]:
    """Return the settings of an index with some changed.

    RAISES (SapbertError): If a changed one needs a new build; also see
        `check_settings`.
    """
    changed = {**settings, **changes}
    check_settings(backend, changed)
    known = sorted(load_backend(backend).CHANGEABLE)
    for name, value in changes.items():
        if name not in known and value != settings[name]:
            raise SapbertError(
                Errors.E356.format(backend=backend, name=name, known=known or "none")
            )
    return changed


def choose_backend(rows: int) -> str:
    """Return the backend for a number of rows.

    Up to `EXACT_ROWS` comparing all rows is about as fast as the graph.
    """
    return "exact" if rows <= EXACT_ROWS else "hnsw"


def find_bad_vector(vectors: np.ndarray) -> int | None:
    """Return the first row that is no finite unit vector, None if all are.

    vectors (np.ndarray): float32. Shape: (n, width).
    """
    squares = np.einsum("nd,nd->n", vectors, vectors)
    good = np.abs(squares - 1) < UNIT_TOLERANCE  # false for NaN
    return None if good.all() else int(np.argmin(good))


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
    RAISES (SapbertError): If the backend or a setting is unknown or out of range.
    """
    module = load_backend(backend)
    complete = complete_settings(backend, settings)
    module.build_index(
        vectors, folder, settings=complete, threads=threads, progress=progress
    )
    return complete


def load_index(
    path: Path, *, backend: str, settings: dict[str, int], rows: int, width: int
) -> Index:
    """Check the file of an index, and open it.

    The check does not trust the file: it also protects from one that was made to do
    harm.

    path (Path): The file; `index_file` returns its name.
    backend (str): Name of the backend.
    settings (dict[str, int]): All settings that it was built with.
    rows (int): Number of its rows.
    width (int): Width of its vectors.
    RETURNS (Index): The index.
    RAISES (SapbertError): If the backend or a setting is not valid, or the file is
        truncated or damaged.
    """
    module = load_backend(backend)
    check_settings(backend, settings)
    index: Index = module.load_index(path, settings=settings, rows=rows, width=width)
    return index
