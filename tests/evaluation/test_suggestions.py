"""What mends a wrong link: each mend is made, and the link is then right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.evaluation.explain import explain_mention
from spacy_sapbert.evaluation.suggestions import is_short_form
from spacy_sapbert.evaluation.trace import Question
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.overlay import add_concepts, remove_concepts
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept

BEST = "C0000004"  # for pyrexia


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


@pytest.fixture(scope="module")
def cold(cold_kb: Path) -> KnowledgeBase:
    return load_kb(cold_kb)


def mends(kb: KnowledgeBase, question: Any, cui: str, **settings: Any) -> list[Any]:
    if isinstance(question, str):
        question = Question(question)
    options = change_options(DEFAULT_OPTIONS, settings)
    told = explain_mention(kb, question, options=options, expected=cui)
    return [(m["what"], m["tried"], m["command"] or "") for m in told["mends"]]


def has(found: list[Any], part: str, tried: Any = None) -> bool:
    return any(part in what + command and tried is t for what, t, command in found)


def test_a_right_link_needs_nothing(kb: KnowledgeBase) -> None:
    assert mends(kb, "fever", "C0000004") == []
    assert mends(kb, "--", "NIL") == []


def test_a_missing_name_is_added_by_the_command_that_is_told(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    found = mends(kb, "hot 'n cold", "C0000004")
    command = f"kb add {own_kb} --cui C0000004 --alias 'hot '\"'\"'n cold'"
    assert has(found, command)
    add_concepts(kb, [Concept("C0000004", ["hot 'n cold"])])
    assert mends(kb, "hot 'n cold", "C0000004") == []


def test_a_tie_is_settled_by_types_sources_or_the_name_gone(
    cold: KnowledgeBase,
) -> None:
    found = mends(cold, Question("cold", label="SIGN"), "C1")
    assert has(found, 'label_types = {SIGN = ["T070"]}', True)
    settings: Any = {"label_types": {"SIGN": ["T070"]}, "labels": ["SIGN"]}
    assert cold.link(["cold"], **settings)[0].candidates[0]["cui"] == "C1"
    order = 'tie_evidence = ["source", "label", "preferred"]'
    assert has(found, f'{order}` and `source_rank = ["B"]', True)
    # Only what differs from the settings is told.
    first = {"tie_evidence": ["source", "preferred"]}
    assert has(mends(cold, "cold", "C1", **first), 'Set `source_rank = ["B"]`.', True)
    assert has(found, "kb remove")
    # What works is told before what was not tried.
    assert [tried for _, tried, _ in found] == [True, True, None]


def test_a_tie_without_any_difference_is_left_to_the_names(kb: KnowledgeBase) -> None:
    found = mends(kb, "MI", "C0000002")
    assert has(found, "C0000001 --alias MI")
    assert not has(found, "label_types", True)


def test_an_equal_name_elsewhere_is_told_from_a_missing_one(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    found = mends(kb, "fever", "C0000001")
    assert has(found, "one of C0000004 too: a tie")
    assert has(found, "kb remove")
    # A concept with one name left can only be removed whole.
    add_concepts(kb, [Concept("L1", ["ward"])])
    assert has(mends(kb, "ward", "C0000001"), f"kb remove {own_kb} L1")
    assert not has(mends(kb, "ward", "C0000001"), "L1 --alias")


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"filter": {"types": ["T047"]}}, "`filter.types`"),
        ({"filter": {"deny": ["C0000004"]}}, "`filter.deny`"),
        ({"filter": {"allow": ["C0000001"]}}, "`filter.allow`"),
        ({"label_types": {"SIGN": ["T047"]}}, "`label_types` of SIGN"),
    ],
)
def test_a_filter_that_leaves_it_out_is_told_and_tried(
    kb: KnowledgeBase, settings: Any, part: str
) -> None:
    question = Question("fever", label="SIGN")
    assert has(mends(kb, question, "C0000004", **settings), part, True)


def test_two_fields_that_leave_it_out_are_not_enough_alone(kb: KnowledgeBase) -> None:
    wanted = {"types": ["T047"], "deny": ["C0000004"]}
    found = mends(kb, "fever", "C0000004", filter=wanted)
    assert [tried for _, tried, _ in found] == [False, False]


def test_no_concept_for_want_of_cosine_or_evidence(kb: KnowledgeBase) -> None:
    best = kb.link(["hearty"])[0].candidates[0]["cui"]
    found = mends(kb, "hearty", best, threshold=1)
    assert has(found, "under the `threshold` of 1.000", True)
    assert has(found, "--alias hearty")
    settings: Any = {"tie_evidence": [], "ambiguous": "nil"}
    assert has(mends(kb, "MI", "C0000001", **settings), "ambiguous", True)


def test_an_abbreviation_is_told_and_its_long_form_tried(kb: KnowledgeBase) -> None:
    question = Question("HA", defined="heart attack")
    assert has(mends(kb, question, "C0000001"), "`sapbert_abbreviations`", True)
    assert has(mends(kb, "HA", "C0000001"), "looks like an abbreviation")
    assert not has(mends(kb, "hand", "C0000001"), "abbreviation")


@pytest.mark.parametrize(
    ("text", "short"),
    [("AF", True), ("NSCLC", True), ("MI2", True), ("X", False), ("Fever", False)],
)
def test_short_forms_are_mostly_capitals(text: str, short: bool) -> None:
    assert is_short_form(text) is short


def test_what_is_not_there_is_added(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    assert has(mends(kb, "fever", "C7777777"), "--cui C7777777 --alias fever")
    remove_concepts(kb, ["C0000002"], alias="MI")
    assert has(mends(kb, "MI", "C0000002"), "--cui C0000002 --alias MI")
    remove_concepts(kb, ["C0000008"])
    found = mends(kb, "appendectomy", "C0000008")
    assert has(found, "--cui C0000008 --alias Appendectomy")


def test_a_fusion_that_works_is_told(cold: KnowledgeBase) -> None:
    assert cold.link(["chronic"])[0].candidates[0]["cui"] == "C6"
    assert cold.link(["chronic"], fusion="weighted")[0].candidates[0]["cui"] == "C3"
    assert has(mends(cold, "chronic", "C3"), 'fusion = "weighted"', True)
    found = mends(cold, "chronic", "C6", fusion="weighted")
    assert has(found, "fusion = null", True)


def test_nil_that_was_expected_is_had_by_threshold_or_deny(kb: KnowledgeBase) -> None:
    found = mends(kb, "MI", "NIL", tie_evidence=[])
    assert has(found, "threshold")
    assert has(found, "ambiguous")
    assert has(found, "filter.deny")


def test_what_the_index_misses_is_tried_with_more_candidates(
    sample_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load_kb(sample_kb)
    search = kb.contents.search
    every = kb.entries(range(kb.rows)).items()
    rows = [row for row, entries in every if entries[0].cui == BEST]

    def miss(vectors: Any, k: int) -> Any:
        near, scores = search(vectors, kb.rows)
        kept = ~np.isin(near, rows)[0]
        return near[:, kept][:, :k], scores[:, kept][:, :k]

    monkeypatch.setattr(kb.contents, "search", miss)
    assert has(mends(kb, "pyrexia", BEST), "The index passed it over", False)
