"""OpenRefine and INCEpTION, over HTTP.

The models of OpenRefine's answers are written from the JSON schemas that the W3C group
publishes with version 0.2 of the Reconciliation Service API.
"""

import json
from typing import Annotated, Any
from urllib.parse import urlencode

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from .conftest import Client, Reply

FORM = {"content-type": "application/x-www-form-urlencoded"}


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Type(Strict):
    id: str
    name: str


class Service(Strict):
    service_url: str
    service_path: str


class Template(Strict):
    url: Annotated[str, Field(pattern=r"\{\{id\}\}")]


class Preview(Template):
    width: int
    height: int


class Suggest(Strict):
    entity: Service
    type: Service
    property: Service


class Extend(Strict):
    propose_properties: Service
    property_settings: list[Any]


class Manifest(Strict):
    versions: Annotated[list[str], Field(min_length=1)]
    name: str
    identifierSpace: str
    schemaSpace: str
    serviceVersion: str
    defaultTypes: list[Type]
    view: Template
    preview: Preview
    suggest: Suggest
    extend: Extend


class Candidate(Strict):
    id: str
    name: str
    description: str
    score: float
    match: bool
    type: list[Type]


class Result(Strict):
    result: list[Candidate]


class Suggestion(Strict):
    id: str
    name: str
    description: str = ""
    notable: list[Type] = []


class Suggestions(Strict):
    result: list[Suggestion]


class Text(Strict):
    str: str


class Entity(Strict):
    id: str
    name: str


class Extended(Strict):
    meta: list[Entity]
    rows: dict[str, dict[str, list[Text | Entity]]]


BATCH = TypeAdapter(dict[str, Result])


def send_form(client: Client, **fields: Any) -> Reply:
    data = {name: json.dumps(value) for name, value in fields.items()}
    return client.send("POST", "/reconcile", urlencode(data).encode(), FORM)


def test_manifest_is_as_the_schema_has_it(service: Client) -> None:
    manifest = Manifest.model_validate_json(service.get("/reconcile").body)
    assert "0.2" in manifest.versions
    assert {"id": "T047", "name": "Disease or Syndrome (Disorders)"} in [
        one.model_dump() for one in manifest.defaultTypes
    ]
    assert manifest.suggest.entity.service_url == f"http://127.0.0.1:{service.port}"


def test_each_query_has_a_result(service: Client) -> None:
    queries: dict[str, Any] = {
        "q0": {"query": "heart attack", "limit": 2},
        "q1": {"query": "fever", "type": "T047"},
        "q2": {"query": "fever", "type": ["T184", "T047"], "type_strict": "any"},
        "q3": {"query": "fever", "type": "T999"},
        "q4": {"properties": [{"pid": "P1", "v": "x"}]},
        "q5": {"query": 7},
        "q6": "fever",
        "q7": {"query": "MI", "properties": [{"pid": "P1", "v": {"id": "x"}}]},
        "q8": {"query": ""},
        "": {"query": "aspirin"},
    }
    answer = send_form(service, queries=queries)
    found = BATCH.validate_json(answer.body)
    assert found.keys() == queries.keys()
    assert len(found["q0"].result) == 2
    first = found["q0"].result[0]
    assert (first.id, first.match, first.score) == ("C0000001", True, 100.0)
    assert not found["q0"].result[1].match
    assert "C0000004" not in [one.id for one in found["q1"].result]
    assert found["q2"].result[0].id == "C0000004"
    assert [found[key].result for key in ("q3", "q4", "q5", "q6")] == [[]] * 4
    assert not found["q7"].result[0].match  # two concepts have this name
    assert found["q8"].result == []
    assert found[""].result[0].id == "C0000006"


def test_queries_can_be_in_the_address(service: Client) -> None:
    queries = urlencode({"queries": json.dumps({"a": {"query": "fever"}})})
    found = BATCH.validate_json(service.get(f"/reconcile?{queries}").body)
    assert found["a"].result[0].id == "C0000004"


def test_only_a_name_matches_without_a_calibrated_threshold(service: Client) -> None:
    answer = send_form(service, queries={"q": {"query": "heart attacc"}})
    found = BATCH.validate_json(answer.body)["q"].result
    assert found
    assert not any(one.match for one in found)


@pytest.mark.parametrize(
    "body",
    [
        b"queries=[",
        b"queries=[]",
        b"queries=" + b"[" * 100_000,
        b"extend={}",
        b"extend=%7B%22ids%22%3A%5B1%5D%2C%22properties%22%3A%5B%5D%7D",
        b"\xff\xfe",
        b"queries=%FF",
        b"a&" * 1000,
    ],
)
def test_a_bad_form_is_an_error(service: Client, body: bytes) -> None:
    answer = service.send("POST", "/reconcile", body, FORM)
    assert (answer.status, answer.code) == (422, "E457")


def test_suggest_finds_concepts_types_and_properties(service: Client) -> None:
    address = "/reconcile/suggest"
    entities = Suggestions.model_validate_json(
        service.get(f"{address}/entity?prefix=heart%20d").body
    )
    assert entities.result[0].id == "C0000003"
    types = Suggestions.model_validate_json(
        service.get(f"{address}/type?prefix=disord").body
    )
    assert {one.id for one in types.result} == {"T047", "T184"}
    properties = Suggestions.model_validate_json(
        service.get(f"{address}/property?prefix=icd").body
    )
    assert [one.id for one in properties.result] == ["code:ICD10CM"]
    assert service.get(f"{address}/entity?prefix=").json() == {"result": []}


def test_extend_has_the_values_of_each_property(service: Client) -> None:
    names = ("code:ICD10CM", "definition", "parents", "types", "unknown")
    query = {
        "ids": ["C0000001", "C0000002", "nothing"],
        "properties": [{"id": name, "settings": {}} for name in names],
    }
    extended = Extended.model_validate_json(send_form(service, extend=query).body)
    assert [one.id for one in extended.meta] == [*names]
    row = extended.rows["C0000001"]
    assert row["code:ICD10CM"] == [Text(str="I21")]
    assert row["parents"] == [Entity(id="C0000003", name="Heart disease")]
    assert row["types"] == [Text(str="T047")]
    assert row["unknown"] == []
    assert extended.rows["C0000002"]["definition"] == []
    assert extended.rows["nothing"] == {name: [] for name in names}
    proposed = service.get("/reconcile/properties?type=T047&limit=3").json()
    assert [one["id"] for one in proposed["properties"]] == [
        "name",
        "definition",
        "types",
    ]


def test_preview_is_a_page_without_scripts(service: Client) -> None:
    answer = service.get("/reconcile/preview?id=C0000001")
    assert b"<h1>Myocardial infarction</h1>" in answer.body
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert service.get("/reconcile/preview?id=C1").status == 404


def test_inception_finds_items_and_one_item(service: Client) -> None:
    found = service.get("/inception?q=heart&qc=heart+attack&l=3").json()
    assert [one.keys() for one in found] == [{"id", "l", "d"}] * 3
    context = service.get("/inception?q=&qc=heart+attack&l=1").json()
    assert context[0]["id"] == "C0000001"
    one = service.get("/inception?id=C0000001").json()
    assert (one["id"], one["l"]) == ("C0000001", "Myocardial infarction")
    assert "Death of heart muscle" in one["d"]
    assert service.get("/inception?id=C1").status == 404
    assert service.get("/inception?q=&qc=&l=5").json() == []
