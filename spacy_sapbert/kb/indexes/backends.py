"""What a backend of indexes is, which there are, and which one is chosen."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from ...errors import SapbertError, check_range
from ...io.plugins import is_installed, load_object, load_plugins, require
from .row_file import COMPACT_SUFFIX, Vectors

BACKENDS = {"hnsw": "hnsw:Hnsw", "faiss": "faiss_graph:Faiss", "exact": "exact:Exact"}
PLUGINS = "spacy_sapbert_backends"  # entry points of other packages: each a `Backend`
EXACT_ROWS = 20_000  # fewer rows are searched exactly
# Of more, the graph of hnsw would need gigabytes: some 800 bytes a row.
HNSW_ROWS, HNSW_BYTES = 3_000_000, 800


class Index(Protocol):
    """An opened index of vectors with `width` columns."""

    width: int

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows of unit vectors in float32. Shape: (n, width).

        Returns rows, int64, and their cosines, float32, best first, equal ones by row;
        fewer than k where an index cannot reach them. Shape: (n, up to k) each.
        """

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some rows, float32. Shape: (n,) → (n, width)."""


def setting(default: int, low: int, high: int, *, changeable: bool = False) -> Any:
    """Declare a setting of a backend: a field of its class.

    Its values are from `low` to `high`; a changeable one needs no new build.
    """
    metadata = {"range": (low, high), "changeable": changeable}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class BuildRun:
    """How an index is built, whichever it is."""

    threads: int = 0  # 0 = all; with one, equal vectors give equal bytes
    progress: bool = False


@dataclass(frozen=True)
class Backend:
    """A search structure; each backend is a subclass whose fields are its settings.

    Attributes:
        name: By which users choose it.
        library: The module that it imports; "" = none.
        package: What to install for this module.
        loads_without: Whether `load` has another way where the module is missing.
    """

    name: ClassVar[str]
    library: ClassVar[str] = ""
    package: ClassVar[str] = ""
    loads_without: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for item in fields(self):
            check_range(item.name, getattr(self, item.name), *item.metadata["range"])

    @property
    def settings(self) -> dict[str, int]:
        """All settings by name."""
        return asdict(self)

    @property
    def files(self) -> list[str]:
        """The names of the files of an index."""
        raise NotImplementedError

    @property
    def stores_16_bits(self) -> bool:
        """Whether an index has the full vectors with 16 bits a value."""
        return any(name.endswith(COMPACT_SUFFIX) for name in self.files)

    def build(self, vectors: Vectors, folder: Path, run: BuildRun) -> None:
        """Build an index of unit vectors and write its files. Shape: (rows, width)."""
        raise NotImplementedError

    def load(self, paths: Mapping[str, Path], *, rows: int, width: int) -> Index:
        """Check the files of an index, `paths` by the names in `files`, and open them.

        Whatever is in them, native code reads nothing outside of its memory afterwards.
        """
        raise NotImplementedError


def list_backends() -> dict[str, type[Backend]]:
    """Return the backends by name, with those of other packages."""
    ours = {name: load_object(at, __package__) for name, at in BACKENDS.items()}
    return {**ours, **load_plugins(PLUGINS, Backend, (*ours,), subclasses=True)}


def make_backend(name: str, settings: Mapping[str, int] | None = None) -> Backend:
    """Return a backend with some settings; the others have their defaults."""
    if name in BACKENDS:
        kind = load_object(BACKENDS[name], __package__)
    elif name in (backends := list_backends()):
        kind = backends[name]
    else:
        raise SapbertError(
            "E331",
            f"Expected the backend to be one of {sorted(backends)}, but got {name!r}. "
            "Correct `--backend`, or update spacy-sapbert if a newer one made the "
            "knowledge base.",
        )
    known = sorted(item.name for item in fields(kind))
    given = settings or {}
    if unknown := sorted(given.keys() - {*known}):
        raise SapbertError(
            "E331",
            f"Expected settings that the index {name} has "
            f"({', '.join(known) or 'none'}), but got {unknown[0]!r}. Correct it, or "
            "leave it out.",
        )
    backend: Backend = kind(**given)
    return backend


def is_usable(name: str) -> bool:
    return is_installed(make_backend(name).library)


def check_library(backend: Backend) -> None:
    if backend.library:
        require(backend.library, backend.package)


def choose_index(rows: int) -> Backend:
    """Choose the index for a number of rows, of those that are installed.

    Up to `EXACT_ROWS` comparing all rows is about as fast as a graph. Up to `HNSW_ROWS`
    hnsw fits into the memory of most machines. Above, faiss has a byte a value.
    """
    if rows <= EXACT_ROWS:
        return make_backend("exact")
    graphs = ("hnsw", "faiss") if rows <= HNSW_ROWS else ("faiss", "hnsw")
    name = next(filter(is_usable, graphs), "exact")
    if rows > HNSW_ROWS and name == "hnsw":
        size = rows * HNSW_BYTES
        warnings.warn(
            f"[W558] Expected faiss for the index of {rows:,} names, but it is not "
            f"installed. The index is hnsw, which needs {size / 1e9:.0f} GB of memory, "
            "three times as much. For faiss, stop, `pip install faiss-cpu` and build "
            "again.",
            UserWarning,
            stacklevel=2,
        )
    return make_backend(name)


def name_choice(index: Backend, rows: int) -> str:
    """Return the name of a chosen index, and how to get hnsw if hnswlib is missing."""
    if rows <= EXACT_ROWS or index.name == "hnsw" or is_usable("hnsw"):
        return index.name
    return (
        f"{index.name}, since hnswlib is not installed; for hnsw, `pip install "
        "hnswlib`, which needs a C++ compiler, and build again"
    )


def index_files(backend: str, settings: Mapping[str, int]) -> list[str]:
    return make_backend(backend, settings).files


def build_index(
    vectors: Vectors,
    folder: Path,
    *,
    backend: str,
    settings: Mapping[str, int],
    **options: Any,
) -> dict[str, int]:
    """Build an index, and return all its settings; the options are of `BuildRun`."""
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
    chosen = make_backend(backend, settings)
    if not chosen.loads_without:
        check_library(chosen)
    return chosen.load(paths, rows=rows, width=width)


def best_first(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort what a library returns, equal scores by row. Shape: (n, k) each."""
    order = np.lexsort((rows, -scores))
    order += np.arange(0, rows.size, max(1, rows.shape[1]))[:, None]
    return (
        rows.take(order).astype(np.int64, copy=False),
        scores.take(order).astype(np.float32, copy=False),
    )


def check_queries(queries: np.ndarray, width: int) -> None:
    """Raise an error for a wrong width or NaN, before native code reads them."""
    finite = np.isfinite(queries).all()
    if queries.ndim != 2 or queries.shape[1] != width or not finite:
        got = "NaN or infinity" if not finite else f"shape {queries.shape}"
        raise SapbertError(
            "E301",
            f"Expected finite queries of width {width}, as the index has, but got "
            f"{got}. Encode them with the encoder of the same knowledge base.",
        )
