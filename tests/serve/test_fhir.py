"""FHIR R4: every answer is checked against the published models of its resources."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from spacy_sapbert.serve.protocols.fhir import OPERATIONS
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import BEARER, LocalClient, Reply

# R4B changed no resource that is used here.
models = pytest.importorskip("fhir.resources.R4B", reason="`fhir.resources` is missing")

ICD = "http://hl7.org/fhir/sid/icd-10-cm"
SNOMED = "http://snomed.info/sct"
LOINC = "http://loinc.org"
OWN = "urn:spacy-sapbert:concepts"
CONCEPTS = [
    Concept(
        "C1",
        ["Myocardial infarction", "heart attack", "infarto de miocardio"],
        types=["T047"],
        codes={"ICD10CM": ["I21"], "SNOMEDCT_US": ["22298006"], "MSH": ["D009203"]},
        parents=["C3"],
        definition="Death of heart muscle.",
        retired=["C91"],
        languages={"ENG": [0, 1], "SPA": [2]},
        sources={"SNOMEDCT_US": [0], "ICD10CM": [1], "SCTSPA": [2]},
    ),
    Concept(
        "C2",
        ["Old infarction"],
        codes={"ICD10CM": ["I25.2"]},
        parents=["C3"],
        sources={"ICD10CM": [0]},
    ),
    Concept(
        "C3",
        ["Heart disease"],
        codes={"ICD10CM": ["I51", "I51.9"], "SNOMEDCT_US": ["56265001"]},
        parents=["C4"],
        sources={"SNOMEDCT_US": [0]},
    ),
    Concept("C4", ["Disease"], types=["T047"], codes={"SNOMEDCT_US": ["64572001"]}),
    Concept(
        "C5",
        ["Fever"],
        codes={"ICD10CM": ["R50"]},
        related_codes={
            "narrower": {"SNOMEDCT_US": ["426000000"]},
            "broader": {"MSH": ["D009203", "D005334"]},
        },
    ),
]


def list_problems(model: Any, place: str) -> Iterator[str]:
    """Yield what the published models do not check: fixed codes and empty arrays."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        extra = field.json_schema_extra or {}
        allowed = extra.get("enum_values") if isinstance(extra, dict) else None
        for one in value if isinstance(value, list) else [value]:
            if allowed and one is not None and one not in allowed:
                yield f"{place}.{name}: {one}"
            if hasattr(type(one), "model_fields"):
                yield from list_problems(one, f"{place}.{name}")


def has_empty(value: Any) -> bool:
    if isinstance(value, (dict, list)) and value:
        return any(map(has_empty, value.values() if isinstance(value, dict) else value))
    return value in ([], {}, "", None)


def check(answer: Reply, status: int = 200) -> dict[str, Any]:
    """Return the resource of an answer, if it is valid."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/fhir+json"
    data: dict[str, Any] = answer.json()
    kind = models.get_fhir_model_class(data["resourceType"])
    model = kind.model_validate_json(answer.body)
    assert not [*list_problems(model, data["resourceType"])]
    assert not has_empty(data)
    assert json.loads(model.model_dump_json()).keys() == data.keys()
    return data


def check_error(answer: Reply, status: int, issue: str) -> None:
    """Check that an answer is an OperationOutcome with an issue."""
    outcome = check(answer, status)
    assert outcome["resourceType"] == "OperationOutcome"
    assert [one["code"] for one in outcome["issue"]] == [issue]


def values(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a resource that have a value, by name."""
    assert resource["resourceType"] == "Parameters"
    return {
        one["name"]: one[key]
        for one in resource["parameter"]
        for key in one
        if key.startswith("value")
    }


