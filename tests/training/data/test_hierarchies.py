"""Relations between concepts: distances, families, pairs of MRREL."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, read_concepts, write_concepts
from tests.training.test_examples import FOLDER as EXAMPLES
from training.data.families import write_families
from training.data.hierarchy import FAMILY, build_hierarchy, compute_distances
from training.data.pairs import hash_text
from training.data.relations import read_relations

MRREL = EXAMPLES / "input" / "MRREL.RRF"


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefgx"), max_size=4)
    ),
    st.text("abcdefg", max_size=10),
)
def test_compute_distances_equals_the_definition(parents, rows):
    over = {cui: set(parents.get(cui, [])) - {cui} for cui in "abcdefg"}
    hierarchy = build_hierarchy(
        Concept(cui, [cui], parents=above) for cui, above in parents.items()
    )
    labels = np.array([hash_text(row) for row in rows], dtype=np.int64)
    found = compute_distances(hierarchy, labels)
    assert found.shape == (len(rows), len(rows))
    for (i, one), (j, other) in product(enumerate(rows), repeat=2):
        if one == other:
            expected = 0
        elif over[one] & over[other]:
            expected = 1
        elif one in over[other] or other in over[one]:
            expected = 2
        else:
            expected = 3
        assert found[i, j] == expected


# a tree of three generations, an only child, and two that nobody is related to
PARENTS: dict[str, list[str]] = {
    **{f"b{i}": ["a"] for i in range(4)},
    **{f"c{i}": [f"b{i % 4}"] for i in range(12)},
    "a": [],
    "lone-child": ["lone-parent"],
    "lone-parent": [],
    "x": [],
    "y": ["not-there"],
}


def write_tree(folder: Path, parents: dict[str, list[str]] = PARENTS) -> Path:
    path = folder / "concepts.jsonl"
    concepts = [
        Concept(cui, [f"{cui} one", f"{cui} two", f"{cui} three"], parents=above)
        for cui, above in parents.items()
    ]
    write_concepts(path, concepts)
    return path


def test_write_families_has_anchor_sibling_and_parent_or_child(tmp_path):
    concepts, path = write_tree(tmp_path), tmp_path / "families.tsv"
    counts = write_families(concepts, path)
    lines = [line.split("\t") for line in path.read_text("utf8").splitlines()]
    families = [lines[first : first + FAMILY] for first in range(0, len(lines), FAMILY)]
    assert list(counts.values()) == [21, 18, 19]  # concepts, steps, families
    anchors = [family[0][0] for family in families]
    assert sorted(anchors) == sorted(set(PARENTS) - {"x", "y"})
    hierarchy = build_hierarchy(read_concepts(concepts))
    for family in families:
        for cui, one, other in family:
            assert one != other
            assert one.split()[0] == other.split()[0] == cui
        cuis = [cui for cui, _, _ in family]
        labels = np.array([hash_text(cui) for cui in cuis])
        found = compute_distances(hierarchy, labels)[0].tolist()
        if cuis[0] == "a":
            assert found == [0, 2, 2]
            assert cuis[1] != cuis[2]
        elif cuis[0].startswith("lone"):
            assert found == [0, 2, 3]
        else:
            assert found == [0, 1, 2]


def test_write_families_of_a_cycle(tmp_path):
    circle = {"a": ["c", "a"], "b": ["a"], "c": ["b"]}
    path = tmp_path / "families.tsv"
    assert write_families(write_tree(tmp_path, circle), path)["families"] == 3


def test_read_relations_fails_or_skips_at_bad_rows(tmp_path):
    with pytest.raises(SapbertError, match=r"E001.*MRREL\.RRF"):
        list(read_relations(tmp_path))
    found = list(read_relations(MRREL))
    assert (found[0], len(found)) == (("part_of", "C2", "C1"), 6)
    path = tmp_path / "MRREL.RRF"
    path.write_text(MRREL.read_text("utf8") + "C1|cut\n", "utf8")
    with pytest.raises(SapbertError, match=r"MRREL\.RRF:9"):
        list(read_relations(path))
    assert list(read_relations(tmp_path, on_error="skip")) == found
