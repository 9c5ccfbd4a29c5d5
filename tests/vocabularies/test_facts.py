from hypothesis import given
from hypothesis import strategies as st

from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.vocabularies.facts import (
    CODE,
    DEFINITION,
    NAME,
    PARENT,
    REPLACED_BY,
    Fact,
    build_concepts,
)
from spacy_sapbert.vocabularies.report import Report


def build(*found: Fact) -> tuple[list[Concept], dict[str, int]]:
    report = Report()
    concepts = list(build_concepts(found, report))
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


@given(st.lists(st.text(st.characters(codec="utf8"), min_size=1), unique=True))
def test_build_concepts_sorts_as_python_does(cuis):
    concepts, _ = build(*(Fact(cui, NAME, "name") for cui in cuis))
    assert [concept.cui for concept in concepts] == sorted(cuis)


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
