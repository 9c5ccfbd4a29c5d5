"""OpenRefine, INCEpTION and FHIR, over HTTP.

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


class Feature(Strict):
    id: str
    value: float | bool


class Candidate(Strict):
    id: str
    name: str
    description: str
    score: float
    match: bool
    type: list[Type]
    features: list[Feature]


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
        b"",
        b"queries=",
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
    assert service.get("/inception").code == "E457"
    assert service.get("/inception?q=&qc=&l=5").json() == []


def values(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a resource that have a value, by name."""
    assert resource["resourceType"] == "Parameters"
    return {
        one["name"]: one[key]
        for one in resource["parameter"]
        for key in one
        if key.startswith("value")
    }


ICD = "http://hl7.org/fhir/sid/icd-10-cm"


def test_fhir_looks_up_a_code(service: Client) -> None:
    answer = service.get(f"/fhir/CodeSystem/$lookup?system={ICD}&code=I21")
    assert answer.headers["content-type"] == "application/fhir+json"
    found = values(answer.json())
    assert found["display"] == "Myocardial infarction"
    assert found["definition"].startswith("Death of heart muscle")
    body = {
        "resourceType": "Parameters",
        "parameter": [
            {"name": "coding", "valueCoding": {"system": ICD, "code": "I21"}}
        ],
    }
    posted = service.post("/fhir/CodeSystem/$lookup", body)
    assert posted.json() == answer.json()


@pytest.mark.parametrize(
    "query", [f"system={ICD}&code=I22", "system=http://loinc.org&code=1", "code=", ""]
)
def test_fhir_answers_an_unknown_code_with_an_outcome(
    service: Client, query: str
) -> None:
    answer = service.get(f"/fhir/CodeSystem/$lookup?{query}")
    assert answer.status == 404
    assert answer.json()["resourceType"] == "OperationOutcome"
    assert answer.json()["issue"][0]["code"] == "not-found"


def test_fhir_validates_a_code_and_its_display(service: Client) -> None:
    address = f"/fhir/CodeSystem/$validate-code?url={ICD}&code="
    assert values(service.get(f"{address}I21").json())["result"] is True
    right = service.get(f"{address}I21&display=heart+ATTACK").json()
    assert values(right)["result"] is True
    wrong = values(service.get(f"{address}I21&display=fever").json())
    assert (wrong["result"], wrong["display"]) == (False, "Myocardial infarction")
    assert values(service.get(f"{address}I99").json())["result"] is False
    in_set = f"/fhir/ValueSet/$validate-code?url={ICD}?fhir_vs&code=I21"
    assert values(service.get(in_set).json())["result"] is True


OWN = "urn:spacy-sapbert:concepts"
SNOMED = "http://snomed.info/sct"


@pytest.mark.parametrize("resource", ["CodeSystem", "ValueSet"])
@pytest.mark.parametrize(
    ("given", "result"),
    [
        ({"url": ICD, "system": ICD, "code": "I21"}, True),
        ({"url": f"{ICD}?fhir_vs", "system": ICD, "code": "I21"}, True),
        ({"url": f"{ICD}?fhir_vs|2025", "system": ICD, "code": "I21"}, True),
        ({"url": OWN, "system": OWN, "code": "C0000001"}, True),
        ({"system": ICD, "code": "I21"}, True),
        ({"url": ICD, "system": OWN, "code": "C0000001"}, False),
        ({"url": OWN, "system": ICD, "code": "I21"}, False),
        ({"url": "http://unknown.example", "system": ICD, "code": "I21"}, False),
        ({"url": "http://unknown.example", "code": "I21"}, False),
        ({"url": ICD, "system": SNOMED, "code": "22298006"}, False),
        ({"system": SNOMED, "code": "22298006"}, False),
        ({"url": ICD, "code": "C0000001"}, False),
        ({"url": ICD}, False),
    ],
)
def test_fhir_validates_a_code_of_its_system_in_the_value_set(
    service: Client, resource: str, given: dict[str, str], result: bool
) -> None:
    answer = service.get(f"/fhir/{resource}/$validate-code?{urlencode(given)}")
    assert answer.status == 200
    found = values(answer.json())
    assert found["result"] is result
    assert ("message" in found) is not result
    assert found.get("display") == ("Myocardial infarction" if result else None)


@pytest.mark.parametrize(
    ("codings", "result", "shown"),
    [
        ([(SNOMED, "22298006", None), (ICD, "I21", None)], True, True),
        ([(ICD, "I21", "fever"), (ICD, "I21", "heart attack")], True, True),
        ([(ICD, "I21", "fever")], False, True),
        ([(SNOMED, "22298006", None), (ICD, "I99", None)], False, False),
        ([], False, False),
    ],
)
def test_fhir_validates_all_codings_of_a_concept(
    service: Client,
    codings: list[tuple[str, str, str | None]],
    result: bool,
    shown: bool,
) -> None:
    coding = [
        {"system": system, "code": code, **({"display": display} if display else {})}
        for system, code, display in codings
    ]
    parameters = [
        {"name": "url", "valueUri": f"{ICD}?fhir_vs"},
        {"name": "codeableConcept", "valueCodeableConcept": {"coding": coding}},
    ]
    body = {"resourceType": "Parameters", "parameter": parameters}
    answer = service.post("/fhir/ValueSet/$validate-code", body)
    assert answer.status == 200
    found = values(answer.json())
    assert found["result"] is result
    assert found.get("display") == ("Myocardial infarction" if shown else None)


def test_fhir_has_no_empty_arrays(service: Client) -> None:
    for url, count in ((ICD, 0), (ICD, 5), (OWN, 5)):
        query = urlencode({"filter": "heart", "count": count, "url": url})
        expanded = service.get(f"/fhir/ValueSet/$expand?{query}")
        assert expanded.status == 200
        assert ("contains" in expanded.json()["expansion"]) is (count > 0)
        assert b"[]" not in expanded.body


def test_fhir_expands_a_code_system_by_a_text(service: Client) -> None:
    address = "/fhir/ValueSet/$expand?filter=heart&count=3"
    own = service.get(address).json()
    assert own["resourceType"] == "ValueSet"
    assert len(own["expansion"]["contains"]) == 3
    coded = service.get(f"{address}&url={ICD}?fhir_vs").json()["expansion"]["contains"]
    shown = {"system": ICD, "code": "I21", "display": "Myocardial infarction"}
    assert coded == [shown]
    for query in ("", "?filter=", "?filter=a&count=x", "?filter=a&offset=5"):
        answer = service.get(f"/fhir/ValueSet/$expand{query}")
        assert answer.status == 422
        assert answer.json()["issue"][0]["code"] == "invalid"


def test_fhir_says_what_it_has(service: Client) -> None:
    found = service.get("/fhir/metadata").json()
    assert (found["resourceType"], found["fhirVersion"]) == (
        "CapabilityStatement",
        "4.0.1",
    )
    assert ICD in found["implementation"]["description"]
