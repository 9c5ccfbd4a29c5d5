"""The backends: one class each, all with the protocol of `Backend`."""

import warnings
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import SapbertError
from ...io.plugins import load_plugins
from .backend import Backend, BuildRun, Index
from .exact import EXACT_ROWS, Exact
from .faiss_graph import Faiss
from .hnsw import Hnsw
from .row_file import Vectors

BACKENDS: dict[str, type[Backend]] = {kind.name: kind for kind in (Hnsw, Faiss, Exact)}
PLUGINS = "spacy_sapbert_backends"  # entry points of other packages: each a `Backend`
# What hnsw may have in memory by default: 3 million rows of 384 columns. A row needs
# its vector and some 144 bytes of the graph.
HNSW_BYTES = 5_040_000_000
GRAPH_BYTES = 144


def list_backends() -> dict[str, type[Backend]]:
    """Return the backends by name, with those of other packages."""
    others = load_plugins(PLUGINS, Backend, (*BACKENDS,), subclasses=True)
    return {**BACKENDS, **others}


def make_backend(name: str, settings: Mapping[str, int] | None = None) -> Backend:
    """Return a backend with some settings; the others have their defaults."""
    backends = BACKENDS if name in BACKENDS else list_backends()
    if name not in backends:
        raise SapbertError(
            "E302",
            f"Expected the backend to be one of {sorted(backends)}, but got {name!r}. "
            "Correct `--backend`, or update spacy-sapbert if a newer one made the "
            "knowledge base.",
        )
    known = sorted(item.name for item in fields(backends[name]))
    given = settings or {}
    if unknown := sorted(given.keys() - {*known}):
        raise SapbertError(
            "E314",
            f"Expected settings that the index {name} has "
            f"({', '.join(known) or 'none'}), but got {unknown[0]!r}. Correct it, or "
            "leave it out.",
        )
    return backends[name](**given)


def is_usable(name: str) -> bool:
    """Return whether the library of a backend is installed."""
    library = list_backends()[name].library
    try:
        return not library or find_spec(library) is not None
    # in `sys.modules`, and made unusable there; or inside of a package that is missing
    except (ImportError, ValueError):
        return False


def check_library(backend: Backend) -> None:
    """Raise an error if the library of a backend is not installed."""
    try:
        if backend.library:
            import_module(backend.library)
    except ImportError:
        usable = ", ".join(sorted(filter(is_usable, list_backends())))
        raise SapbertError(
            "E390",
            f"Expected the library {backend.library}, which searches this index, but "
            f"it is not installed. Run `pip install {backend.package}`, or build the "
            f"knowledge base again with `--backend` one of {usable}.",
        ) from None


def choose_index(rows: int, width: int) -> Backend:
    """Choose the index for a number of rows and columns.

    Up to `EXACT_ROWS` comparing all rows is about as fast as a graph. Up to
    `HNSW_BYTES` the graph of hnsw, which has the full vectors, fits into the memory of
    most machines. Above, faiss has a byte a value. If a library is not installed, the
    other one is used.
    """
    if rows <= EXACT_ROWS:
        return Exact()
    size = rows * (4 * width + GRAPH_BYTES)
    graphs = ("hnsw", "faiss") if size <= HNSW_BYTES else ("faiss", "hnsw")
    name = next(filter(is_usable, graphs), "exact")
    if size > HNSW_BYTES and name == "hnsw":
        warnings.warn(
            f"[W558] Expected faiss for the index of {rows:,} names, but it is not "
            f"installed. The index is hnsw, which needs {size / 1e9:.0f} GB of memory, "
            "six times as much. For faiss, stop, `pip install faiss-cpu` and build "
            "again.",
            UserWarning,
            stacklevel=2,
        )
    return make_backend(name)


def index_files(backend: str, settings: Mapping[str, int]) -> list[str]:
    return make_backend(backend, settings).files


def check_settings(backend: str, settings: Mapping[str, int]) -> None:
    """Check the settings of meta.json, which has all of them."""
    known = make_backend(backend).settings
    if known.keys() != settings.keys():
        raise SapbertError(
            "E344",
            f"Expected the settings {sorted(known)} of the backend {backend}, but got "
            f"{sorted(settings)}. Copy or build the knowledge base again.",
        )
    make_backend(backend, settings)


def change_settings(
    backend: str, settings: Mapping[str, int], changes: Mapping[str, int]
) -> dict[str, int]:
    """Return the settings of an index, some changed that need no new build."""
    changed = make_backend(backend, {**settings, **changes})
    known = sorted(i.name for i in fields(changed) if i.metadata["changeable"])
    for name, value in changes.items():
        if name not in known and value != settings[name]:
            raise SapbertError(
                "E356",
                f"Expected a setting of the index {backend} that can change without a "
                f"new build ({known or 'none'}), but got {name}. Build the knowledge "
                f"base again with `--setting {name}=…`.",
            )
    return changed.settings


def build_index(
    vectors: Vectors,
    folder: Path,
    *,
    backend: str,
    settings: Mapping[str, int],
    **options: Any,
) -> dict[str, int]:
    """Build an index, and return all its settings.

    `settings` are those that differ from the defaults; for the other options see
    `BuildRun`.
    """
    chosen = make_backend(backend, settings)
    check_library(chosen)
    chosen.build(vectors, folder, BuildRun(**options))
    return chosen.settings


def load_index(
    paths: Mapping[str, Path],
    *,
    backend: str,
    settings: Mapping[str, int],
    rows: int,
    width: int,
) -> Index:
    """Check the files of an index, and open them; see `Backend.load`."""
    chosen = make_backend(backend, settings)
    check_library(chosen)
    return chosen.load(paths, rows=rows, width=width)
