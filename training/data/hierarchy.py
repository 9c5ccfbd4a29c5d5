"""The parents of all concepts, and the distance between two concepts.

Distances depend only on direct parents. No path is followed, so several parents and
cycles need no special case.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from spacy_sapbert.vocabularies.concepts import Concept
from training.data.pairs import hash_text

FAMILY = 3  # lines of a family: an anchor, a sibling, a parent or child
SIBLINGS, PARENTS, OTHERS = 1, 2, 3  # distances; 0 between names of one concept
THRESHOLDS = (0, SIBLINGS, PARENTS)  # the loss is summed over them


class Hierarchy(NamedTuple):
    """All steps from a child to a parent, sorted by child and sorted by parent.

    Concepts are hashes of their ids. The children of a parent that is not a concept
    itself are siblings, too. All arrays are int64 of the shape (steps,).

    Attributes:
        children: The children, ascending.
        parents: The parent of each.
        parents_first: The parents, ascending.
        children_next: The child of each.
    """

    children: np.ndarray
    parents: np.ndarray
    parents_first: np.ndarray
    children_next: np.ndarray

    def parents_of(self, label: int) -> np.ndarray:
        """Return the hashes of a concept's parents, ascending."""
        return find_values(self.children, self.parents, label)

    def children_of(self, label: int) -> np.ndarray:
        """Return the hashes of a concept's children, ascending."""
        return find_values(self.parents_first, self.children_next, label)


def find_values(keys: np.ndarray, values: np.ndarray, key: int) -> np.ndarray:
    """Return the values of a key; the keys are ascending. Shape: (n,) each."""
    first = np.searchsorted(keys, key, side="left")
    return values[first : np.searchsorted(keys, key, side="right")]


def build_hierarchy(concepts: Iterable[Concept]) -> Hierarchy:
    """Build the hierarchy of concepts in any order; it needs 32 bytes a step."""
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


def compute_distances(hierarchy: Hierarchy, labels: np.ndarray) -> np.ndarray:
    """Compute the distances between the concepts of a batch.

    If two concepts are siblings and also parent and child, the smaller distance counts.

    Args:
        labels: Hash of each row's concept, int64. Shape: (n,).

    Returns:
        int64; 0 between rows of one concept. Shape: (n, n).

    Source:
        HiPrBERT (2023).
    """
    known, places = np.unique(labels, return_inverse=True)  # (m,), (n,)
    found = np.full((len(known), len(known)), OTHERS)
    parents_of = [hierarchy.parents_of(label) for label in known]
    lengths = np.array([len(each) for each in parents_of], dtype=np.int64)
    rows = np.repeat(np.arange(len(known)), lengths)  # (steps,)
    parents = np.concatenate([*parents_of, np.zeros(0, dtype=np.int64)])  # (steps,)
    columns = np.searchsorted(known, parents).clip(max=max(len(known) - 1, 0))
    here = known[columns] == parents if len(known) else np.zeros(0, bool)
    for one, other in ((rows[here], columns[here]), (columns[here], rows[here])):
        found[one, other] = PARENTS
    shared, numbers, counts = np.unique(
        parents, return_inverse=True, return_counts=True
    )
    # only a parent of two rows makes siblings
    kept = counts[numbers] > 1
    has = np.zeros((len(known), len(shared)), dtype=np.float32)
    has[rows[kept], numbers[kept]] = 1
    has = has[:, counts > 1]
    found[has @ has.T > 0] = SIBLINGS
    np.fill_diagonal(found, 0)
    return found[places[:, None], places]
