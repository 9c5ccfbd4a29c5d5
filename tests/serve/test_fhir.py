"""FHIR R4: every answer is checked against the published models of its resources."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from spacy_sapbert.serve.protocols.fhir import OPERATIONS
from spacy_sapbert.serve.protocols.fhir_codes import OWN
from spacy_sapbert.vocabularies.concepts import Concept
from tests.golden import read_golden

from .conftest import BEARER, JSON, LocalClient, Reply

# R4B changed no resource that is used here.
models = pytest.importorskip("fhir.resources.R4B", reason="`fhir.resources` is missing")

ICD = "http://hl7.org/fhir/sid/icd-10-cm"
SNOMED = "http://snomed.info/sct"
ANSWERS = Path(__file__).parent / "answers" / "fhir.json"
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


@pytest.fixture(scope="module")
def fhir(open_local, make_kb, tmp_path_factory) -> LocalClient:
    folder = tmp_path_factory.mktemp("fhir")
    return open_local(make_kb(folder, CONCEPTS, backend="exact"))


def test_answers_are_valid_and_the_same_for_get_and_post(fhir):
    """What they say is in `ANSWERS`."""
    for method, path, body, (status, *_) in read_golden(ANSWERS):
        sent = b"" if body is None else json.dumps(body).encode()
        answer = check(fhir.send(method, path, sent, JSON), status)
        operation, _, query = path.partition("?")
        if method == "GET" and status == 200 and "$" in path:
            given: list[dict[str, Any]] = [
                {"name": name, "valueInteger": int(value)}
                if name in ("count", "offset")
                else {"name": name, "valueString": value}
                for name, value in parse_qsl(query)
            ]
            parameters = {"resourceType": "Parameters", "parameter": given}
            posted = check(fhir.post(operation, parameters))
            for one in (answer, posted):
                one.get("expansion", {}).pop("identifier", None)
                one.get("expansion", {}).pop("timestamp", None)
            assert posted == answer, path


PATHS = [f"/fhir/{resource}/${name}" for resource, name, *_ in OPERATIONS]
CODING = {"system": ICD, "code": "I21"}


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


def translate(fhir: LocalClient, **query: Any) -> list[tuple[str, str, str | None]]:
    """Return equivalence, code and display of each match."""
    found = check(fhir.get("/fhir/ConceptMap/$translate", query))
    matches = [
        {part["name"]: part for part in one["part"]}
        for one in found["parameter"]
        if one["name"] == "match"
    ]
    codings = [one["concept"]["valueCoding"] for one in matches]
    return [
        (one["equivalence"]["valueCode"], coding["code"], coding.get("display"))
        for one, coding in zip(matches, codings, strict=True)
    ]


def test_a_related_code_has_a_name_of_its_own_or_none(fhir):
    """It had the name of the source: "Fever" stood beside D009203, an infarction."""
    mesh = translate(fhir, system=ICD, code="R50", targetsystem="urn:spacy-sapbert:MSH")
    assert mesh == [
        ("wider", "D005334", None),
        ("wider", "D009203", "Myocardial infarction"),
    ]
    (finding,) = translate(fhir, system=ICD, code="R50", targetsystem=SNOMED)
    assert finding == ("narrower", "426000000", None)


def test_a_translation_in_reverse_is_refused(fhir):
    """It was answered as if it were none."""
    query = {"system": ICD, "code": "R50", "targetsystem": SNOMED}
    path = "/fhir/ConceptMap/$translate"
    check_error(fhir.get(path, {**query, "reverse": "true"}), 422, "not-supported")
    asked = [{"name": name, "valueString": value} for name, value in query.items()]
    for reverse in (True, False):
        more = [*asked, {"name": "reverse", "valueBoolean": reverse}]
        answer = fhir.post(path, {"resourceType": "Parameters", "parameter": more})
        if reverse:
            check_error(answer, 422, "not-supported")
        else:
            assert check(answer) == check(fhir.get(path, query))
    assert translate(fhir, **query, reverse="false") == translate(fhir, **query)
    check_error(fhir.get(path, {**query, "reverse": "x"}), 422, "invalid")


@pytest.mark.parametrize("name", ["sourceCode", "targetCode"])
def test_a_translation_with_parameters_of_r5_is_refused(fhir, name):
    path, query = "/fhir/ConceptMap/$translate", {"system": ICD, name: "R50"}
    check_error(fhir.get(path, query), 422, "invalid")
    asked = [{"name": name, "valueString": value} for name, value in query.items()]
    answer = fhir.post(path, {"resourceType": "Parameters", "parameter": asked})
    check_error(answer, 422, "invalid")


HPO = "http://human-phenotype-ontology.org"
# An ontology gives codes without the prefix, UMLS those of HPO with it
PHENOTYPES = [
    Concept("HP:0001945", ["Fever"], codes={"HP": ["0001945"]}, parents=["C2"]),
    Concept("C2", ["Abnormal temperature"], codes={"HPO": ["HP:0004370"]}),
    Concept(
        "C3",
        ["Febrile convulsion"],
        codes={"MSH": ["D003294"], "ICD10CM": ["R56.0"]},
        related_codes={"broader": {"HP": ["0002373"]}},
    ),
]


@pytest.fixture(scope="module")
def phenotypes(open_local, make_kb, tmp_path_factory) -> LocalClient:
    folder = tmp_path_factory.mktemp("phenotypes")
    return open_local(make_kb(folder, PHENOTYPES, backend="exact"))


@pytest.mark.parametrize("prefix", ["", "HP:"])
@pytest.mark.parametrize("number", ["0001945", "0004370"])
def test_a_code_may_have_the_prefix_of_its_vocabulary(phenotypes, prefix, number):
    """Clients ask for HP:0001945, of which the knowledge base had 0001945."""
    query = {"system": HPO, "code": f"{prefix}{number}"}
    assert check(phenotypes.get("/fhir/CodeSystem/$lookup", query))
    found = check(phenotypes.get("/fhir/CodeSystem/$validate-code", query))
    assert found["parameter"][0] == {"name": "result", "valueBoolean": True}
    assert translate(phenotypes, **query)
    wrong = {"system": HPO, "code": f"MP:{number}"}
    check_error(phenotypes.get("/fhir/CodeSystem/$lookup", wrong), 404, "not-found")


def test_codes_of_hpo_have_its_prefix_as_in_fhir(phenotypes):
    for query in ({}, {"filter": "fever"}, {"count": 1}):
        found = check(phenotypes.get("/fhir/ValueSet/$expand", {"url": HPO, **query}))
        codes = [one["code"] for one in found["expansion"]["contains"]]
        assert codes == ["HP:0001945", "HP:0004370"][: 1 if query else 2]
    query = {"system": HPO, "code": "HP:0001945", "property": "parent"}
    answer = phenotypes.get("/fhir/CodeSystem/$lookup", query)
    parent = check(answer)["parameter"][-1]["part"][-1]
    assert parent == {"name": "value", "valueCode": "HP:0004370"}
    own = {"system": OWN, "targetsystem": HPO}
    assert translate(phenotypes, **own, code="HP:0001945") == [
        ("relatedto", "HP:0001945", "Fever")
    ]


def test_related_codes_have_the_prefix_or_not(phenotypes):
    mesh = {"system": "urn:spacy-sapbert:MSH", "targetsystem": HPO}
    for code in ("D003294", "MESH:D003294"):
        found = translate(phenotypes, **mesh, code=code)
        assert found == [("wider", "HP:0002373", None)]
    for code in ("0002373", "HP:0002373"):
        found = translate(phenotypes, system=HPO, code=code, targetsystem=ICD)
        assert found == [("narrower", "R56.0", "Febrile convulsion")]


def test_spellings_of_a_vocabulary_are_one_code_system(open_local, make_kb, tmp_path):
    """HPO writes cross references to ICD-9 and ICD9, which were two code systems."""
    concepts = [
        Concept("C1", ["Fever"], codes={"ICD-9": ["780.6"], "MSH": ["D005334"]}),
        Concept("C2", ["Headache"], codes={"ICD9": ["784.0"]}),
        Concept("C3", ["Rash"], related_codes={"related": {"icd9": ["782.1"]}}),
    ]
    client = open_local(make_kb(tmp_path, concepts, backend="exact"))
    listed = check(client.get("/fhir/metadata?mode=terminology"))["codeSystem"]
    addresses = [one["uri"].rpartition(":")[2] for one in listed]
    assert addresses == ["concepts", "ICD-9", "MSH"]
    for name in ("ICD-9", "ICD9", "icd9"):
        url = f"urn:spacy-sapbert:{name}"
        found = check(client.get("/fhir/ValueSet/$expand", {"url": url}))
        codes = [one["code"] for one in found["expansion"]["contains"]]
        assert codes == ["780.6", "784.0"]
        assert translate(client, system=url, code="782.1", targetsystem=OWN)


ALL = f"{ICD}?fhir_vs"


def test_what_is_too_large_is_refused_with_what_helps(fhir, monkeypatch):
    """$lookup said to send `count` and `offset`, which it does not have."""
    from spacy_sapbert.serve.protocols import fhir as routes

    monkeypatch.setattr(routes, "MOST", 3)
    answer = fhir.get("/fhir/ValueSet/$expand", {"url": ALL})
    check_error(answer, 422, "too-costly")
    assert b"Send `count` and `offset`." in answer.body
    page = check(fhir.get("/fhir/ValueSet/$expand", {"url": ALL, "count": 100}))
    expansion = page["expansion"]
    assert (len(expansion["contains"]), expansion["total"]) == (3, 5)
    monkeypatch.setattr(routes, "MOST", 0)
    query = {"system": SNOMED, "code": "56265001", "property": "child"}
    answer = fhir.get("/fhir/CodeSystem/$lookup", query)
    check_error(answer, 422, "too-costly")
    assert b"Leave out `child`." in answer.body
