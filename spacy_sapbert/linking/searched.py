"""What a search asks of a knowledge base."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from ..kb.cache import Remembered
from ..kb.layered_store import LayeredStore
from ..kb.layers import Admitted
from ..kb.store import Entry
from .filters import Filter
from .options import LinkOptions


class Searched(Protocol):
    """A knowledge base; see `contents.Contents` for what each of these does."""

    meta: dict[str, Any]
    store: LayeredStore
    found: Remembered[Any, Any]
    facts: Remembered[str, Any]

    @property
    def rows(self) -> int: ...

    @property
    def encoder(self) -> Any: ...

    def embed(self, pieces: Sequence[tuple[int, ...]]) -> np.ndarray: ...

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]: ...

    def vectors(self, rows: np.ndarray) -> np.ndarray: ...

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]: ...

    def admitted(self, wanted: Filter) -> Admitted: ...

    def fuse(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        rows: np.ndarray,
        scores: np.ndarray,
        admitted: Admitted | None,
        options: LinkOptions,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
