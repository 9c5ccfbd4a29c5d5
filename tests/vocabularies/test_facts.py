from dataclasses import replace
from itertools import chain, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.vocabularies import facts
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.facts import (
    CODE,
    DEFINITION,
    KEEP,
    NAME,
    PARENT,
    REPLACED_BY,
    RETIRED,
    TYPE,
    Fact,
    build_concepts,
    concept_facts,
)
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies.test_concepts import make_concepts


def build(*found: Fact, gate: str = "") -> tuple[list[Concept], dict[str, int]]:
    report = Report()
    concepts = list(build_concepts(found, report, gate))
    assert report.rows_kept == sum(len(concept.aliases) for concept in concepts)
    return concepts, report.to_json()["dropped"]


def test_build_concepts_sorts_by_id_and_names_by_rank():
    concepts, dropped = build(
        Fact("B", NAME, "second", 1, "S", "ENG"),
        Fact("A", NAME, "other"),
        Fact("B", NAME, " first ", 0, "T"),
        Fact("B", NAME, "second", 2, "T", "GER"),
        Fact("B", CODE, "2", 5, "S"),
        Fact("B", CODE, "9", 4, "S"),
        Fact("B", PARENT, "A"),
        Fact("B", PARENT, "B"),
        Fact("B", DEFINITION, "What it is."),
        Fact("C", PARENT, "A"),
        Fact("A", NAME, "--"),
    )
    assert concepts == [
        Concept("A", ["other"]),
        Concept(
            "B",
            ["first", "second"],
            codes={"S": ["9", "2"]},
            parents=["A"],
            definition="What it is.",
            languages={"ENG": [1], "GER": [1]},
            sources={"T": [0, 1], "S": [1]},
        ),
    ]
    assert dropped == {
        "concepts without a name": 1,
        "names without a letter or digit": 1,
        "repeated names": 1,
    }


CONCEPTS = make_concepts(
    st.sampled_from(["a", "b", "c d", "e1", "\uffff1", "\U0001f4aff"])
)
CONCEPTS = CONCEPTS.filter(lambda each: each.cui not in (*each.parents, *each.retired))


@given(st.lists(CONCEPTS, unique_by=lambda each: each.cui), st.integers(1, 3))
def test_concepts_are_built_of_their_facts_in_any_order_of_concepts(concepts, size):
    each = [concept_facts(concept) for concept in concepts]
    mixed = filter(None, chain.from_iterable(zip_longest(*each)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facts, "PACK", size)
        patch.setattr(facts, "BATCH", size)
        for given_facts in (mixed, chain.from_iterable(each)):
            built, dropped = build(*given_facts)
            assert built == sorted(concepts, key=lambda concept: concept.cui)
            assert dropped == {}


def test_build_concepts_keeps_those_that_pass_the_gate():
    found, dropped = build(
        Fact("A", NAME, "a"),
        Fact("A", KEEP),
        Fact("A", TYPE, "T2", 2),
        Fact("A", TYPE, "T1", 1),
        Fact("A", TYPE, "T0", 1),
        Fact("A", DEFINITION, "Second.", 2),
        Fact("A", DEFINITION, "", 0),
        Fact("A", DEFINITION, "First.", 1),
        Fact("A", RETIRED, "A0", 0, "first"),
        Fact("A", RETIRED, "A0", 1, "second"),
        Fact("B", NAME, "b"),
        Fact("b", REPLACED_BY, "B"),
        Fact("a", REPLACED_BY, "A", 0, "table"),
        Fact("C", KEEP),
        gate="others",
    )
    concept = Concept("A", ["a"], ["T1", "T0"], definition="First.")
    retired_by = {"A0": "first", "a": "table"}
    assert found == [replace(concept, retired=["A0", "a"], retired_by=retired_by)]
    assert dropped == {
        "others": 1,
        "concepts without a name": 1,
        "retired ids that lead to no concept": 1,
    }


def test_build_concepts_follows_replaced_ids_to_one_concept():
    pairs = ["a>b", "b>B", "c>A", "c>B", "d>e", "e>d", "f>f", "g>nothing", "h>h2"]
    steps = [f"h{n}>h{n + 1}" for n in range(2, 40)] + ["h40>A"]
    replaced = [
        Fact(old, REPLACED_BY, new)
        for old, new in (pair.split(">") for pair in (*pairs, *steps))
    ]
    concepts, dropped = build(*replaced, *(Fact(id, NAME, id) for id in "AB"))
    retired = {each.cui: each.retired for each in concepts}
    assert retired["B"] == ["a", "b"]
    # only ids that are few steps away
    assert retired["A"] == [f"h{n}" for n in range(20, 41)]
    assert dropped == {
        "retired ids that lead to no concept": 23,  # d to h, h2 to h19
        "retired ids that lead to several concepts": 1,
    }
    _, dropped = build(Fact("a", REPLACED_BY, "B"))
    assert dropped == {"retired ids that lead to no concept": 1}
