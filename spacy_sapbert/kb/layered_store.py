"""The concepts of all layers of a knowledge base, asked as one concepts.db."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..vocabularies.concepts import Concept
from ..vocabularies.merge import unite_concepts
from .layers import Layer
from .store import Entry, Store

Value = TypeVar("Value")


def unite_lists(first: list[str], second: list[str]) -> list[str]:
    """Put two lists together, sorted."""
    return sorted({*first, *second})


def unite_codes(
    first: dict[str, list[str]], second: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Put the codes of two layers together, by source."""
    return {
        source: unite_lists(first.get(source, []), second.get(source, []))
        for source in unite_lists([*first], [*second])
    }


class LayeredStore:
    """What was built and what was added since; see `store.Store`.

    layers (Sequence[Layer]): In the order of their rows.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers
        self.name_sources: list[dict[int, list[str]]] = []

    def entries(self, rows: Iterable[int]) -> dict[int, list[Entry]]:
        """Return every alias of every concept on some rows; see `Store.entries`."""
        rows = list(rows)
        return {
            row: entries
            for layer in self.layers
            for row, entries in layer.entries(rows).items()
        }

    def entries_of(self, cui: str) -> list[Entry]:
        """Return the names of a concept that are rows of the index.

        cui (str): Id of the concept.
        RETURNS (list[Entry]): Without those that were removed.
        """
        rows = [
            row + layer.first
            for layer in self.layers
            for row in layer.store.rows_of(cui)
        ]
        return [
            entry
            for entries in self.entries(rows).values()
            for entry in entries
            if entry.cui == cui
        ]

    def rows_of_keys(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """Find which tokenised names are rows.

        keys (Iterable[bytes]): From `name_key`.
        RETURNS (dict[bytes, int]): Those that are.
        """
        keys = list(keys)
        found: dict[bytes, int] = {}
        for layer in reversed(self.layers):
            for key, row in layer.store.rows_of_keys(keys).items():
                found[key] = row + layer.first
        return found

    def spellings(self, forms: Iterable[str]) -> dict[str, list[str]]:
        """Find which normalised forms are names, and how these are written.

        forms (Iterable[str]): From `forms.name_form`.
        RETURNS (dict[str, list[str]]): The aliases of each form that is a name, sorted.
        """
        forms = list(forms)
        found: dict[str, list[str]] = {}
        for layer in self.layers:
            for form, aliases in layer.spellings(forms).items():
                found[form] = sorted({*found.get(form, ()), *aliases})
        return found

    def concept(self, cui: str) -> Concept | None:
        """Look a concept up by its id, or by one that was retired for it.

        cui (str): The id.
        RETURNS (Concept | None): The concept with all that was added to it, if
            there is one.
        """
        found = [layer.concept(cui) for layer in self.layers]
        known = [concept for concept in found if concept is not None]
        if not known:
            return None
        if all(concept.cui != cui for concept in known):
            # Only the layer that retired the id knows of it.
            return self.concept(known[0].cui)
        return unite_concepts([concept for concept in known if concept.cui == cui])

    def concepts(self) -> Iterator[Concept]:
        """Return all concepts: those that were built in the order of their ids, then
        those that were added since.

        YIELDS (Concept): Each concept, with all that was added to it.
        """
        seen = set()
        for layer in self.layers:
            for cui in layer.cuis():
                concept = None if cui in seen else self.concept(cui)
                if concept is not None:
                    yield concept
            if layer is not self.layers[-1]:
                seen = {*layer.cuis()}

    def children(self, cui: str) -> list[str]:
        """Return the ids of the concepts one step down in the hierarchy, sorted.

        cui (str): Id of the concept.
        RETURNS (list[str]): Their ids.
        """
        return sorted({c for layer in self.layers for c in layer.children(cui)})

    def cuis(self, source: str, code: str) -> list[str]:
        """Find the concepts that a code of a source means.

        source (str): The source, e.g. "ICD10CM".
        code (str): The code, e.g. "E11.9".
        RETURNS (list[str]): Their ids, sorted.
        """
        found = {
            cui for layer in self.layers for cui in layer.cuis_of_code(source, code)
        }
        return sorted(found)

    def types(self, cuis: Sequence[str]) -> dict[str, list[str]]:
        """Return the semantic types of concepts; without those that have none."""
        return self.gather(cuis, Store.types, unite_lists)

    def parents(self, cuis: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids one step up of concepts; without those that have none."""
        return self.gather(cuis, Store.parents, unite_lists)

    def codes(self, cuis: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """Return the codes of concepts by source; without those that have none."""
        return self.gather(cuis, Store.codes, unite_codes)

    def gather(
        self,
        cuis: Sequence[str],
        ask: Callable[[Store, Iterable[str]], dict[str, Value]],
        unite: Callable[[Value, Value], Value],
    ) -> dict[str, Value]:
        """Ask all layers the same, and put their answers together by concept."""
        first, *others = (
            ask(layer.store, [cui for cui in cuis if layer.is_left(cui)])
            for layer in self.layers
        )
        for other in others:
            for cui, value in other.items():
                first[cui] = unite(first[cui], value) if cui in first else value
        return first

    def sources_of(self, entry: Entry) -> list[str]:
        """Return the vocabularies that a name comes from.

        entry (Entry): The name.
        RETURNS (list[str]): Their names; none if they are not known.
        """
        if not self.name_sources:
            self.name_sources = [layer.store.origins("source") for layer in self.layers]
        number = next(i for i, layer in enumerate(self.layers) if layer.has(entry.row))
        return self.name_sources[number].get(entry.origin, [])
