"""The bytes of a folder, and indexes of random unit vectors."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spacy_sapbert.kb.indexes.backends import (
    Index,
    build_index,
    load_index,
    make_backend,
)


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[Path, bytes]]:
    """The bytes of every file of a folder, but the lock of writers."""

    def read(folder: Path) -> dict[Path, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file())
        names = (path for path in files if path.name != ".lock")
        return {path.relative_to(folder): path.read_bytes() for path in names}

    return read


MakeIndex = Callable[..., Index]


def unit_rows(rows: int, width: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(rows, width))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


@pytest.fixture(scope="session", name="unit_rows")
def make_unit_rows() -> Callable[[int, int, int], np.ndarray]:
    return unit_rows


@pytest.fixture(scope="session")
def open_index() -> MakeIndex:
    """Opens the index of a folder; its settings are those given, else the defaults."""

    def load(folder: Path, backend: str, rows: int, width: int, **given: int) -> Index:
        settings = make_backend(backend, given).settings
        paths = {name: folder / name for name in make_backend(backend, given).files}
        return load_index(
            paths, backend=backend, settings=settings, rows=rows, width=width
        )

    return load


@pytest.fixture(scope="session")
def make_index(open_index) -> MakeIndex:
    """Builds an index of vectors in a folder, and opens it."""

    def make(
        folder: Path,
        backend: str,
        vectors: np.ndarray,
        *,
        threads: int = 1,
        **given: int,
    ) -> Index:
        if library := make_backend(backend).library:
            pytest.importorskip(library)
        folder.mkdir(exist_ok=True)
        build_index(vectors, folder, backend=backend, settings=given, threads=threads)
        return open_index(folder, backend, *vectors.shape, **given)

    return make
