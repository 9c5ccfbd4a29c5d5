"""Mentions without a concept of their own, linked to one above their candidates."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.explain import explain_mention
from spacy_sapbert.evaluation.regression import MentionContext
from spacy_sapbert.formats.entities import describe_docs
from spacy_sapbert.formats.gold_docs import read_docs
from spacy_sapbert.formats.registry import load_writer
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.linking.broader import rank_parents
from spacy_sapbert.linking.options import DEFAULT_OPTIONS, change_options
from spacy_sapbert.vocabularies.concepts import Concept

ABOVE: dict[str, list[str]] = {"A": ["P"], "B": ["Q"], "C": ["Q"], "D": ["Q", "R"]}
# Three branches of a trunk; the types and sources of what is above them differ.
CONCEPTS = [
    Concept("T", ["illness"], types=["T200"], retired=["OLD"], sources={"A": [0]}),
    Concept("F", ["fever"], types=["T184"], parents=["T"], sources={"A": [0]}),
    Concept("P", ["pain"], types=["T184"], parents=["T"], sources={"B": [0]}),
    Concept("F1", ["acute fever"], types=["T184"], parents=["F"]),
    Concept("F2", ["the fever"], types=["T184"], parents=["F"]),
    Concept("H", ["heart"], types=["T023"]),
    Concept("G", ["diabetes"], types=["T047"], parents=["none"]),
    Concept("O", ["attack"], types=["T033"], parents=["OLD"]),
]
BROADER: Any = {"broader": True, "threshold": 1}


@pytest.mark.parametrize(
    ("scores", "ranked"),
    [
        # 1 against 2 / e, and against 3 / e, which D gives to R once.
        ({"A": 0.9, "B": 0.8, "C": 0.8}, ["P", "Q"]),
        ({"A": 0.9, "B": 0.8, "C": 0.8, "D": 0.8}, ["Q", "P", "R"]),
        # Equal weights: the better child, the better candidate, the id.
        ({"A": 0.9, "B": 0.9}, ["P", "Q"]),
        ({"D": 0.9}, ["Q", "R"]),
        # A candidate that is above another counts for itself too: 0.61 + 0.37 …
        ({"H": 0.9, "A": 0.85, "B": 0.88, "P": 0.8}, ["P", "Q"]),
        # … but one that is above none does not.
        ({"H": 0.9, "B": 0.8}, ["Q"]),
        ({"H": 0.9}, []),
        ({}, []),
    ],
)
def test_rank_parents_orders_by_weight(
    scores: dict[str, float], ranked: list[str]
) -> None:
    assert rank_parents(scores, ABOVE) == ranked


def test_rank_parents_equal_weights_go_to_the_nearer_child() -> None:
    # a alone weighs what b and c weigh together: 1 = 2 · exp(−0.0693147 / 0.1).
    behind = 0.9 - 0.0693147180559945
    assert 2 * exp((behind - 0.9) / 0.1) == pytest.approx(1)
    parents = {"a": ["Y"], "b": ["X"], "c": ["X"]}
    assert rank_parents({"a": 0.9, "b": behind, "c": behind}, parents) == ["Y", "X"]
    # Z and W have the same child; W is a candidate, but so far behind that its own
    # weight is lost in the rounding.
    assert rank_parents({"a": 0.9, "W": -0.9}, {"a": ["W", "V"]}) == ["W", "V"]


@pytest.fixture(scope="module")
def folder(make_kb: Callable[..., Path], tmp_path_factory: Any) -> Path:
    return make_kb(tmp_path_factory.mktemp("broader"), CONCEPTS, backend="exact")


@pytest.fixture(scope="module")
def kb(folder: Path) -> KnowledgeBase:
    return load_kb(folder)


def only(*cuis: str, **fields: Any) -> dict[str, Any]:
    """Settings by which these are all that can be found."""
    return {**BROADER, "filter": {"allow": [*cuis], **fields}}


def test_broader_links_a_mention_below_the_threshold_to_a_parent(
    kb: KnowledgeBase,
) -> None:
    settings = only("F", "F1", "F2", "H")
    (plain,) = kb.link(["feverish"], **{**settings, "broader": False})
    (linked,) = kb.link(["feverish"], **settings)
    assert (plain.note, plain.cui) == ("below_threshold", None)
    assert (linked.note, linked.cui) == ("broader", "F")
    assert linked.candidates == plain.candidates
    assert linked.accepted == []
    assert kb[linked.cui].name == "fever"


def test_broader_changes_no_other_mention(kb: KnowledgeBase) -> None:
    mentions = ["acute fever", "...", "feverish", ""]
    for settings in ({}, {"threshold": -1}, {"threshold": 1, "ambiguous": "nil"}):
        plain = kb.link(mentions, **settings)
        linked = kb.link(mentions, **settings, broader=True)
        for one, other in zip(plain, linked, strict=True):
            assert other == one or one.note == "below_threshold"
    assert [one.note for one in linked] == [None, "empty", "broader", "empty"]
    # Without a threshold nothing is under it.
    assert kb.link(["feverish"], broader=True)[0].note is None
    # H has no parent, that of G is no concept, and that of F may not be found.
    for cuis in (["H"], ["G"], ["F"], ["H", "G", "F"]):
        (one,) = kb.link(["feverish"], **only(*cuis))
        assert (one.note, one.cui) == ("below_threshold", None)
    # The filter leaves nothing of the only concept that it allows.
    nothing = only("G", types=["T023"])
    assert kb.link(["feverish"], **nothing)[0] == ([], "below_threshold", None)
    # It has a concept, which may not be found.
    assert kb.link(["fever"], **only("F1", "T"))[0].note == "filtered"


def test_broader_respects_the_filter(kb: KnowledgeBase) -> None:
    def broader(**filter: Any) -> Any:
        return kb.link(["feverish"], k=8, **BROADER, filter=filter)[0].cui

    assert broader(allow=["F1", "F2", "F"]) == "F"
    assert broader(allow=["F", "P", "T"]) == "T"
    assert broader(types=["T184"]) == "F"
    assert broader(types=["T184"], deny=["F"]) is None
    assert broader(deny=["F"]) == "T"
    assert broader(deny=["T"]) == "F"
    # Filters of names leave a concept only by its names.
    assert broader(sources=["A"]) == "T"
    assert broader(sources=["B"]) is None
    labels: Any = {"labels": ["SIGN"], "label_types": {"SIGN": ["T184"]}}
    assert kb.link(["feverish"], **BROADER, **labels)[0].cui == "F"
    labels["label_types"] = {"SIGN": ["T023"]}
    assert kb.link(["feverish"], **BROADER, **labels)[0].note == "below_threshold"


def test_broader_maps_retired_parents(kb: KnowledgeBase) -> None:
    assert kb.link(["feverish"], **only("O", "T"))[0].cui == "T"
    assert kb.link(["feverish"], **only("O", "OLD"))[0].cui == "T"


def test_broader_uses_the_overlay(folder: Path, tmp_path: Path) -> None:
    kb = load_kb(shutil.copytree(folder, tmp_path / "kb"))
    added = [Concept("L", ["organ"]), Concept("H", ["it"], parents=["L"])]
    kb = add_concepts(kb, added)
    assert kb.link(["feverish"], **only("H", "L"))[0].cui == "L"
    kb = remove_concepts(kb, ["F"])
    settings: Any = {**BROADER, "filter": {"allow": ["F1", "F2", "F"]}}
    assert kb.link(["feverish"], **settings)[0].note == "below_threshold"


def make_doc(nlp: Language) -> Doc:
    doc = Doc(nlp.vocab, words=["feverish", "and", "heart"])
    doc.ents = [Span(doc, 0, 1, "SIGN"), Span(doc, 2, 3, "ORGAN")]
    return doc


@pytest.fixture(scope="module")
def nlp(folder: Path) -> Language:
    nlp = spacy.blank("en")
    config = {
        "kb": str(folder),
        "threshold": 1.0,
        "broader": True,
        "filter": {"deny": ["T"]},
        "kb_ents_attr": "kb_ents",
    }
    nlp.add_pipe("sapbert_linker", config=config)
    return nlp


def test_broader_linker_keeps_the_candidates(nlp: Language) -> None:
    one, other = nlp(make_doc(nlp)).ents
    assert (one._.cui, one.kb_id_, one._.link_note) == ("F", "F", "broader")
    assert one._.candidates
    assert one._.kb_ents == []  # none of them is what the mention means
    assert (other._.cui, other._.link_note) == ("H", None)
    assert other._.kb_ents[0] == ("H", 1.0)


def test_broader_can_be_set_for_one_call(nlp: Language) -> None:
    off = {"sapbert_linker": {"broader": False}}
    assert nlp(make_doc(nlp), component_cfg=off).ents[0].kb_id_ == "NIL"
    linker = nlp.get_pipe("sapbert_linker")
    linker.options = replace(linker.options, broader=False)
    try:
        assert nlp(make_doc(nlp)).ents[0]._.link_note == "below_threshold"
        on = {"sapbert_linker": {"broader": True}}
        (doc,) = nlp.pipe([make_doc(nlp)], component_cfg=on)
        assert doc.ents[0].kb_id_ == "F"
    finally:
        linker.options = replace(linker.options, broader=True)


def test_broader_concept_is_in_the_span_group(folder: Path) -> None:
    nlp = spacy.blank("en")
    config = {"kb": str(folder), "threshold": 1.0, "broader": True, "spans_key": "sc"}
    deny: Any = {"deny": ["T"]}
    nlp.add_pipe("sapbert_linker", config={**config, "filter": deny})
    doc = Doc(nlp.vocab, words=["heart", "feverish"])
    doc.spans["sc"] = [doc[0:1], doc[1:2]]
    attrs = nlp(doc).spans["sc"].attrs
    assert attrs["link_note"] == [None, "broader"]
    assert attrs["cui"] == ["H", "F"]


def test_broader_note_round_trips_in_jsonl(nlp: Language, tmp_path: Path) -> None:
    file = io.BytesIO()
    load_writer("jsonl")(describe_docs([("d", nlp(make_doc(nlp)))]), file)
    entity = json.loads(file.getvalue())["entities"][0]
    assert (entity["cui"], entity["note"]) == ("F", "broader")
    chosen = [c for c in entity["candidates"] if c["cui"] == "F"]
    assert entity["score"] == (chosen[0]["score"] if chosen else None)
    path = tmp_path / "linked.jsonl"
    path.write_bytes(file.getvalue())
    ((_, doc),) = read_docs(path, spacy.blank("en"))
    assert [ent.kb_id_ for ent in doc.ents] == ["F", "H"]


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_broader_other_value_is_an_error(kb: KnowledgeBase, value: Any) -> None:
    with pytest.raises(SapbertError, match="E335.*`broader`"):
        kb.link(["fever"], broader=value)


def test_explain_mention_names_the_broader_concept(kb: KnowledgeBase) -> None:
    def explain(mention: str, expected: str, **settings: Any) -> Any:
        options = change_options(DEFAULT_OPTIONS, {**only("F", "F1", "F2"), **settings})
        context = MentionContext(mention)
        return explain_mention(kb, context, options=options, expected=expected)

    found = explain("feverish", "F")
    assert (found.cui, found.note, found.broader) == ("F", "broader", "fever")
    assert (found.expected.cause, found.suggestions) == (None, [])
    assert explain("feverish", "F", broader=False).broader is None
    assert explain("feverish", "NIL").suggestions == ["Set `broader = false`."]
    below = explain("acute feverx", "F1")
    assert below.candidates[0]["cui"] == "F1"
    assert (below.cui, below.expected.cause) == ("F", "not accepted")
    assert any("`threshold`" in text for text in below.suggestions)
