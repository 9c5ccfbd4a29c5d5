import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import srsly

from spacy_sapbert.evaluation import expected_concept
from spacy_sapbert.evaluation.diagnose import CAUSES
from spacy_sapbert.evaluation.explain import Explanation, explain_mention
from spacy_sapbert.evaluation.regression import MentionContext
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept
from tests.golden import check_golden

FEVER = "C0000004"
EXPLAINED = Path(__file__).parent / "explained.jsonl"


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


def test_what_the_deepest_ranking_does_not_reach(kb, incomplete_kb, monkeypatch):
    """Heart disease has the rank 7 of 8 for fever; fever itself is missed."""
    monkeypatch.setattr(expected_concept, "MAX_SUGGESTED_K", 7)
    assert "With `k = 7`" in suggest(kb, "fever", "C0000003", k=5)
    monkeypatch.setattr(expected_concept, "MAX_K", 3)
    found = locate(kb, "fevr", "C0000003", k=2)
    assert (found.rank, found.cause) == (None, "wrong type")
    found = locate(incomplete_kb, "pyrexia", FEVER, k=2)
    assert (found.rank, found.cause) == (None, "index miss")


def test_suggest_a_name_that_links_the_mention_once_it_is_added(own_kb):
    kb = load_kb(own_kb)
    assert f"kb add {own_kb} --cui {FEVER} --alias hotness" in suggest(
        kb, "hotness", FEVER
    )
    kb = add_concepts(kb, [Concept(FEVER, ["hotness"])])
    assert suggest(kb, "hotness", FEVER) == ""


@pytest.fixture
def kbs(kb, cold_kb, incomplete_kb, make_kb, tmp_path) -> dict[str, KnowledgeBase]:
    """The knowledge bases of `explained.jsonl`."""
    factors = [
        Concept("L2", ["Factor VIII deficiency"]),
        Concept("L3", ["Factor XI deficiency"], types=["T047"]),
    ]
    odd = [
        Concept("L1", ["ward"], types=["T047", "T061"]),
        *factors,
        Concept("L4", ["頭"]),  # which the encoder cannot read
        Concept("C8", ["Appendectomy", "appendicectomy"], types=["T061"]),
    ]
    made = {}
    for name, concepts in {"factors": factors, "odd": odd}.items():
        (tmp_path / name).mkdir()
        made[name] = load_kb(make_kb(tmp_path / name, concepts, backend="exact"))
    made["odd"] = remove_concepts(made["odd"], ["C8"])
    return {"sample": kb, "cold": load_kb(cold_kb), "incomplete": incomplete_kb, **made}


def test_explain_mention_says_why_and_what_may_change_it(kbs):
    """The file has the mentions, and what is said of each; candidates are left out.

    After a change, remove the "gives" of a line, run the test, and read what git shows.
    """
    cases = [*srsly.read_jsonl(EXPLAINED)]
    found = []
    for case in cases:
        kb, context = kbs[case["kb"]], MentionContext(**case["context"])
        explained = explain(kb, context, case["expected"], **case["options"])
        text = json.dumps({**asdict(explained), "candidates": []})
        gives = json.loads(text.replace(str(kb.folder), "KB"))
        found.append({**case, "gives": gives})
    if not all("gives" in case for case in cases):
        srsly.write_jsonl(EXPLAINED, found)
        pytest.fail(f"{EXPLAINED} is written anew: read what git shows.")
    check_golden(found, cases)
