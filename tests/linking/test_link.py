"""Ties and what settles them, reasons, an order, and the settings of a call."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.candidates import Entry
from spacy_sapbert.linking.ranking import (
    has_text,
    sort_entries,
)
from spacy_sapbert.vocabularies.concepts import Concept
from tests.pipelines import make_nlp


@pytest.fixture(scope="module")
def kb(cold_kb: Path) -> KnowledgeBase:
    return load_kb(cold_kb)


def order(kb: KnowledgeBase, **settings: Any) -> list[Any]:
    """The four that are called cold, and what put each there."""
    found = kb.link(["cold"], k=4, **settings)[0].candidates
    return [(candidate["cui"], candidate["tie"]) for candidate in found]


def test_tie_evidence_orders_ties_in_its_order(kb: KnowledgeBase) -> None:
    assert order(kb, tie_evidence=[]) == [(f"C{n}", "id") for n in (1, 2, 3, 6)]
    preferred = [("C6", "preferred"), ("C1", "id"), ("C2", "id"), ("C3", "id")]
    assert order(kb) == preferred
    sources = order(kb, tie_evidence=["source", "preferred"], source_rank=["A", "B"])
    assert sources == [
        *(("C2", "source"), ("C1", "source"), ("C6", "preferred"), ("C3", "preferred"))
    ]
    labelled = order(
        kb, labels=["SIGN"], label_types={"SIGN": ["T047"]}, label_types_use="evidence"
    )
    assert labelled == [
        *(("C2", "id"), ("C3", "label"), ("C6", "preferred"), ("C1", "preferred"))
    ]


def test_coherence_prefers_concepts_close_to_the_document(
    kb: KnowledgeBase,
) -> None:
    mentions = ["cold", "asthma", "cold", "snow", "cold"]
    linked = kb.link(
        mentions,
        documents=[0, 0, 1, 1, 2],
        tie_evidence=["coherence", "preferred"],
    )
    best = [(one.candidates[0]["cui"], one.candidates[0]["tie"]) for one in linked]
    # A sibling of asthma; the parent of snow; and nothing to go by.
    nearest = [("C3", "coherence"), ("C4", None), ("C1", "coherence"), ("C5", None)]
    assert best == [*nearest, ("C6", "preferred")]
    # What is not linked says nothing about its document.
    (cold, other) = kb.link(
        ["cold", "asthmatic"],
        documents=[0, 0],
        threshold=1,
        tie_evidence=["coherence", "preferred"],
    )
    assert (other.candidates[0]["cui"], other.cui) == ("C4", None)
    assert cold.candidates[0]["cui"] == "C6"
    # Without documents each mention is alone.
    alone = kb.link(mentions, tie_evidence=["coherence", "preferred"])
    assert [one.candidates[0]["cui"] for one in alone] == ["C6", "C4", "C6", "C5", "C6"]


def test_ambiguous_nil_leaves_tied_mentions_without_concept(kb: KnowledgeBase) -> None:
    settings: Any = {"tie_evidence": [], "ambiguous": "nil"}
    linked = kb.link(["cold", "asthma"], **settings)
    assert [one.note for one in linked] == ["ambiguous", None]
    assert len(linked[0].candidates) == 7
    assert kb.link(["cold"], ambiguous="nil")[0].note is None  # a preferred name


def test_a_learned_order_finds_a_misspelled_name(kb: KnowledgeBase) -> None:
    best, *others = kb.link(["astma"], k=7)[0].candidates
    assert best["cui"] == "C4"
    assert len(others) == 6
    vectors = kb.embed(["astma", "Asthma"]).vectors
    # What is shown stays the cosine.
    assert best["score"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=6e-5)
    wanted: Any = {"types": ["T070"]}
    left = kb.link(["astma"], filter=wanted)[0].candidates
    assert {t for candidate in left for t in candidate["types"]} == {"T070"}


def test_a_learned_order_is_not_for_mentions_that_are_names(kb: KnowledgeBase) -> None:
    for mention in ("Asthma", "asthmas"):  # a name, and an English variant of one
        found = kb.link([mention], k=7)[0].candidates
        assert found[0]["score"] == 1
        scores = [candidate["score"] for candidate in found]
        assert scores == sorted(scores, reverse=True)


def test_a_learned_order_finds_concepts_of_the_overlay(
    cold_kb: Path, tmp_path: Path
) -> None:
    kb = load_kb(shutil.copytree(cold_kb, tmp_path / "kb"))
    kb = add_concepts(kb, [Concept("L1", ["zyqrx"])])
    assert kb.link(["zyqrxx"])[0].candidates[0]["cui"] == "L1"


def test_link_note_is_not_filtered_if_the_filter_removes_nothing(
    kb: KnowledgeBase,
) -> None:
    # By letters "asthma" is first, though others have a higher cosine.
    settings: Any = {"k": 7}
    mentions = ["astma", "snowz", "lunk", "chronicc", "temprature"]
    for mention in mentions:
        best, *others = kb.link([mention], **settings)[0].candidates
        higher = max(candidate["score"] for candidate in others)
        if best["score"] >= higher:
            continue
        settings["threshold"] = higher
        notes = [
            kb.link([mention], filter=wanted, **settings)[0].note
            for wanted in ({}, {"deny": ["X1"]})
        ]
        assert notes == ["below_threshold"] * 2
        return
    pytest.fail("no mention whose best concept has not the highest cosine")


def test_sort_entries_puts_preferred_names_first_then_smaller_ids() -> None:
    entries = {
        5: [Entry(5, "C9", "x", "cold", True), Entry(5, "C4", "y", "cold", False)],
        6: [Entry(6, "C2", "z", "COLD", False), Entry(6, "C3", "w", "COLD", False)],
    }
    ranked = sort_entries([6, 5], [0.9, 0.9 + 1e-8], entries)
    assert [hit.entry.cui for hit in ranked] == ["C9", "C2", "C3", "C4"]


def test_filter_retired_id_is_mapped_with_a_warning(kb: KnowledgeBase) -> None:
    with pytest.warns(UserWarning, match="C0 was retired; the concept is now C9"):
        assert kb["C0"].name == "Lung disease"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kb["C9"].name == "Lung disease"
        assert "C0" in kb
        assert "C7" not in kb
    assert kb.children("C9") == ["C3", "C4"]
    with pytest.raises(SapbertError, match="no 'C7'"):
        kb["C7"]


def test_codes_map_to_concepts_and_back(sample_kb: Path) -> None:
    kb = load_kb(sample_kb)
    assert kb.codes("C0000001", "ICD10CM") == ["I21"]
    assert kb.codes("C0000001", "MSH") == []
    assert kb.cuis("ICD10CM", "I21") == ["C0000001"]
    assert kb.cuis("ICD10CM", "E11") == []


def test_candidate_threshold_keeps_the_first_candidate_and_those_that_reach_it(
    kb: KnowledgeBase,
) -> None:
    every = kb.link(["asthma"], k=7)[0]
    scores = [candidate["score"] for candidate in every.candidates]
    assert len(scores) == 7
    assert scores[2] > scores[-1]
    for least, count in ((scores[2], 3), (1.0, 1), (None, 7)):
        found = kb.link(["asthma"], k=7, candidate_threshold=least)[0]
        assert found.candidates == every.candidates[:count]
        assert (found.cui, found.note) == (every.cui, every.note)
    below = kb.link(["asthmatic"], k=7, threshold=1, candidate_threshold=1)[0]
    assert (len(below.candidates), below.cui, below.note) == (
        *(1, None),
        "below_threshold",
    )


def make_doc(nlp: Any, *words: str, label: str = "X") -> Doc:
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [Span(doc, place, place + 1, label) for place in range(len(words))]
    return doc


def test_link_settings_apply_to_one_call(cold_kb: Path) -> None:
    nlp = make_nlp(cold_kb)
    own = {"sapbert_linker": {"k": 1, "filter": {"types": ["T070"]}}}
    found = nlp(make_doc(nlp, "cold"), component_cfg=own).ents[0]._.candidates
    assert [candidate["cui"] for candidate in found] == ["C1"]
    docs = nlp.pipe([make_doc(nlp, "cold"), make_doc(nlp, "snow")], component_cfg=own)
    assert [len(doc.ents[0]._.candidates) for doc in docs] == [1, 1]
    assert len(nlp(make_doc(nlp, "cold")).ents[0]._.candidates) == 7
    with pytest.raises(SapbertError, match="E333"):
        nlp(make_doc(nlp, "cold"), component_cfg={"sapbert_linker": {"kk": 1}})


def test_linker_config_applies_and_is_saved(cold_kb: Path, tmp_path: Path) -> None:
    config = {
        "kb": str(cold_kb),
        "filter": {"deny": ["C6"]},
        "label_types": {"DISEASE": ["DISO"]},
        "tie_evidence": ["coherence", "preferred"],
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("sapbert_linker", config=config)
    nlp.to_disk(tmp_path / "saved")
    for pipeline in (nlp, spacy.load(tmp_path / "saved")):
        doc = pipeline(make_doc(pipeline, "cold", "asthma", label="DISEASE"))
        assert [ent._.cui for ent in doc.ents] == ["C3", "C4"]
        assert doc.ents[1]._.candidates[0]["cui"] == "C4"
        assert [len(ent._.candidates) for ent in doc.ents] == [4, 4]
        free = pipeline(make_doc(pipeline, "cold", "snow"))
        assert [ent._.cui for ent in free.ents] == ["C1", "C5"]
        nil = pipeline(make_doc(pipeline, "..."))
        assert nil.ents[0]._.candidates == []


def test_has_text_by_hand() -> None:
    texts = ["", " \n\t ", "...", "\u200b", "😀", "5", "頭", "-a-"]
    assert [text for text in texts if has_text(text)] == ["5", "頭", "-a-"]
