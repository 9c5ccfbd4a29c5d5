import json
from dataclasses import asdict
from typing import Any

import pytest

from spacy_sapbert.evaluation.diagnose import CAUSES
from spacy_sapbert.evaluation.explain import Explanation, explain_mention
from spacy_sapbert.evaluation.regression import MentionContext
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept

FEVER = "C0000004"


@pytest.fixture(scope="module")
def cold(cold_kb) -> KnowledgeBase:
    return load_kb(cold_kb)


def explain(
    kb: KnowledgeBase,
    context: str | MentionContext,
    expected: str | None = None,
    **settings: Any,
) -> Explanation:
    if isinstance(context, str):
        context = MentionContext(context)
    options = change_options(DEFAULT_OPTIONS, settings)
    found = explain_mention(kb, context, options=options, expected=expected)
    assert json.loads(json.dumps(asdict(found))) == asdict(found)
    return found


def locate(kb: KnowledgeBase, mention: str, cui: str, **settings: Any) -> Any:
    found = explain(kb, mention, cui, **settings).expected
    assert found is not None
    assert found.cause is None or found.cause in CAUSES
    return found


def suggest(kb: KnowledgeBase, context: Any, cui: str, **settings: Any) -> str:
    return "\n".join(explain(kb, context, cui, **settings).suggestions)


def test_explain_mention_has_the_link_of_the_linker(kb):
    for mention in ("pyrexia", "heart", "MI", "--"):
        found = explain(kb, mention, k=3)
        (linked,) = kb.link([mention], k=3)
        assert (found.candidates, found.note, found.cui) == linked
    context = MentionContext("HA", long_form="heart attack", defined="heart attack")
    found = explain(kb, context)
    assert (found.text, found.cui) == ("heart attack", "C0000001")
    assert explain(kb, "x" * 2000).truncated
    found = explain(kb, "heart", threshold=1)
    assert (found.cui, found.note, found.threshold) == (None, "below_threshold", 1)
    assert explain(kb, "fever").threshold is None
    assert suggest(kb, "fever", FEVER) == suggest(kb, "--", "NIL") == ""


def test_explain_mention_returns_what_the_filter_removes(kb):
    found = explain(kb, "fever", filter={"types": ["T047"], "deny": ["C0000003"]})
    assert (found.filtered[0].cui, found.filtered[0].filtered_by) == (FEVER, ["types"])
    assert min(n.score for n in found.filtered) >= found.candidates[0]["score"]
    # A name with a lower score than the first candidate was not removed from it.
    assert explain(kb, "fever", filter={"deny": ["C0000006"]}).filtered == []
    context = MentionContext("aspirin", label="SIGN")
    labelled = explain(kb, context, label_types={"SIGN": ["T184"]})
    assert labelled.filtered[0].filtered_by == ["label_types"]


@pytest.mark.parametrize(
    ("mention", "cui", "settings", "cause"),
    [
        ("fever", FEVER, {}, None),
        ("head", "NIL", {"threshold": 1}, None),
        ("MI", "C0000002", {}, "tie"),
        ("fever", "C0000001", {}, "equal name elsewhere"),
        ("fever", FEVER, {"filter": {"types": ["T047"]}}, "filtered"),
        ("fever", "C7777777", {}, "not covered"),
        ("MI", "C0000001", {"tie_evidence": [], "ambiguous": "nil"}, "not accepted"),
    ],
)
def test_locate_expected_returns_the_cause(kb, mention, cui, settings, cause):
    assert locate(kb, mention, cui, **settings).cause == cause


def test_locate_expected_follows_a_retired_id(kb):
    found = locate(kb, "heart attack", "C9999999")
    assert (found.cause, found.given) == (None, "C9999999")
    assert found.cui == "C0000001"


def test_locate_expected_returns_rank_name_and_score(kb):
    for filter in ({}, {"types": ["T047"]}):
        for candidate in kb.link(["heart"], k=8, filter=filter)[0].candidates[1:]:
            found = locate(kb, "heart", candidate["cui"], k=1, filter=filter)
            assert found.rank == candidate["rank"]
            assert found.alias == candidate["alias"]
            assert found.score == pytest.approx(candidate["score"], abs=1e-4)


