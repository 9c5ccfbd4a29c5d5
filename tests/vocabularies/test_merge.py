import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.vocabularies import merge
from spacy_sapbert.vocabularies.concepts import PLACES, Concept
from spacy_sapbert.vocabularies.merge import sort_concepts, unite_vocabularies

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


@given(concepts=st.lists(CONCEPTS, min_size=1, max_size=9))
def test_unite_vocabularies_in_batches_is_the_same(concepts: list[Concept]) -> None:
    at_once = list(unite_vocabularies([map(copy.deepcopy, concepts)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "BATCH", 1)
        assert list(unite_vocabularies([concepts])) == at_once


def test_unite_vocabularies_too_large_a_concept_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = [Concept("A", ["a"]) for _ in range(25)]
    monkeypatch.setattr(merge, "BATCH", 5)
    monkeypatch.setattr(merge, "VALUES", 20)
    assert list(unite_vocabularies([same])) == [Concept("A", ["a"])]
    with pytest.raises(SapbertError, match="E123.* 20 names .*'A'"):
        list(unite_vocabularies([[Concept("A", [f"{n}"]) for n in range(50)]]))


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


def test_sort_concepts_keeps_fields_and_the_order_of_the_same_id(
    few_concepts: list[Concept],
) -> None:
    mixed = [*reversed(few_concepts), Concept("C0000004", ["later", "Fever"])]
    found = list(sort_concepts(mixed))
    assert [concept.cui for concept in found] == sorted(c.cui for c in few_concepts)
    assert found[3].aliases == ["Fever", "FEVER", "Pyrexia", "febrile", "later"]
    assert found[0] == few_concepts[0]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf8"), min_size=1), unique=True))
def test_sort_concepts_sorts_as_python_does(cuis: list[str]) -> None:
    found = sort_concepts(Concept(cui, ["name"]) for cui in cuis)
    assert [concept.cui for concept in found] == sorted(cuis)
