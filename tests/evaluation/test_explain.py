"""What an explanation says of what was found, and of what was not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.evaluation.explain import explain_mention
from spacy_sapbert.evaluation.trace import ExactSearch, Question
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.overlay import add_concepts, remove_concepts
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept


@pytest.fixture(scope="module")
def kb(sample_kb: Path) -> KnowledgeBase:
    return load_kb(sample_kb)


@pytest.fixture(scope="module")
def cold(cold_kb: Path) -> KnowledgeBase:
    return load_kb(cold_kb)


def explain(kb: KnowledgeBase, question: Any, **settings: Any) -> Any:
    if isinstance(question, str):
        question = Question(question)
    calls = {"expected", "exact"}
    rest = {key: settings.pop(key) for key in calls & {*settings}}
    options = change_options(DEFAULT_OPTIONS, settings)
    explanation = explain_mention(kb, question, options=options, **rest)
    assert json.loads(json.dumps(explanation)) == explanation
    return explanation


def test_the_link_is_that_of_the_linker(kb: KnowledgeBase) -> None:
    for mention in ("pyrexia", "heart", "MI", "--"):
        told = explain(kb, mention, k=3)
        (linked,) = kb.link([mention], k=3)
        kept = [
            {key: c[key] for key in linked.candidates[0]} for c in told["candidates"]
        ]
        assert (kept, told["note"]) == (linked.candidates, linked.note)
        assert told["cui"] == (linked.candidates[0]["cui"] if kept else None)
        margins = [candidate["margin"] for candidate in told["candidates"]]
        assert margins == sorted(margins)


def test_the_text_is_told_as_the_encoder_gets_it(kb: KnowledgeBase) -> None:
    question = Question("HA", long_form="heart attack", defined="heart attack")
    assert explain(kb, question)["looked_up"] == {
        "text": "heart attack",
        "long_form": "heart attack",
        "defined": "heart attack",
        "cut": False,
        "wordpieces": ["heart", "attack"],
        "unknown": 0,
        "is_name": True,
    }
    told = explain(kb, "heart 熱")["looked_up"]
    assert (told["wordpieces"], told["unknown"]) == (["heart", "[UNK]"], 1)
    assert explain(kb, "x" * 2000)["looked_up"]["cut"]
    nothing = explain(kb, "...")
    assert nothing["looked_up"]["is_name"] is False
    assert (nothing["cui"], nothing["note"], nothing["candidates"]) == (
        *(None, "empty"),
        [],
    )


def test_a_tie_is_told_with_all_who_are_in_it(cold: KnowledgeBase) -> None:
    tie = explain(cold, "cold", k=1)["tie"]
    assert tie["decided_by"] == "preferred"
    assert [(c["cui"], c["preferred"], c["sources"]) for c in tie["concepts"]] == [
        ("C6", True, ["C"]),
        ("C1", False, ["B"]),
        ("C2", False, ["A"]),
        ("C3", False, []),
    ]
    assert explain(cold, "asthma")["tie"] is None


def test_coherence_counts_the_other_mentions_of_the_document(
    cold: KnowledgeBase,
) -> None:
    question = Question("cold", others=[("asthma", ""), ("cold", "")])
    told = explain(cold, question, tie_evidence=["coherence"])
    assert told["document"] == {"mentions": 2, "concepts": ["C4"]}
    assert (told["cui"], told["tie"]["decided_by"]) == ("C3", "coherence")
    distances = {c["cui"]: c["distance"] for c in told["tie"]["concepts"]}
    assert distances == {"C1": 3, "C2": 3, "C3": 1, "C6": 3}


def test_the_threshold_is_told_with_where_it_comes_from(kb: KnowledgeBase) -> None:
    assert explain(kb, "fever")["threshold"]["value"] is None
    told = explain(kb, "heart", threshold=1)
    assert (told["cui"], told["note"]) == (None, "below_threshold")
    best = told["candidates"][0]["score"]
    assert told["threshold"]["margin"] == pytest.approx(best - 1, abs=1e-6)
    assert (told["threshold"]["value"], told["threshold"]["from"]) == (1, "options")


def test_what_a_filter_takes_away_is_told_with_the_field(kb: KnowledgeBase) -> None:
    told = explain(kb, "fever", filter={"types": ["T047"], "deny": ["C0000003"]})
    assert told["filter"]["active"] == {"types": ["T047"], "deny": 1}
    assert [(hit["cui"], hit["by"]) for hit in told["filter"]["taken"]][0] == (
        "C0000004",
        ["types"],
    )
    scores = [hit["score"] for hit in told["filter"]["taken"]]
    assert min(scores) >= told["candidates"][0]["score"]
    # What is worse than what was found was not taken away.
    told = explain(kb, "fever", filter={"deny": ["C0000006"]})
    assert told["filter"]["taken"] == []
    labelled = explain(
        kb, Question("aspirin", label="SIGN"), label_types={"SIGN": ["T184"]}
    )
    assert labelled["filter"]["taken"][0]["by"] == ["label_types"]


def test_a_fusion_is_told_with_both_scores(cold: KnowledgeBase) -> None:
    assert "characters" not in explain(cold, "astma")["candidates"][0]
    told = explain(cold, "astma", fusion="weighted", ngram_weight=0.9)
    first = told["candidates"][0]
    assert first["cui"] == "C4"
    fused = 0.1 * first["score"] + 0.9 * first["characters"]
    assert first["order"] == pytest.approx(fused, abs=1e-5)


def test_what_the_index_misses_is_found_by_comparing_all(
    sample_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load_kb(sample_kb)
    assert explain(kb, "pyrexia")["index"] == {"compared": True, "missed": []}
    search = kb.contents.search

    def miss_the_first(vectors: np.ndarray, k: int) -> Any:
        rows, scores = search(vectors, k + 1)
        return rows[:, 1:], scores[:, 1:]

    monkeypatch.setattr(kb.contents, "search", miss_the_first)
    kb.link(["pyrexia"], k=2)  # what it finds is remembered, and not taken for exact
    told = explain(kb, "pyrexia", k=2)
    assert [(hit["alias"], hit["score"]) for hit in told["index"]["missed"]] == [
        ("Pyrexia", 1.0)
    ]
    assert explain(kb, "pyrexia", exact=False)["index"]["compared"] is False


def test_exact_search_is_the_search_of_an_exact_index(kb: KnowledgeBase) -> None:
    vectors = kb.encode(["heart", "head pain"])
    rows, scores = ExactSearch(kb).search(vectors, 5)
    every = np.arange(kb.rows)
    products = vectors @ kb.vectors(every).T
    assert rows.shape == (2, 5)
    for found, cosines, own in zip(rows, scores, products, strict=True):
        np.testing.assert_allclose(cosines, np.sort(own)[::-1][:5], atol=1e-6)
        np.testing.assert_allclose(own[found], cosines, atol=1e-6)


def test_names_that_were_added_or_removed_are_told(own_kb: Path) -> None:
    kb = load_kb(own_kb)
    add_concepts(kb, [Concept("L1", ["Ward fever"])])
    remove_concepts(kb, ["C0000004"], alias="Pyrexia")
    remove_concepts(kb, ["C0000008"])
    assert explain(kb, "ward fever")["candidates"][0]["local"] is True
    assert explain(kb, "fever")["candidates"][0]["local"] is False
    assert explain(kb, "fever")["removed"] == []
    for exact in (True, False):
        told = explain(kb, "pyrexia", exact=exact)["removed"][0]
        assert (told["alias"], told["score"], told["whole"]) == ("Pyrexia", 1.0, False)
        told = explain(kb, "appendectomy", exact=exact)["removed"][0]
        assert (told["cui"], told["whole"]) == ("C0000008", True)