def test_locate_expected_returns_what_was_removed(own_kb):
    kb = remove_concepts(load_kb(own_kb), ["C0000008"])
    found = explain(kb, "appendectomy", "C0000008")
    assert found.expected is not None
    assert (found.expected.cause, found.expected.name) == ("removed", "Appendectomy")
    assert "--cui C0000008 --alias Appendectomy" in found.suggestions[0]


def test_locate_expected_returns_the_relation(cold):
    assert locate(cold, "asthma", "C9").relation == "child"
    assert locate(cold, "lung disease", "C4").relation == "parent"
    assert locate(cold, "asthma", "C3").relation == "sibling"
    assert locate(cold, "asthma", "C1").relation is None


def test_locate_expected_says_that_the_index_does_not_find_it(incomplete_kb):
    found = explain(incomplete_kb, "pyrexia", FEVER)
    assert found.expected is not None
    assert found.expected.cause == "index miss"
    assert "--backend exact" in found.suggestions[0]


def test_suggest_a_command_that_adds_or_removes_a_name(own_kb):
    kb = load_kb(own_kb)
    found = suggest(kb, "hot 'n cold", FEVER)
    assert f"kb add {own_kb} --cui {FEVER} --alias 'hot '\"'\"'n cold'" in found
    added = [Concept(FEVER, ["hot 'n cold"]), Concept("L1", ["ward"])]
    kb = add_concepts(kb, added)
    assert suggest(kb, "hot 'n cold", FEVER) == ""
    found = suggest(kb, "fever", "C0000001")
    assert f"{FEVER} (Fever) has the name too" in found
    assert "kb remove" in found
    # A concept with one name can only be removed as a whole.
    found = suggest(kb, "ward", "C0000001")
    assert f"kb remove {own_kb} L1" in found
    assert "L1 --alias" not in found


DEFINED = MentionContext("HA", defined="heart attack")
REMOVE = "Fields that remove it: {}. Its types are T184.".format


@pytest.mark.parametrize(
    ("context", "cui", "settings", "said"),
    [
        ("MI", "C0000002", {}, "C0000001 --alias MI"),
        ("fever", FEVER, {"label_types": {"SIGN": ["T047"]}}, REMOVE("`label_types`")),
        (
            "fever",
            FEVER,
            {"filter": {"types": ["T047"], "deny": [FEVER]}},
            REMOVE("`types` and `deny`"),
        ),
        ("hearty", "1", {"threshold": 1}, "below_threshold, and the `threshold` is 1."),
        (DEFINED, "C0000001", {}, 'The document defines it as "heart attack"'),
        ("HA", "C0000001", {}, "looks like an abbreviation"),
        ("heart", "3", {"k": 1}, "With `k = 3` it is the last candidate."),
        ("MI", "NIL", {"tie_evidence": []}, "`filter.deny`"),
    ],
)
def test_suggest_says_what_to_change(kb, context, cui, settings, said):
    if len(cui) == 1:  # a rank
        cui = kb.link([context], k=3)[0].candidates[int(cui) - 1]["cui"]
    if isinstance(context, str):
        context = MentionContext(context, label="SIGN")
    assert said in suggest(kb, context, cui, **settings)


def test_explain_says_what_excludes_the_first_concept(make_kb, tmp_path):
    names = ("Factor VIII deficiency", "Factor XI deficiency")
    concepts = [Concept(f"C{n}", [name]) for n, name in enumerate(names)]
    kb = load_kb(make_kb(tmp_path, concepts, backend="exact"))
    first = kb.link(["factor 9 deficiency"])[0].candidates[0]["cui"]
    found = explain(kb, "factor 9 deficiency", first)
    assert (found.note, found.cui) == ("excluded", None)
    assert found.expected is not None
    assert found.expected.cause == "excluded"
    assert "--alias 'factor 9 deficiency'" in found.suggestions[0]
