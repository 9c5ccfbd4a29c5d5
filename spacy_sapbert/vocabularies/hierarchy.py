"""Parents of concepts that a vocabulary should not have: unknown ones, and circles."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from .concepts import Concept

EXAMPLES = 2


@dataclass
class Hierarchy:
    """The parents of concepts, as hashes: 8 bytes a concept and 16 a parent."""

    concepts: array = field(default_factory=lambda: array("q"))
    children: array = field(default_factory=lambda: array("q"))
    parents: array = field(default_factory=lambda: array("q"))

    def watch(self, concepts: Iterable[Concept]) -> Iterator[Concept]:
        """Yield concepts, and keep their parents."""
        for concept in concepts:
            number = hash(concept.cui)
            self.concepts.append(number)
            for parent in concept.parents:
                self.children.append(number)
                self.parents.append(hash(parent))
            yield concept

    def find_unknown(self) -> np.ndarray:
        """Return the hashes of the parents that are no concepts. Shape: (n,)."""
        return np.setdiff1d(self.parents, self.concepts)

    def find_circles(self) -> np.ndarray:
        """Return the hashes of concepts in circles of parents, or between two of them.

        Concepts without parents, and those without children, are in none.
        """
        children, parents = np.array(self.children), np.array(self.parents)
        while len(children):
            inner = np.isin(parents, children) & np.isin(children, parents)
            if inner.all():
                break
            children, parents = children[inner], parents[inner]
        return np.unique(children)

    def describe(self, concepts: Iterable[Concept]) -> list[str]:
        """Return a sentence for each kind of such parents, with two examples.

        Args:
            concepts: The same once more, of which the examples are; not read if there
                is nothing to say.
        """
        unknown, circles = (
            {*hashes.tolist()} for hashes in (self.find_unknown(), self.find_circles())
        )
        if not unknown and not circles:
            return []
        of_unknown: dict[str, str] = {}
        of_circles: dict[str, str] = {}
        for concept in concepts:
            for parent in concept.parents:
                number = hash(parent)
                if number in unknown and len(of_unknown) < EXAMPLES:
                    of_unknown.setdefault(parent, f"{parent} of {concept.cui}")
                if {number, hash(concept.cui)} <= circles and len(
                    of_circles
                ) < EXAMPLES:
                    of_circles.setdefault(concept.cui, f"{concept.cui} under {parent}")
        kinds = (
            ("ids of parents that are no concepts", unknown, of_unknown),
            ("concepts in circles of parents", circles, of_circles),
        )
        return [
            f"{len(numbers):,} {kind}, e.g. {', '.join(examples.values())}."
            for kind, numbers, examples in kinds
            if numbers
        ]
