"""Search structures: one module a backend, all behind one small protocol."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...errors import Errors, SapbertError, check_range
from .row_file import Vectors

# A backend is a module with `LIBRARY` and `PACKAGE` (what it imports, and what to
# install; "" = nothing), `DEFAULTS`, `RANGES`, `CHANGEABLE` (settings that need no new
# build), `list_files`, `build_index` and `load_index`.
EXACT_ROWS = 20_000  # fewer rows are searched exactly
BACKENDS: dict[str, str] = {
    "hnsw": "spacy_sapbert.kb.indexes.hnsw",
    "faiss": "spacy_sapbert.kb.indexes.faiss_graph",
    "exact": "spacy_sapbert.kb.indexes.exact",
}


class Index(Protocol):
    """What every backend's `load_index` returns."""

    width: int  # of its vectors

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


def import_library(name: str) -> Any:
    """Import the library of a backend.

    RAISES (SapbertError): If it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        backends = (load_backend(backend) for backend in BACKENDS)
        package = next(each.PACKAGE for each in backends if name == each.LIBRARY)
        usable = ", ".join(sorted(filter(is_usable, BACKENDS)))
        raise SapbertError(
            Errors.E390.format(library=name, package=package, usable=usable)
        ) from None


def check_library(backend: str) -> None:
    """Import the library of a backend.

    RAISES (SapbertError): If it is not installed.
    """
    if library := load_backend(backend).LIBRARY:
        import_library(library)


def is_usable(backend: str) -> bool:
    """Return whether the library of a backend is installed."""
    library = load_backend(backend).LIBRARY
    try:
        return not library or find_spec(library) is not None
    except ValueError:  # in `sys.modules`, and made unusable there
        return False


def index_files(backend: str, settings: Mapping[str, int]) -> list[str]:
    """Return the names of the files of an index.

    RAISES (SapbertError): If there is no such backend.
    """
    module = load_backend(backend)
    names: list[str] = module.list_files({**module.DEFAULTS, **settings})
    return names


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


def check_queries(queries: np.ndarray, width: int) -> None:
    """Check queries before they reach native code.

    queries (np.ndarray): Shape: (n, width).
    width (int): Of the index.
    RAISES (SapbertError): If they have another width or a value that is not finite.
    """
    if queries.ndim != 2 or queries.shape[1] != width:
        raise SapbertError(Errors.E301.format(width=width, got=queries.shape[1:]))
    if not np.isfinite(queries).all():
        raise SapbertError(Errors.E392)


def build_index(
    vectors: Vectors,
    folder: Path,
    *,
    backend: str,
    settings: dict[str, int],
    threads: int = 0,
    progress: bool = False,
    work: Path | None = None,
) -> dict[str, int]:
    """Build an index and write its files.

    vectors (Vectors): Unit vectors in float32: an array, or a file of rows.
        Shape: (rows, width).
    folder (Path): Where to write them.
    backend (str): Name of the backend.
    settings (dict[str, int]): Settings of the backend that differ from its defaults.
    threads (int): Threads, 0 = all. With one, equal vectors give equal bytes.
    progress (bool): Show a bar.
    work (Path | None): A folder in which a backend may keep what a later call with the
        same vectors and settings continues with. Its files may be linked to `folder`.
    RETURNS (dict[str, int]): All settings that the index was built with.
    RAISES (SapbertError): If the backend or a setting is unknown or out of range.
    """
    module = load_backend(backend)
    complete = complete_settings(backend, settings)
    module.build_index(
        vectors,
        folder,
        settings=complete,
        threads=threads,
        progress=progress,
        work=work,
    )
    return complete


def load_index(
    paths: Mapping[str, Path],
    *,
    backend: str,
    settings: dict[str, int],
    rows: int,
    width: int,
) -> Index:
    """Check the files of an index, and open them.

    The check does not trust the file: it also protects from one that was made to do
    harm.

    paths (Mapping[str, Path]): The files by name; `index_files` returns the names.
    backend (str): Name of the backend.
    settings (dict[str, int]): All settings that it was built with.
    rows (int): Number of its rows.
    width (int): Width of its vectors.
    RETURNS (Index): The index.
    RAISES (SapbertError): If the backend or a setting is not valid, its
        library is not installed, or a file is truncated or damaged.
    """
    module = load_backend(backend)
    check_settings(backend, settings)
    index: Index = module.load_index(paths, settings=settings, rows=rows, width=width)
    return index
