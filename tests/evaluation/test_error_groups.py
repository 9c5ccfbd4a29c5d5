from pathlib import Path

from spacy_sapbert.evaluation.accuracy import Answer
from spacy_sapbert.evaluation.error_groups import (
    Limits,
    Sources,
    describe_concept,
    describe_mentions,
    list_candidates,
    split_by_meaning,
)
from spacy_sapbert.evaluation.linking_errors import (
    Mistake,
    make_concept_finder,
    make_facts,
)
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.vocabularies.concepts import Concept

ONE, OTHER = (("C0000001",),), (("C0000002",),)


def make(line: int, mention: str, gold: tuple = ONE) -> Mistake:
    return Mistake("dev", line, mention, gold, (frozenset(gold[0]),), "tie")


def test_describe_concept_counts_the_names_that_it_leaves_out() -> None:
    concept = Concept("C1", ["a", "b", "c"], types=["T047"])
    described = describe_concept(concept, 2)
    assert (described["names"], described["more_names"]) == (["a", "b"], 1)
    assert describe_concept(concept, 0)["names"] == ["a", "b", "c"]


def test_split_by_meaning_gives_the_most_frequent_first() -> None:
    mistakes = [make(2, "a"), make(3, "b", OTHER), make(4, "a", OTHER)]
    groups = split_by_meaning(mistakes)
    assert [gold for gold, _ in groups] == [OTHER, ONE]


def test_describe_mentions_gives_the_most_frequent_first() -> None:
    mistakes = [make(2, "a"), make(3, "c"), make(4, "b"), make(5, "b"), make(6, "b")]
    limits = Limits(mentions=2, lines=2)
    described = describe_mentions(mistakes, lambda m: {"first": m.line}, limits)
    assert described["mentions"] == [
        {"mention": "b", "count": 3, "lines": ["dev:4", "dev:5"], "first": 4},
        {"mention": "a", "count": 1, "lines": ["dev:2"], "first": 2},
    ]
    assert described["left_out"] == 1


def test_list_candidates_shows_the_name_that_the_linker_shows(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    find = make_concept_finder(kb, {})
    (linked,) = kb.link(["FEVER"], k=1)
    entries = {
        e.alias: e.row for row in range(25) for e in kb.entries([row]).get(row, ())
    }
    answers = {"FEVER": [Answer(entries["FEVER"], "C0000004", 1.0)]}
    sources = Sources(kb, find, make_facts(find, lambda _: None, {}), answers, {})
    (candidate,) = list_candidates(make(2, "FEVER"), 5, sources)
    shown = ("cui", "name", "alias", "types")
    expected = {key: linked.candidates[0][key] for key in shown}
    assert {key: candidate[key] for key in shown} == expected
    assert candidate["score"] == 1.0
