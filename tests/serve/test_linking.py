"""/link, /mentions, /concepts and /search, and what a person types into a field."""

import json
from urllib.parse import quote

import pytest

from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.serve.lookup import find_names
from spacy_sapbert.serve.requests import LinkAnswer, VerifyAnswer  # noqa: E402
from spacy_sapbert.vocabularies.concepts import Concept

TEXT = "😀 Fever after a heart attack."


def test_link_gives_what_the_command_writes(local, sample_kb):
    from spacy_sapbert.formats.entities import describe_entities
    from spacy_sapbert.pipeline.running import complete_pipeline, load_pipeline

    nlp = load_pipeline(None)
    complete_pipeline(nlp, kb=str(sample_kb), mentions="names")
    expected = json.loads(json.dumps(describe_entities(nlp(TEXT))))
    answer = local.post("/link", {"texts": [TEXT, ""]})
    assert LinkAnswer.model_validate_json(answer.body, strict=True)
    document, empty = answer.json()["documents"]
    assert empty == {"entities": [], "error": None}
    assert {one.pop("certainty") for one in document["entities"]} <= {"sure", "unsure"}
    assert document["entities"] == expected


def test_link_refuses_a_text_that_takes_hours_and_links_the_others(local):
    answer = local.post("/link", {"texts": ["fever", "(" * 100_001]})
    first, second = answer.json()["documents"]
    assert [e["cui"] for e in first["entities"]] == ["C0000004"]
    assert second["entities"] == []
    assert second["error"]["code"] == "E536"


def test_mentions_are_linked_alone_with_their_labels(local):
    body = {"mentions": ["heart attack", "MI", "   "], "types": ["T047"]}
    answer = local.post("/mentions", {**body, "labels": ["A", "B", "C"]}).json()
    cuis = [one["cui"] for one in answer["mentions"]]
    assert cuis == ["C0000001", "C0000001", None]
    assert answer["mentions"][1]["candidates"][0]["tie"] == "id"
    assert answer["mentions"][2]["note"] == "empty"
    assert len(answer["kb"]) == 64


def test_any_option_of_linking_is_a_setting_of_a_request(local):
    mention = {"mentions": ["MI"], "labels": ["X"]}
    settings = {"ambiguous": "nil", "candidate_threshold": 1}
    (found,) = local.post("/mentions", {**mention, **settings}).json()["mentions"]
    assert (found["cui"], found["note"]) == (None, "ambiguous")
    assert len(found["candidates"]) == 2
    typed = {"label_types": {"X": ["T184"]}}
    (found,) = local.post("/mentions", {**mention, **typed}).json()["mentions"]
    assert {t for one in found["candidates"] for t in one["types"]} == {"T184"}
    assert local.post("/mentions", {**mention, "ambiguous": "no"}).status == 422


def test_concept_has_names_codes_and_its_place(local):
    found = local.get("/concepts/C0000001?related=2").json()
    assert found["name"] == "Myocardial infarction"
    assert found["codes"] == {"ICD10CM": ["I21"]}
    assert found["parents"] == [{"cui": "C0000003", "name": "Heart disease"}]
    assert len(found["related"]) == 2
    path = [one["name"] for one in found["path"]]
    assert path == ["Heart disease", "Myocardial infarction"]
    assert local.get("/concepts/C9999999").json()["cui"] == "C0000001"  # retired
    parent = local.get("/concepts/C0000003").json()
    assert parent["children"] == [{"cui": "C0000001", "name": "Myocardial infarction"}]
    assert parent["children_total"] == 1


def test_search_has_names_that_begin_with_the_text_first(local):
    found = local.get("/search?q=heart%20d&k=3").json()["concepts"]
    assert found[0]["cui"] == "C0000003"
    assert found[0]["alias"] == "Heart disease"
    typed = local.get("/search?q=heart&types=T121").json()["concepts"]
    assert [one["cui"] for one in typed] == ["C0000006"]


@pytest.mark.parametrize(
    ("text", "cui", "alias"),
    [
        ("c9999999", "C0000001", "C9999999"),  # a retired id
        ("icd10cm:i21", "C0000001", "ICD10CM I21"),
        ("attack", "C0000001", "Heart attack"),  # a word inside a name
        ("disease card", "C0000003", "Cardiac disease"),
    ],
)
def test_search_knows_ids_codes_and_words_inside_names(local, text, cui, alias):
    first = local.get(f"/search?q={quote(text)}").json()["concepts"][0]
    assert (first["cui"], first["alias"]) == (cui, alias)


def test_kb_and_roots_describe_the_vocabulary(local):
    info = local.get("/kb").json()
    assert info["counts"]["concepts"] == 8
    assert info["reviews"] is False
    roots = local.get("/roots").json()["concepts"]
    assert roots == [{"cui": "C0000003", "name": "Heart disease"}]


NAMES = (
    *("Vitamin D deficiency", "VI nerve palsy", "Viral hepatitis", "60 minute test"),
    *("Type 2 diabetes", "Type II collagen", "Type 20 collagen", "Diabetes type 2"),
    *("Crohn's disease", "Ménière disease", "TNF alpha", "Type IIb collagen"),
)


@pytest.fixture(scope="module")
def typed_kb(make_kb, tmp_path_factory) -> KnowledgeBase:
    concepts = [Concept(f"C{n}", [name]) for n, name in enumerate(NAMES)]
    return load_kb(make_kb(tmp_path_factory.mktemp("typed"), concepts, backend="exact"))


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("vi", ["Viral hepatitis", "Vitamin D deficiency", "VI nerve palsy"]),
        (
            "type ii",
            ["Type 2 diabetes", "Type II collagen", "Type IIb collagen"]
            + ["Diabetes type 2"],
        ),
        ("type 2 di", ["Type 2 diabetes", "Diabetes type 2"]),
        ("crohn's", ["Crohn's disease"]),
        ("crohn’s dis", ["Crohn's disease"]),
        ("MÉNI", ["Ménière disease"]),
        ("tnf-al", ["TNF alpha"]),
        ("6", ["60 minute test", "VI nerve palsy"]),
        ("diabetes ii", ["Diabetes type 2", "Type 2 diabetes"]),
        ('" OR *', []),
        *(("", []), ("\ud800", [])),
    ],
)
def test_find_names(typed_kb, typed, names):
    assert [found["alias"] for found in find_names(typed_kb, typed, 10)] == names


def test_verify_says_which_ids_are_right(local, sample_kb):
    body = {"texts": ["heart attack", "fever"], "ids": ["C9999999", "C0000001"]}
    answer = local.post("/verify", {**body, "labels": ["", "Fever"]})
    verdicts = load_kb(sample_kb).verify(**body, labels=["", "Fever"])
    assert VerifyAnswer.model_validate_json(answer.body).verdicts == verdicts
    assert [v["verdict"] for v in answer.json()["verdicts"]] == ["retired", "wrong"]
    assert answer.json()["verdicts"][1]["better"] == "C0000004"
    for wrong in ({"ids": ["C1"]}, {"ids": ["C1"] * 3}, {"contexts": ["a"]}):
        refused = local.post("/verify", {**body, **wrong})
        assert refused.status == 422
        assert "as many" in refused.body.decode()
    assert local.post("/verify", {"texts": [], "ids": []}).json()["verdicts"] == []
