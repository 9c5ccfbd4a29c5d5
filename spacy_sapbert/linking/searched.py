"""What a search asks of a knowledge base."""

from typing import Any, Dict, Iterable, List, Optional, Protocol, Sequence, Tuple

import numpy as np

from ..kb.cache import Remembered
from ..kb.layered_store import LayeredStore
from ..kb.layers import Admitted
from ..kb.store import Entry
from .filters import Filter
from .options import LinkOptions


class Searched(Protocol):
    """A knowledge base; see `contents.Contents` for what each of these does."""

    meta: Dict[str, Any]
    store: LayeredStore
    found: Remembered[Any, Any]
    facts: Remembered[str, Any]

    @property
    def rows(self) -> int: ...

    @property
    def encoder(self) -> Any: ...

    def embed(self, pieces: Sequence[Tuple[int, ...]]) -> np.ndarray: ...

    def search(self, vectors: np.ndarray, k: int) -> Tuple[np.ndarray, np.ndarray]: ...

    def vectors(self, rows: np.ndarray) -> np.ndarray: ...

    def entries(self, rows: Iterable[int]) -> Dict[int, List[Entry]]: ...

    def admitted(self, wanted: Filter) -> Admitted: ...

    def fuse(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        rows: np.ndarray,
        scores: np.ndarray,
        admitted: Optional[Admitted],
        options: LinkOptions,
    ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]: ...
