"""What a search structure is: a backend with its settings, and the index it opens."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from ...errors import SapbertError, check_range
from .row_file import Vectors

COMPACT_SUFFIX = ".i16"


class Index(Protocol):
    """An opened index.

    Attributes:
        width: Columns of its vectors.
    """

    width: int

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows.

        Args:
            queries: Unit vectors in float32. Shape: (n, width).
            k: Number of rows; there may come fewer, where an index cannot reach them.

        Returns:
            Rows, int64, and their cosines, float32, best first, equal ones by row.
            Shape: (n, up to k) each.
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
    """How an index is built, whichever it is.

    Attributes:
        threads: 0 = all. With one, equal vectors give equal bytes.
        progress: Show a bar.
        work: A folder in which a backend may keep what a later run with the same
            vectors and settings continues with. Its files may be linked to the index.
    """

    threads: int = 0
    progress: bool = False
    work: Path | None = None


@dataclass(frozen=True)
class Backend:
    """A search structure; each backend is a subclass whose fields are its settings.

    Attributes:
        name: By which users choose it.
        library: The module that it imports; "" = none.
        package: What to install for this module.
    """

    name: ClassVar[str]
    library: ClassVar[str] = ""
    package: ClassVar[str] = ""

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


def best_first(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort what a library returns, equal scores by row. Shape: (n, k) each."""
    order = np.lexsort((rows, -scores))
    return (
        np.take_along_axis(rows, order, 1).astype(np.int64),
        np.take_along_axis(scores, order, 1).astype(np.float32),
    )


def check_queries(queries: np.ndarray, width: int) -> None:
    """Raise an error for a wrong width or NaN, before native code reads them."""
    if queries.ndim != 2 or queries.shape[1] != width:
        got = queries.shape[1:]
        raise SapbertError(
            "E301",
            f"Expected queries of width {width}, as the index has, but got {got}. "
            "Encode them with the encoder of the same knowledge base.",
        )
    if not np.isfinite(queries).all():
        raise SapbertError(
            "E392",
            "Expected finite values in the vectors to search for, but got NaN or "
            "infinity. Remove such vectors, or correct the encoder that made them.",
        )
