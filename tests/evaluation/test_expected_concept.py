"""Where the expected concept stands."""

from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.evaluation.expected_concept import STATES, relate
from spacy_sapbert.evaluation.explain import explain_mention
from spacy_sapbert.evaluation.trace import Question
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.overlay import add_concepts, remove_concepts
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


def locate(kb: KnowledgeBase, mention: str, cui: str, **settings: Any) -> Any:
    options = change_options(DEFAULT_OPTIONS, settings)
    told = explain_mention(kb, Question(mention), options=options, expected=cui)
    assert told["expected"]["state"] in STATES
    return told["expected"]


@pytest.mark.parametrize(
    ("mention", "cui", "settings", "state"),
    [
        ("fever", "C0000004", {}, "found"),
        ("---", "NIL", {}, "found"),
        ("fever", "NIL", {}, "behind"),
        ("head", "NIL", {"threshold": 1}, "found"),
        ("MI", "C0000002", {}, "tied"),
        ("fever", "C0000001", {}, "behind"),
        ("fever", "C0000004", {"filter": {"types": ["T047"]}}, "filtered"),
        ("fever", "C7777777", {}, "unknown"),
        ("---", "C0000004", {}, "not_looked_up"),
        ("MI", "C0000001", {"tie_evidence": [], "ambiguous": "nil"}, "nil"),
    ],
)
def test_state_of_the_expected_concept(
    kb: KnowledgeBase, mention: str, cui: str, settings: Any, state: str
) -> None:
    assert locate(kb, mention, cui, **settings)["state"] == state


def test_a_retired_id_stands_for_the_concept_that_took_its_place(
    kb: KnowledgeBase,
) -> None:
    located = locate(kb, "heart attack", "C9999999")
    assert (located["state"], located["asked"], located["cui"]) == (
        *("found", "C9999999"),
        "C0000001",
    )


def test_the_nearest_name_and_the_ranks_are_those_of_all_names(
    kb: KnowledgeBase,
) -> None:
    every = kb.link(["heart"], k=8)[0].candidates
    for candidate in every:
        located = locate(kb, "heart", candidate["cui"], k=2)
        assert located["alias"] == candidate["alias"]
        assert located["score"] == pytest.approx(candidate["score"], abs=2e-6)
        assert located["exact_rank"] == candidate["rank"]
        assert located["rank"] == (candidate["rank"] if candidate["rank"] < 3 else None)
        assert located["names_nearer"] >= candidate["rank"] - 1


def test_ranks_count_only_what_the_filter_leaves(kb: KnowledgeBase) -> None:
    wanted = {"types": ["T047"]}
    every = kb.link(["fever"], k=4, filter=wanted)[0].candidates
    for candidate in every:
        located = locate(kb, "fever", candidate["cui"], filter=wanted, k=1)
        assert located["exact_rank"] == candidate["rank"]


def test_what_was_removed_is_told(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    remove_concepts(kb, ["C0000004"], alias="Pyrexia")
    remove_concepts(kb, ["C0000008"])
    located = locate(kb, "pyrexia", "C0000004")
    assert located["removed_alias"] == "Pyrexia"
    assert located["alias"] != "Pyrexia"
    located = locate(kb, "appendectomy", "C0000008")
    assert (located["state"], located["removed_alias"]) == ("removed", "Appendectomy")


def test_names_of_all_layers_count(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    add_concepts(kb, [Concept("C0000004", ["hot head"])])
    located = locate(kb, "hot head", "C0000004")
    assert (located["alias"], located["score"]) == ("hot head", 1.0)


def test_the_hierarchy_says_how_the_two_stand(cold_kb: Path) -> None:
    kb = load_kb(cold_kb)
    assert relate(kb, "C4", "C9") == "narrower"
    assert relate(kb, "C9", "C4") == "broader"
    assert relate(kb, "C3", "C4") == "sibling"
    assert relate(kb, "C1", "C4") is None
    assert relate(kb, "C4", "C4") is None
