from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.vocabularies.concepts import Concept
from training.data.hierarchy import build_hierarchy, compute_distances
from training.data.pairs import hash_text

FOREST = {"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": ["gone"], "f": ["gone"]}


def measure(parents: dict[str, list[str]], rows: str) -> np.ndarray:
    hierarchy = build_hierarchy(
        Concept(cui, [cui], parents=above) for cui, above in parents.items()
    )
    labels = np.array([hash_text(row) for row in rows], dtype=np.int64)
    return compute_distances(hierarchy, labels)


def test_compute_distances_by_hand() -> None:
    found = measure(FOREST, "abcdaef")
    # fmt: off
    assert found.tolist() == [
        # a  b  c  d  a  e  f
        [0, 2, 2, 3, 0, 3, 3],
        [2, 0, 1, 2, 2, 3, 3],
        [2, 1, 0, 3, 2, 3, 3],
        [3, 2, 3, 0, 3, 3, 3],
        [0, 2, 2, 3, 0, 3, 3],
        [3, 3, 3, 3, 3, 0, 1],
        [3, 3, 3, 3, 3, 1, 0],
    ]
    # fmt: on


def test_compute_distances_takes_the_smallest() -> None:
    # b is a child of a and, by their common parent r, its sibling
    both = {"r": [], "a": ["r"], "b": ["a", "r"]}
    assert measure(both, "ab")[0, 1] == 1


def test_compute_distances_of_cycles() -> None:
    circle = {"a": ["c"], "b": ["a"], "c": ["b", "c"]}
    assert measure(circle, "abc").tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    assert measure({"a": ["a"], "b": ["a"]}, "ab")[0, 1] == 2


def test_compute_distances_of_unknown_concepts() -> None:
    assert measure(FOREST, "xy").tolist() == [[0, 3], [3, 0]]
    assert measure({}, "xy").tolist() == [[0, 3], [3, 0]]
    assert measure(FOREST, "").shape == (0, 0)


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefgx"), max_size=4)
    ),
    st.text("abcdefg", max_size=10),
)
def test_compute_distances_equals_the_definition(
    parents: dict[str, list[str]], rows: str
) -> None:
    above = {cui: set(parents.get(cui, [])) - {cui} for cui in "abcdefg"}
    found = measure(parents, rows)
    assert found.shape == (len(rows), len(rows))
    for (i, one), (j, other) in product(enumerate(rows), repeat=2):
        if one == other:
            expected = 0
        elif above[one] & above[other]:
            expected = 1
        elif one in above[other] or other in above[one]:
            expected = 2
        else:
            expected = 3
        assert found[i, j] == expected
