import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from training.data.families import write_families
from training.data.hierarchy import FAMILY, compute_distances, read_hierarchy
from training.data.pairs import hash_text

ROOT = Path(__file__).parents[3]
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


def read_families(path: Path) -> list[list[list[str]]]:
    lines = [line.split("\t") for line in path.read_text("utf8").splitlines()]
    return [lines[first : first + FAMILY] for first in range(0, len(lines), FAMILY)]


def test_write_families_has_anchor_sibling_and_parent_or_child(tmp_path: Path) -> None:
    concepts, path = write_tree(tmp_path), tmp_path / "families.tsv"
    counts = write_families(concepts, path)
    families = read_families(path)
    assert list(counts.values()) == [21, 18, 19]  # concepts, steps, families
    anchors = [family[0][0] for family in families]
    assert sorted(anchors) == sorted(set(PARENTS) - {"x", "y"})
    hierarchy = read_hierarchy(concepts)
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


def test_write_families_repeats_a_single_name(tmp_path: Path) -> None:
    concepts, path = tmp_path / "concepts.jsonl", tmp_path / "families.tsv"
    write_concepts(concepts, [Concept("1", ["a"]), Concept("2", ["b"], parents=["1"])])
    write_families(concepts, path)
    assert path.read_text("utf8").splitlines()[0] == "1\ta\ta"


def test_write_families_of_a_cycle(tmp_path: Path) -> None:
    circle = {"a": ["c", "a"], "b": ["a"], "c": ["b"]}
    path = tmp_path / "families.tsv"
    assert write_families(write_tree(tmp_path, circle), path)["families"] == 3


def test_write_families_depends_on_the_seed_only(
    tmp_path: Path, new_process: Any
) -> None:
    concepts = write_tree(tmp_path)
    written = []
    for name, hash_seed, seed in (("a", "1", "0"), ("b", "2", "0"), ("c", "1", "1")):
        path = tmp_path / f"{name}.tsv"
        command = [sys.executable, "-m", "training", "families", concepts, path]
        new_process.run(
            [*command, "--seed", seed, "--quiet"],
            cwd=ROOT,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            timeout=60,
        )
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert written[0] != written[2]


def test_write_families_without_a_hierarchy_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "families.tsv"
    with pytest.raises(SapbertError, match="E106"):
        write_families(write_tree(tmp_path, {"x": [], "y": ["gone"]}), path)
    assert not path.exists()
