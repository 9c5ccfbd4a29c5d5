"""/link, /mentions, /concepts and /search, over HTTP."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from .conftest import Client

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from spacy_sapbert.serve.requests import LinkAnswer  # noqa: E402

TEXT = "😀 Fever after a heart attack."


def test_link_finds_the_concepts_of_each_text(service: Client) -> None:
    answer = service.post("/link", {"texts": [TEXT, "", "Diabetes."], "k": 1})
    assert answer.status == 200
    first, empty, last = answer.json()["documents"]
    found = [(e["start"], e["end"], e["cui"]) for e in first["entities"]]
    assert found == [(2, 7, "C0000004"), (16, 28, "C0000001")]
    assert first["entities"][1]["name"] == "Myocardial infarction"
    assert len(first["entities"][1]["candidates"]) == 1
    assert empty == {"entities": [], "error": None}
    assert [e["cui"] for e in last["entities"]] == ["C0000005"]


@pytest.mark.smoke
def test_link_gives_what_the_command_writes(service: Client, sample_kb: Path) -> None:
    from spacy_sapbert.formats.entities import describe_entities
    from spacy_sapbert.pipeline.running import complete_pipeline, load_pipeline

    nlp = load_pipeline(None)
    complete_pipeline(nlp, kb=str(sample_kb), mentions="names")
    expected = json.loads(json.dumps(describe_entities(nlp(TEXT))))
    answer = service.post("/link", {"texts": [TEXT]})
    assert LinkAnswer.model_validate_json(answer.body, strict=True)
    (document,) = answer.json()["documents"]
    assert {one.pop("certainty") for one in document["entities"]} <= {"sure", "unsure"}
    assert document["entities"] == expected


def test_link_refuses_a_text_that_takes_hours_and_links_the_others(
    service: Client,
) -> None:
    answer = service.post("/link", {"texts": ["fever", "(" * 100_001]})
    first, second = answer.json()["documents"]
    assert [e["cui"] for e in first["entities"]] == ["C0000004"]
    assert second["entities"] == []
    assert second["error"]["code"] == "E536"


def test_mentions_are_linked_alone_with_their_labels(service: Client) -> None:
    body = {"mentions": ["heart attack", "MI", "   "], "types": ["T047"]}
    answer = service.post("/mentions", {**body, "labels": ["A", "B", "C"]}).json()
    cuis = [one["cui"] for one in answer["mentions"]]
    assert cuis == ["C0000001", "C0000001", None]
    assert answer["mentions"][1]["candidates"][0]["tie"] == "id"
    assert answer["mentions"][2]["note"] == "empty"
    assert len(answer["kb"]) == 64


def test_filters_and_k_are_those_of_the_request_alone(service: Client) -> None:
    limited = service.post("/mentions", {"mentions": ["fever"], "deny": ["C0000004"]})
    assert limited.json()["mentions"][0]["candidates"][0]["cui"] != "C0000004"
    free = service.post("/mentions", {"mentions": ["fever"], "k": 2}).json()
    assert free["mentions"][0]["cui"] == "C0000004"
    assert len(free["mentions"][0]["candidates"]) == 2


def test_any_option_of_linking_is_a_setting_of_a_request(service: Client) -> None:
    mention = {"mentions": ["MI"], "labels": ["X"]}
    settings = {"ambiguous": "nil", "candidate_threshold": 1}
    (found,) = service.post("/mentions", {**mention, **settings}).json()["mentions"]
    assert (found["cui"], found["note"]) == (None, "ambiguous")
    assert len(found["candidates"]) == 2
    typed = {"label_types": {"X": ["T184"]}}
    (found,) = service.post("/mentions", {**mention, **typed}).json()["mentions"]
    assert {t for one in found["candidates"] for t in one["types"]} == {"T184"}
    assert service.post("/mentions", {**mention, "ambiguous": "no"}).status == 422


def test_an_unknown_type_is_an_error_also_without_mentions(service: Client) -> None:
    answer = service.post("/link", {"texts": ["nothing"], "types": ["T999"]})
    assert (answer.status, answer.code) == (422, "E332")


@pytest.mark.parametrize("text", ["nothing", "Fever."])
@pytest.mark.parametrize(
    ("settings", "code"), [({"codes": ["RXNORM"]}, "E332"), ({"allow": ["C1"]}, "E470")]
)
def test_a_setting_that_cannot_be_met_is_an_error(
    service: Client, text: str, settings: dict[str, list[str]], code: str
) -> None:
    answer = service.post("/link", {"texts": [text], **settings})
    assert (answer.status, answer.code) == (422, code)


def test_concept_has_names_codes_and_its_place(service: Client) -> None:
    found = service.get("/concepts/C0000001?related=2").json()
    assert found["name"] == "Myocardial infarction"
    assert found["codes"] == {"ICD10CM": ["I21"]}
    assert found["parents"] == [{"cui": "C0000003", "name": "Heart disease"}]
    assert len(found["related"]) == 2
    parent = service.get("/concepts/C0000003").json()
    assert parent["children"] == [{"cui": "C0000001", "name": "Myocardial infarction"}]
    assert parent["children_total"] == 1


def test_concept_is_found_by_a_retired_id(service: Client) -> None:
    assert service.get("/concepts/C9999999").json()["cui"] == "C0000001"


def test_search_has_names_that_begin_with_the_text_first(service: Client) -> None:
    found = service.get("/search?q=heart%20d&k=3").json()["concepts"]
    assert found[0]["cui"] == "C0000003"
    assert found[0]["alias"] == "Heart disease"
    typed = service.get("/search?q=heart&types=T121").json()["concepts"]
    assert [one["cui"] for one in typed] == ["C0000006"]


@pytest.mark.parametrize(
    ("text", "number"),
    [("heart att", 1), ("attac", 1), ("heart attack", 5), ("heart pain", 5)],
)
def test_an_unfinished_word_has_nothing_near_it(
    service: Client, text: str, number: int
) -> None:
    found = service.get(f"/search?q={quote(text)}&k=5").json()["concepts"]
    assert len(found) == number


def test_metrics_count_requests_by_route(service: Client) -> None:
    service.get("/concepts/C0000005")
    text = service.get("/metrics").body.decode()
    assert 'sapbert_requests_total{method="GET",route="/concepts/{cui:path}"' in text
    assert "C0000005" not in text
    assert "sapbert_batch_jobs_count" in text
