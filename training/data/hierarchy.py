"""Who stands directly above whom, and from that the distance between two concepts.

Distances are looked up for the concepts of a batch, from direct parents alone. No path
is ever followed, so that several parents and circles need no care.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spacy_sapbert.vocabularies.concepts import Concept, read_concepts
from training.data.tokenized_pairs import hash_text

FAMILY = 3  # lines of families.tsv: an anchor, a sibling, a parent or child


class Distances(NamedTuple):
    """How far two concepts are apart; names of one concept have 0.

    siblings (int): They share a parent.
    parents (int): One is a parent of the other.
    others (int): Neither.
    """

    siblings: int = 1
    parents: int = 2
    others: int = 3

    @property
    def thresholds(self) -> list[int]:
        """Every distance that has a farther one, 0 first."""
        return sorted({0, *self} - {max(0, *self)})


USUAL = Distances()


class Hierarchy(NamedTuple):
    """All steps from a child to a parent, once by child and once by parent.

    Concepts are known by the hash of their ids, as in a corpus. A parent need not be a
    concept itself: its children are siblings all the same.

    children (np.ndarray): Ascending, int64. Shape: (steps,).
    parents (np.ndarray): The parent of each of them, int64. Shape: (steps,).
    parents_first (np.ndarray): The parents again, ascending, int64. Shape: (steps,).
    children_next (np.ndarray): The child of each, ascending for each, int64. Shape:
        (steps,).
    """

    children: np.ndarray
    parents: np.ndarray
    parents_first: np.ndarray
    children_next: np.ndarray

    def parents_of(self, label: int) -> np.ndarray:
        """Return the hashes of a concept's parents, ascending. Shape: (parents,)."""
        return cut(self.children, self.parents, label)

    def children_of(self, label: int) -> np.ndarray:
        """Return the hashes of a concept's children, ascending. Shape: (children,)."""
        return cut(self.parents_first, self.children_next, label)


def cut(keys: np.ndarray, values: np.ndarray, key: int) -> np.ndarray:
    """Return the values that stand beside a key.

    keys (np.ndarray): Ascending. Shape: (n,).
    values (np.ndarray): Shape: (n,).
    key (int): The key.
    RETURNS (np.ndarray): A part of the values.
    """
    first = np.searchsorted(keys, key, side="left")
    return values[first : np.searchsorted(keys, key, side="right")]


def make_hierarchy(concepts: Iterable[Concept]) -> Hierarchy:
    """Take the parents of all concepts; a concept is no parent of itself.

    concepts (Iterable[Concept]): The concepts, in any order.
    RETURNS (Hierarchy): The hierarchy, 32 bytes a step.
    """
    steps = np.fromiter(
        (
            step
            for concept in concepts
            for parent in concept.parents
            if parent != concept.cui
            for step in (hash_text(concept.cui), hash_text(parent))
        ),
        dtype=np.int64,
    ).reshape(-1, 2)
    upward = np.unique(steps, axis=0)
    downward = np.unique(steps[:, ::-1], axis=0)
    return Hierarchy(*upward.T.copy(), *downward.T.copy())


def read_hierarchy(path: Path) -> Hierarchy:
    """Read the parents in concepts.jsonl.

    path (Path): The file.
    RETURNS (Hierarchy): The hierarchy.
    RAISES (SapbertError): If the file is not usable.
    """
    return make_hierarchy(read_concepts(path))


def find_steps(
    hierarchy: Hierarchy, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Look up the parents of some concepts.

    hierarchy (Hierarchy): The hierarchy.
    labels (np.ndarray): Hashes of concepts. Shape: (m,).
    RETURNS (tuple[np.ndarray, np.ndarray]): Which of the concepts, and the hash of a
        parent of it, int64. Shape: (steps,) each.
    """
    first = np.searchsorted(hierarchy.children, labels, side="left")
    last = np.searchsorted(hierarchy.children, labels, side="right")
    counts = last - first
    rows = np.repeat(np.arange(len(labels)), counts)
    within = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
    return rows, hierarchy.parents[first[rows] + within]


def measure_distances(
    hierarchy: Hierarchy, labels: np.ndarray, distances: Distances = USUAL
) -> np.ndarray:
    """Measure how far the concepts of a batch are apart.

    Where two concepts are siblings and also parent and child, in a circle or by a
    second parent, the smaller of the two distances counts.

    hierarchy (Hierarchy): The hierarchy.
    labels (np.ndarray): Hash of each row's concept, int64. Shape: (n,).
    distances (Distances): What each relation counts.
    RETURNS (np.ndarray): 0 in the diagonal and between rows of one concept; int64.
        Shape: (n, n).
    SOURCE: HiPrBERT (2023).
    """
    known, places = np.unique(labels, return_inverse=True)  # (m,), (n,)
    found = np.full((len(known), len(known)), distances.others)
    rows, parents = find_steps(hierarchy, known)
    columns = np.searchsorted(known, parents).clip(max=max(len(known) - 1, 0))
    here = known[columns] == parents if len(known) else np.zeros(0, bool)
    for one, other in ((rows[here], columns[here]), (columns[here], rows[here])):
        found[one, other] = np.minimum(found[one, other], distances.parents)
    shared, numbers, counts = np.unique(
        parents, return_inverse=True, return_counts=True
    )
    # only parents that two rows have make siblings
    kept = counts[numbers] > 1
    has = np.zeros((len(known), len(shared)), dtype=np.float32)
    has[rows[kept], numbers[kept]] = 1
    has = has[:, counts > 1]
    siblings = has @ has.T > 0
    found[siblings] = np.minimum(found[siblings], distances.siblings)
    np.fill_diagonal(found, 0)
    return found[places[:, None], places]
