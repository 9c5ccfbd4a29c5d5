"""Layers of a knowledge base: what was built, and what was added to it since."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import (
    NamedTuple,
)

import numpy as np

from ..linking.filters import Filter
from ..vocabularies.concepts import Concept, change_names
from .filtering import Allowed, apply_filter
from .indexes.registry import Index, best_first
from .store import Entry, Store

EXACT_BLOCK = 16_384  # rows compared at once where the index cannot be asked


class Layer:
    """Concepts and the index of their names.

    folder (Path): With its concepts.db.
    open_index (Callable[[], Index]): Gives the index, loaded when first asked for.
    first (int): The number that its row 0 has in the knowledge base.
    rows (int): How many it has.
    removed (dict[str, set[str]]): Names that are gone, by concept; an empty set means
        the whole concept.
    """

    def __init__(
        self,
        folder: Path,
        open_index: Callable[[], Index],
        *,
        first: int,
        rows: int,
        removed: dict[str, set[str]],
    ) -> None:
        self.folder = folder
        self.store = Store(folder)
        self.open_index = open_index
        self.first = first
        self.rows = rows
        self.removed = removed

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows, without what is removed.

        rows (Iterable[int]): Rows of the knowledge base; those of others are passed
            over.
        RETURNS (dict[int, list[Entry]]): By row of the knowledge base.
        """
        if not self.first and not self.removed:
            return self.store.entries(row for row in rows if row < self.rows)
        own = [int(row) - self.first for row in rows if self.has(row)]
        found: dict[int, list[Entry]] = {}
        for row, entries in self.store.entries(own).items():
            kept = [
                self.rename(entry)._replace(row=row + self.first)
                for entry in entries
                if not self.is_removed(entry.cui, entry.alias)
            ]
            if kept:
                found[row + self.first] = kept
        return found

    def rename(self, entry: Entry) -> Entry:
        """Return an alias the name that its concept has since its own was removed."""
        if entry.name not in self.removed.get(entry.cui, ()):
            return entry
        concept = self.concept(entry.cui)
        name = concept.name if concept else entry.name
        return entry._replace(name=name, preferred=entry.alias == name)

    def spellings(self, forms: Iterable[str]) -> dict[str, list[str]]:
        """Find which forms are names, without what is removed; see `Store`."""
        found = self.store.spellings(forms)
        if not self.removed:
            return found
        left: dict[str, list[str]] = {}
        for form, aliases in found.items():
            bearers = self.store.bearers(form)
            kept = {a for cui, a in bearers if not self.is_removed(cui, a)}
            if kept:
                left[form] = [alias for alias in aliases if alias in kept]
        return left

    def concept(self, cui: str) -> Concept | None:
        """Look a concept up, without what is removed; see `Store.concept`."""
        concept = self.store.concept(cui)
        if concept is None or not (gone := self.removed.get(concept.cui)):
            return None if concept and concept.cui in self.removed else concept
        return without_aliases(concept, gone)

    def cuis(self) -> Iterator[str]:
        """Return the ids of all concepts, in the order in which they were added."""
        return (cui for cui in self.store.cuis() if self.is_left(cui))

    def cuis_of_code(self, source: str, code: str) -> list[str]:
        """Find the concepts of a code, without what is removed."""
        found = self.store.cuis_of_code(source, code)
        return [cui for cui in found if self.is_left(cui)]

    def children(self, cui: str) -> list[str]:
        """Return the ids one step down of a concept, without what is removed."""
        return [child for child in self.store.children(cui) if self.is_left(child)]

    def is_left(self, cui: str) -> bool:
        """Return whether a concept of this layer has a name that is not removed."""
        return cui not in self.removed or self.concept(cui) is not None

    def has(self, row: int) -> bool:
        """Return whether a row of the knowledge base is one of this layer."""
        return self.first <= row < self.first + self.rows

    def is_removed(self, cui: str, alias: str) -> bool:
        """Return whether a name is gone."""
        gone = self.removed.get(cui)
        return gone is not None and (not gone or alias in gone)

    def search(self, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Index.search`; rows are those of the knowledge base."""
        rows, scores = self.open_index().search(vectors, k)
        return rows + self.first, scores


def without_aliases(concept: Concept, gone: set[str]) -> Concept | None:
    """Take names away from a concept.

    concept (Concept): The concept.
    gone (set[str]): The names.
    RETURNS (Concept | None): What is left, the places of languages and sources
        moved; None if no name is.
    """
    left = replace(concept)
    change_names(left, ["" if name in gone else name for name in concept.aliases])
    return left if left.aliases else None


class Admitted(NamedTuple):
    """What a filter leaves of all layers.

    rows (np.ndarray): Rows with a name that is left, ascending. Shape: (n,).
    parts (list[tuple[Layer, Allowed]]): Of each layer.
    """

    rows: np.ndarray
    parts: list[tuple[Layer, Allowed]]

    def keep(self, entries: dict[int, list[Entry]]) -> dict[int, list[Entry]]:
        """Leave out the aliases that the filter does not allow.

        entries (dict[int, list[Entry]]): By row.
        RETURNS (dict[int, list[Entry]]): The others.
        """
        kept: dict[int, list[Entry]] = {}
        for row, found in entries.items():
            allowed = next(part for layer, part in self.parts if layer.has(row))
            if left := [entry for entry in found if allowed.admits(entry)]:
                kept[row] = left
        return kept


def current_ids(layers: Iterable[Layer], cuis: Sequence[str]) -> tuple[str, ...]:
    """Add to ids those of the concepts that they were retired for, in any layer."""
    now = [layer.store.current_cuis(cuis).values() for layer in layers]
    return (*cuis, *(cui for found in now for cui in found))


def admit(layers: Iterable[Layer], wanted: Filter) -> Admitted:
    """Find what a filter leaves of all layers.

    layers (Iterable[Layer]): The layers, in the order of their rows.
    wanted (Filter): The filter.
    RETURNS (Admitted): What is left.
    """
    layers = list(layers)
    wanted = replace(
        wanted,
        allow=current_ids(layers, wanted.allow),
        deny=current_ids(layers, wanted.deny),
    )
    # What was added to a concept since counts for the names that it had before; what
    # was added knows all types of its concept, and so decides.
    decided: dict[str, bool] = {}
    parts: list[tuple[Layer, Allowed]] = []
    for layer in reversed(layers):
        allowed = apply_filter(layer.store, wanted, decided)
        parts.insert(0, (layer, allowed))
        if layer is not layers[0]:
            own = zip(layer.store.cuis(), allowed.concepts.tolist(), strict=True)
            decided.update(own)
    rows = np.concatenate([allowed.rows + layer.first for layer, allowed in parts])
    return Admitted(rows, parts)


def search_layers(
    layers: Iterable[Layer], vectors: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows of all layers; see `Index.search`."""
    found = [layer.search(vectors, k) for layer in layers]
    if len(found) == 1:
        return found[0]
    rows, scores = best_first(
        np.concatenate([rows for rows, _ in found], axis=1),
        np.concatenate([scores for _, scores in found], axis=1),
    )
    return rows[:, :k], scores[:, :k]


def search_rows(
    read_vectors: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    vectors: np.ndarray,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compare vectors with some rows only, all of them.

    read_vectors (Callable[[np.ndarray], np.ndarray]): Rows → their vectors.
    rows (np.ndarray): The rows, ascending. Shape: (m,).
    vectors (np.ndarray): Unit vectors in float32. Shape: (n, width).
    k (int): How many.
    RETURNS (tuple[np.ndarray, np.ndarray]): See `Index.search`. Shape: (n, up to k).
    """
    from .indexes.exact import search_blocks

    parts = (rows[at : at + EXACT_BLOCK] for at in range(0, len(rows), EXACT_BLOCK))
    return search_blocks(((part, read_vectors(part)) for part in parts), vectors, k)
