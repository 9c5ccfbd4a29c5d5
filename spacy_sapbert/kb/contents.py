"""What a knowledge base holds at one moment, and how that is searched."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
)

import numpy as np

from ..errors import Errors, SapbertError
from ..linking.filters import Filter
from ..linking.fusion import order_found, unite_searches
from ..linking.options import LinkOptions
from ..system.forks import ProcessLock
from .cache import Remembered
from .filtering import check_known
from .indexes.registry import Index
from .layered_store import LayeredStore
from .layers import Admitted, Layer, admit, search_layers
from .ngrams.index import FOLDER as NGRAMS_FOLDER
from .ngrams.index import NgramLayers, load_ngrams
from .overlay_files import open_overlay, read_removed
from .store import Entry, name_key

if TYPE_CHECKING:
    from ..encoder.name_encoder import NameModel, Wordpieces

FILTERS_KEPT = 16  # filters whose rows are remembered
MENTIONS_KEPT = 5_000  # mentions whose hits are remembered: some 5 KB each
CONCEPTS_KEPT = 20_000  # concepts whose types and codes are remembered: some 1 KB each


class Contents:
    """Concepts and index as one meta.json describes them; nothing here changes.

    A search asks one of these from its first step to its last, so that it never takes
    rows of before a change for rows of after it.

    folder (Path): Of the knowledge base, verified.
    meta (dict[str, Any]): Its meta.json.
    open_index (Callable[[], Index]): Gives the index of what was built.
    open_encoder (Callable[[], NameModel]): Gives the encoder.
    """

    def __init__(
        self,
        folder: Path,
        meta: dict[str, Any],
        *,
        open_index: Callable[[], Index],
        open_encoder: "Callable[[], NameModel]",
    ) -> None:
        self.meta = meta
        self.open_encoder = open_encoder
        rows = meta["counts"]["rows"]
        built = Layer(
            folder, open_index, first=0, rows=rows, removed=read_removed(folder, meta)
        )
        added = open_overlay(folder, meta, first=rows)
        self.layers = [built, *([added] if added else [])]
        self.store = LayeredStore(self.layers)
        self.lock = ProcessLock()
        self.loaded_ngrams: NgramLayers | None = None
        self.found: Remembered[Any, Any] = Remembered(MENTIONS_KEPT)
        self.facts: Remembered[str, Any] = Remembered(CONCEPTS_KEPT)
        self.filters: dict[Filter, Admitted] = {}

    @property
    def rows(self) -> int:
        """How many rows there are to search."""
        return sum(layer.rows for layer in self.layers)

    @property
    def encoder(self) -> "NameModel":
        """The encoder of the knowledge base."""
        return self.open_encoder()

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the nearest rows.

        vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
        k (int): How many rows.
        RETURNS (tuple[np.ndarray, np.ndarray]): Rows and cosines, the best first.
            Shape: (n, up to k) each.
        """
        return search_layers(self.layers, vectors, k)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return what the index holds.

        rows (np.ndarray): Numbers of rows. Shape: (n,).
        RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
        """
        rows = np.asarray(rows, dtype=np.int64)
        if len(self.layers) == 1:
            return self.layers[0].open_index().vectors(rows)
        found = np.empty((len(rows), self.meta["encoder"]["width"]), dtype=np.float32)
        for layer in self.layers:
            own = (rows >= layer.first) & (rows < layer.first + layer.rows)
            if own.any():
                found[own] = layer.open_index().vectors(rows[own] - layer.first)
        return found

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows; see `Store.entries`."""
        return self.store.entries(rows)

    def admitted(self, wanted: Filter) -> Admitted:
        """Find what a filter leaves; the last few are remembered.

        wanted (Filter): The filter.
        RETURNS (Admitted): What is left.
        RAISES (SapbertError): If no concept or name has such a type, source or
            language.
        """
        found = self.filters.get(wanted)
        if found is None:
            check_known([layer.store for layer in self.layers], wanted)
            found = admit(self.layers, wanted)
            with self.lock:
                while len(self.filters) >= FILTERS_KEPT:
                    self.filters.pop(next(iter(self.filters)))
                self.filters[wanted] = found
        return found

    def embed(self, pieces: Sequence["Wordpieces"]) -> np.ndarray:
        """Embed tokenised names; those that are rows of the index cost nothing.

        pieces (Sequence[Wordpieces]): From `tokenize_names`.
        RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
        """
        from ..encoder.name_encoder import encode_wordpieces

        distinct = {name_key(ids): ids for ids in pieces}
        rows = self.store.rows_of_keys(distinct)
        new = [key for key in distinct if key not in rows]
        place = {key: i for i, key in enumerate([*rows, *new])}
        known = self.vectors(np.fromiter(rows.values(), dtype=np.int64))
        computed = encode_wordpieces(self.encoder, [distinct[key] for key in new])
        vectors = np.concatenate([known.reshape(-1, computed.shape[1]), computed])
        return vectors[[place[name_key(ids)] for ids in pieces]]

    def fuse(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        rows: np.ndarray,
        scores: np.ndarray,
        admitted: Admitted | None,
        options: LinkOptions,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Search by the likeness of characters too; see `hybrid.unite_searches`.

        texts (Sequence[str]): Mentions.
        vectors (np.ndarray): Their unit vectors in float32. Shape: (n, width).
        rows (np.ndarray): Rows that were found by them. Shape: (n, m).
        scores (np.ndarray): Their cosines. Shape: (n, m).
        admitted (Admitted | None): What may be found; None = everything.
        options (LinkOptions): How the two are put together.
        RETURNS (tuple[np.ndarray, np.ndarray, np.ndarray]): Rows, cosines, and what to
            order them by, in any order; row −1 is none. Shape: (n, k) each.
        RAISES (SapbertError): If the knowledge base was built without.
        """
        mask = None
        if admitted is not None:
            mask = np.zeros(self.rows, dtype=bool)
            mask[admitted.rows] = True
        found = unite_searches(
            texts,
            vectors,
            (rows, scores),
            self,
            self.ngrams,
            k=rows.shape[1],
            allowed=mask,
        )
        return order_found(
            found, fusion=str(options.fusion), weight=options.ngram_weight
        )

    @property
    def ngrams(self) -> NgramLayers:
        """The character 3-grams of all names, mapped when first asked for."""
        if self.loaded_ngrams is None:
            if not self.meta.get("ngrams"):
                raise SapbertError(Errors.E340)
            self.loaded_ngrams = NgramLayers(
                [
                    (
                        layer.first,
                        load_ngrams(layer.folder / NGRAMS_FOLDER, rows=layer.rows),
                    )
                    for layer in self.layers
                ]
            )
        return self.loaded_ngrams
