from itertools import chain, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.vocabularies import facts
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.facts import (
    NAME,
    REPLACED_BY,
    Fact,
    build_concepts,
    concept_facts,
)
from spacy_sapbert.vocabularies.report import Report
from tests.vocabularies.test_concepts import make_concepts


def build(*found: Fact) -> tuple[list[Concept], dict[str, int]]:
    report = Report()
    concepts = list(build_concepts(found, report))
    return concepts, report.to_json()["dropped"]


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
