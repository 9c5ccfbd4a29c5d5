import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.evaluation import expected_concept
from spacy_sapbert.evaluation.diagnose import CAUSES
from spacy_sapbert.evaluation.explain import Explanation, explain_mention
from spacy_sapbert.evaluation.regression import MentionContext
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept
from tests.golden import check_golden, read_golden

FEVER = "C0000004"
EXPLAINED = Path(__file__).parent / "explained.json"


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
    rank = locate(kb, "fever", "C0000003", k=8).rank
    monkeypatch.setattr(expected_concept, "MAX_SUGGESTED_K", rank)
    assert f"With `k = {rank}`" in suggest(kb, "fever", "C0000003", k=rank - 1)
    monkeypatch.setattr(expected_concept, "MAX_SUGGESTED_K", rank - 1)
    assert "With `k" not in suggest(kb, "fever", "C0000003", k=rank - 1)
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
    """The knowledge bases of `explained.json`."""
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


def describe(found: Explanation, folder: str) -> dict[str, Any]:
    """Return what of an explanation no other processor changes: no score, no rank.

    A threshold is there if it is not the default.
    """
    said: dict[str, Any] = {"link": found.cui or found.note}
    said |= {"read as": found.text} if found.text != found.mention else {}
    for name in ("truncated", "document", "least_cosine"):
        said |= {name: value} if (value := getattr(found, name)) else {}
    said |= {"threshold": found.threshold} if found.threshold != 0.5 else {}
    filtered = [f"{c.cui} by {', '.join(c.filtered_by)}" for c in found.filtered]
    if filtered:
        said["filtered"] = sorted(filtered)
    if (expected := found.expected) is not None:
        said["cause"] = expected.cause
        said["expected"] = f"{expected.cui}, {expected.name}"
        said |= {"relation": expected.relation} if expected.relation else {}
        said |= {"filtered by": expected.filtered_by} if expected.filtered_by else {}
    said["suggestions"] = [
        re.sub(
            "(k =|probability is|score is|`threshold` above) [0-9.]*[0-9]",
            "\\1 …",
            text.replace(folder, "KB"),
        )
        for text in found.suggestions
    ]
    return said


def test_explain_mention_says_why_and_what_may_change_it(kbs):
    """The file has mentions and what is said of them: the cause must be the true one,
    and each suggestion must help.

    After a change, remove the answer of a case, run the test, and read what git shows.
    """
    found = []
    for question, *_ in read_golden(EXPLAINED):
        kb = kbs[question["kb"]]
        context = MentionContext(**question["context"])
        options = question.get("options", {})
        explained = explain(kb, context, question.get("expected"), **options)
        found.append([question, describe(explained, str(kb.folder))])
    check_golden(EXPLAINED, found)