def parts(resource: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the parameters with parts of a name, each as values by name."""
    found = [one["part"] for one in resource["parameter"] if one["name"] == name]
    return [values({"resourceType": "Parameters", "parameter": one}) for one in found]


def properties(resource: dict[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in parts(resource, "property"):
        found.setdefault(one["code"], []).append(one["value"])
    return found


@pytest.fixture(scope="module")
def fhir(open_local, make_kb, tmp_path_factory) -> LocalClient:
    folder = tmp_path_factory.mktemp("fhir")
    return open_local(make_kb(folder, CONCEPTS, backend="exact"))


def ask(client: LocalClient, operation: str, **given: Any) -> dict[str, Any]:
    """Send an operation by GET and by POST, which must answer the same."""
    kinds = {int: "valueInteger", bool: "valueBoolean", str: "valueString"}
    sent = [
        {"name": name, kinds[type(value)]: value}
        for name, some in given.items()
        for value in (some if isinstance(some, list) else [some])
    ]
    query = {k: str(v).lower() if v is True else v for k, v in given.items()}
    found = check(client.get(f"/fhir/{operation}", query))
    body = {"resourceType": "Parameters", "parameter": sent}
    posted = check(client.post(f"/fhir/{operation}", body))
    for one in (found, posted):
        one.get("expansion", {}).pop("identifier", None)
        one.get("expansion", {}).pop("timestamp", None)
    assert posted == found
    return found


def test_lookup_has_names_with_languages_and_parents_as_codes(fhir):
    found = ask(fhir, "CodeSystem/$lookup", system=ICD, code="I21")
    assert values(found)["name"] == "ICD10CM"
    assert values(found)["display"] == "heart attack"  # the vocabulary's own name
    assert parts(found, "designation") == [
        {"language": "en", "value": "Myocardial infarction"},
        {"language": "en", "value": "heart attack"},
        {"language": "es", "value": "infarto de miocardio"},
    ]
    assert properties(found) == {
        "definition": ["Death of heart muscle."],
        "semanticType": ["T047"],
        "concept": ["C1"],
        "parent": ["I51", "I51.9"],
    }
    kinds = [one["part"][1] for one in found["parameter"] if one["name"] == "property"]
    assert {"name": "value", "valueCode": "I51"} in kinds
    retired = properties(ask(fhir, "CodeSystem/$lookup", system=OWN, code="C91"))
    assert (retired["inactive"], retired["concept"]) == ([True], ["C1"])
    assert retired["parent"] == ["C3"]


def test_lookup_has_only_the_properties_that_are_asked_for(fhir):
    def look(*names: str) -> dict[str, Any]:
        query = {"system": SNOMED, "code": "56265001", "property": [*names]}
        return ask(fhir, "CodeSystem/$lookup", **query)

    assert properties(look("child")) == {"child": ["22298006"]}
    assert properties(look("parent")) == {"parent": ["64572001"]}
    names = [one["name"] for one in look("parent")["parameter"]]
    assert names == ["name", "display", "property"]
    assert parts(look("designation"), "designation") == [{"value": "Heart disease"}]
    assert not properties(look("nothing"))
    query = {"system": SNOMED, "code": "22298006", "displayLanguage": "es-MX"}
    in_spanish = ask(fhir, "CodeSystem/$lookup", **query)
    assert values(in_spanish)["display"] == "infarto de miocardio"


PATHS = [f"/fhir/{resource}/${name}" for resource, name, *_ in OPERATIONS]
CODING = {"system": ICD, "code": "I21"}
LOOK, EXPAND = "CodeSystem/$lookup", "ValueSet/$expand"


@pytest.mark.parametrize(
    ("operation", "query", "status", "issue"),
    [
        (LOOK, {"system": ICD, "code": "I22"}, 404, "not-found"),
        (LOOK, {"system": ICD}, 422, "invalid"),
        (LOOK, {"coding": "I21"}, 422, "invalid"),
        ("ValueSet/$validate-code", {"code": "I21"}, 422, "invalid"),
        ("CodeSystem/$validate-code", {"code": "I21"}, 422, "invalid"),
        (EXPAND, {"url": "http://unknown.example"}, 404, "not-found"),
        *(
            ("ConceptMap/$translate", {**CODING, **more}, 404, "not-found")
            for more in ({"url": "http://unknown.example"}, {"targetsystem": LOINC})
        ),
    ],
)
def test_a_query_that_cannot_be_answered_is_an_outcome(
    fhir, operation, query, status, issue
):
    check_error(fhir.get(f"/fhir/{operation}", query), status, issue)


# What is no JSON, or no object, is in test_requests.py.
@pytest.mark.parametrize("path", PATHS)
def test_a_bad_body_or_parameter_is_an_outcome(fhir, path):
    for body, kind in (
        (b'{"resourceType": "Patient"}', "json"),
        (b"<Parameters/>", "fhir+xml"),
        (b"code=I21", "x-www-form-urlencoded"),
    ):
        headers = {"content-type": f"application/{kind}"}
        check_error(fhir.send("POST", path, body, headers), 422, "invalid")
    for parameter in (
        {"name": "coding", "valueCoding": {"system": 1, "code": [], "property": "x"}},
        {"name": "coding", "valueCoding": {**CODING, "code": "\ud800"}},
        {"name": "coding", "valueString": "I21"},
        {"name": "url"},
    ):
        sent = {"resourceType": "Parameters", "parameter": [parameter]}
        check_error(fhir.post(path, sent), 422, "invalid")


def test_every_error_below_fhir_is_an_outcome(fhir, strict):
    for path in ("/fhir/CodeSystem/$nothing", "/fhir/Patient/1", "/fhir"):
        check_error(fhir.get(path), 404, "not-found")
    for method in ("DELETE", "PUT", "PATCH"):
        answer = fhir.send(method, "/fhir/ValueSet/$expand")
        check_error(answer, 405, "not-supported")
        assert {*answer.headers["allow"].split(", ")} <= {"GET", "POST"}
    other = {"host": "evil.example"}
    check_error(fhir.get("/fhir/metadata", **other), 421, "invalid")
    page = {"origin": "http://evil.example"}
    check_error(fhir.get("/fhir/metadata", **page), 403, "forbidden")
    answer = strict.get("/fhir/metadata")
    check_error(answer, 401, "login")
    assert answer.headers["www-authenticate"] == "Bearer"
    check(strict.get("/fhir/metadata", **BEARER))
    long = strict.post("/fhir/ValueSet/$expand", "x" * 3_000, **BEARER)
    check_error(long, 413, "too-long")
    assert "error" in strict.get("/kb").json()  # other paths have their own form


ALL = f"{ICD}?fhir_vs"


@pytest.mark.parametrize(
    ("url", "coding", "result", "shown"),
    [
        (ALL, CODING, True, True),
        (f"{ALL}|2025", CODING, True, True),
        (ALL, {**CODING, "display": '"Heart attack".'}, True, True),
        (ALL, {**CODING, "display": "fever"}, False, True),
        (ALL, {**CODING, "code": "I99"}, False, False),
        (OWN, CODING, False, False),
        ("http://unknown.example", CODING, False, False),
        (OWN, {"system": OWN, "code": "C91"}, True, True),
    ],
)
def test_validate_code_of_a_value_set(fhir, url, coding, result, shown):
    found = values(ask(fhir, "ValueSet/$validate-code", url=url, **coding))
    assert found["result"] is result
    assert ("message" in found) is (not result)
    assert ("display" in found) is shown


def test_a_coding_is_a_system_and_a_code(fhir):
    def send(path: str, *more: Any, **coding: str) -> dict[str, Any]:
        sent = {"name": "coding", "valueCoding": {**CODING, **coding, "version": "1"}}
        body = {"resourceType": "Parameters", "parameter": [sent, *more]}
        return check(fhir.post(f"/fhir/{path}", body))

    assert values(send("CodeSystem/$lookup"))["display"] == "heart attack"
    assert values(send("CodeSystem/$validate-code"))["result"] is True
    other = send("CodeSystem/$validate-code", display="fever")
    assert values(other)["result"] is False
    url = {"name": "url", "valueUri": OWN}
    assert values(send("ValueSet/$validate-code", url))["result"] is False
    assert values(send("ConceptMap/$translate"))["result"] is True


def translations(resource: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = parts(resource, "match")
    return [
        (one["concept"]["system"], one["concept"]["code"], one["equivalence"])
        for one in found
    ]


def test_translate_says_which_codes_are_broader_and_narrower(fhir):
    def send(code: str, system: str) -> set[tuple[str, str]]:
        found = ask(fhir, "ConceptMap/$translate", code=code, system=system)
        return {(code, equivalence) for _, code, equivalence in translations(found)}

    narrow = "426000000"
    assert send("R50", ICD) == {
        ("C5", "relatedto"),
        (narrow, "narrower"),
        ("D009203", "wider"),
        ("D005334", "wider"),
    }
    # it is narrower than the concept, so that the codes of the concept are wider
    assert send(narrow, SNOMED) == {("C5", "wider"), ("R50", "wider")}
    known = ask(fhir, "CodeSystem/$validate-code", url=SNOMED, code=narrow)
    assert values(known)["result"] is False


def test_translate_returns_the_codes_of_the_same_concept(fhir):
    def send(**given: Any) -> dict[str, Any]:
        return ask(fhir, "ConceptMap/$translate", **given)

    found = send(system=ICD, code="I21")
    assert {*translations(found)} == {
        (SNOMED, "22298006", "equivalent"),
        ("urn:spacy-sapbert:MSH", "D009203", "relatedto"),  # a cross reference
        (OWN, "C1", "equivalent"),
    }
    assert values(found)["result"] is True
    one = send(system=ICD, code="I21", targetsystem=SNOMED)
    assert translations(one) == [(SNOMED, "22298006", "equivalent")]
    assert parts(one, "match")[0]["concept"]["display"] == "Myocardial infarction"
    none = send(system=ICD, code="I25.2", target=f"{SNOMED}?fhir_vs")
    assert values(none)["result"] is False
    assert "message" in values(none)
    assert values(send(system=LOINC, code="1"))["result"] is False


def codes(resource: dict[str, Any]) -> list[str]:
    return [one["code"] for one in resource["expansion"].get("contains", ())]


@pytest.mark.parametrize("search", [{}, {"filter": "heart"}])
def test_expand_pages_through_all_codes(fhir, search):
    whole = ask(fhir, EXPAND, url=ALL, **search)
    total = whole["expansion"]["total"]
    assert (whole["url"], len(codes(whole))) == (ALL, total)
    if search:
        assert "I51" in codes(whole)[:2]
    else:
        assert codes(whole) == ["I21", "I25.2", "I51", "I51.9", "R50"]
        first = {"system": ICD, "code": "I21", "display": "heart attack"}
        assert whole["expansion"]["contains"][0] == first
    paged = []
    for offset in range(0, total + 2, 2):
        page = ask(fhir, EXPAND, url=ALL, count=2, offset=offset, **search)
        assert page["expansion"]["total"] == total
        assert page["expansion"]["offset"] == offset
        paged += codes(page)
    assert paged == codes(whole)
    for given, found in (({"filter": "zzzzqq"}, 0), ({"count": 0, **search}, total)):
        none = ask(fhir, EXPAND, url=ALL, **given)
        assert (codes(none), none["expansion"]["total"]) == ([], found)


def test_what_is_too_large_is_refused_with_what_helps(fhir, monkeypatch):
    """$lookup said to send `count` and `offset`, which it does not have."""
    from spacy_sapbert.serve.protocols import fhir as routes

    monkeypatch.setattr(routes, "MOST", 3)
    answer = fhir.get("/fhir/ValueSet/$expand", {"url": ALL})
    check_error(answer, 422, "too-costly")
    assert b"Send `count` and `offset`." in answer.body
    page = ask(fhir, "ValueSet/$expand", url=ALL, count=100)
    assert (len(codes(page)), page["expansion"]["total"]) == (3, 5)
    monkeypatch.setattr(routes, "MOST", 0)
    query = {"system": SNOMED, "code": "56265001", "property": "child"}
    answer = fhir.get("/fhir/CodeSystem/$lookup", query)
    check_error(answer, 422, "too-costly")
    assert b"Leave out `child`." in answer.body


def test_metadata_lists_what_there_is(fhir):
    statement = check(fhir.get("/fhir/metadata"))
    assert statement["fhirVersion"] == "4.0.1"
    listed = {
        (resource["type"], operation["name"])
        for resource in statement["rest"][0]["resource"]
        for operation in resource["operation"]
    }
    assert listed == {(resource, name) for resource, name, *_ in OPERATIONS}
    terms = check(fhir.get("/fhir/metadata?mode=terminology"))
    assert terms["resourceType"] == "TerminologyCapabilities"
    uris = [one["uri"] for one in terms["codeSystem"]]
    assert uris == [OWN, ICD, "urn:spacy-sapbert:MSH", SNOMED]
