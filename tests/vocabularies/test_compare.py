from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.compare import Difference, compare_vocabularies
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts

OLD = [
    Concept("X:1", ["fever", "pyrexia"], codes={"ICD10": ["R50"]}, parents=["X:9"]),
    Concept("X:2", ["cough"]),
    Concept("X:3", ["rash"]),
    Concept("X:9", ["sign"]),
]
NEW = [
    Concept("X:1", ["Fever", "pyrexia"], codes={"ICD10": ["R50.9"]}, retired=["X:2"]),
    Concept("X:4", ["ache"]),
    Concept("X:9", ["sign"]),
]


def test_compare_vocabularies_yields_every_difference_by_id(tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl.gz"
    write_concepts(old, OLD)
    write_concepts(new, NEW)
    assert [*compare_vocabularies(old, new)] == [
        Difference("renamed", "X:1", ["fever"], ["Fever"], "Fever"),
        Difference("moved", "X:1", ["X:9"], [], "Fever"),
        Difference("names", "X:1", ["fever"], ["Fever"], "Fever"),
        Difference("codes", "X:1", ["ICD10:R50"], ["ICD10:R50.9"], "Fever"),
        Difference("retired", "X:2", ["cough"], ["X:1"], "cough"),
        Difference("removed", "X:3", ["rash"], [], "rash"),
        Difference("added", "X:4", [], ["ache"], "ache"),
    ]
    assert not [*compare_vocabularies(new, new)]


def test_compare_vocabularies_ids_must_ascend(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    write_concepts(path, reversed(OLD))
    with pytest.raises(SapbertError, match="E104.*old.jsonl.*sorted"):
        [*compare_vocabularies(path, path)]
