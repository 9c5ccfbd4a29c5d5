"""Two vocabularies: united, and compared."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies.compare import Difference, compare_vocabularies
from spacy_sapbert.vocabularies.concepts import PLACES, Concept, write_concepts
from spacy_sapbert.vocabularies.merge import unite_vocabularies

PLACE = st.dictionaries(
    st.sampled_from("ST"), st.sets(st.sampled_from([0, 1]), min_size=1).map(sorted)
)
CONCEPTS = st.builds(
    Concept,
    cui=st.just("A"),
    aliases=st.lists(st.sampled_from("xyz"), min_size=2, max_size=3, unique=True),
    languages=PLACE,
    sources=PLACE,
)


def test_unite_vocabularies_yields_each_concept_once_sorted() -> None:
    one = [Concept("A", ["a"]), Concept("C", ["c"])]
    two = [Concept("B", ["b"]), Concept("C", ["c", "d"]), Concept("D", ["d"])]
    united = list(unite_vocabularies([one, two, []]))
    assert [concept.cui for concept in united] == ["A", "B", "C", "D"]
    assert united[2].aliases == ["c", "d"]


def test_unite_vocabularies_prefers_the_first_name_and_definition() -> None:
    one = Concept("A", ["x", "y"], ["T1"], {"S": ["1"]}, ["P"], None, ["R"])
    two = Concept("A", ["z", "x"], ["T2"], {"S": ["2", "1"], "U": ["3"]}, ["Q"], "two")
    three = Concept("A", ["w"], definition="three")
    (united,) = unite_vocabularies([[one], [two], [three]])
    assert united == Concept(
        "A",
        ["x", "y", "z", "w"],
        types=["T1", "T2"],
        codes={"S": ["1", "2"], "U": ["3"]},
        parents=["P", "Q"],
        definition="two",
        retired=["R"],
    )


@given(st.lists(CONCEPTS, min_size=1, max_size=4))
def test_unite_vocabularies_merges_languages_and_sources_of_any_names(
    concepts: list[Concept],
) -> None:
    expected = {
        (field, key, concept.aliases[place])
        for concept in concepts
        for field in PLACES
        for key, places in getattr(concept, field).items()
        for place in places
    }
    (united,) = unite_vocabularies([[concept] for concept in concepts])
    found = [
        (field, key, united.aliases[place])
        for field in PLACES
        for key, places in getattr(united, field).items()
        for place in places
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_unite_vocabularies_reads_its_inputs_in_step() -> None:
    read = []

    def watch() -> Any:
        for number in range(100):
            read.append(number)
            yield Concept(f"{number:03}", ["name"])

    next(unite_vocabularies([watch(), [Concept("999", ["z"])]]))
    assert len(read) <= 3


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
