"""OpenRefine: ids and codes as queries, properties that narrow, one batch, a proxy.

What is suggested, proposed and fetched is in `answers.jsonl`.
"""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.serve.protocols.reconcile_answers import ReconcileQuery
from spacy_sapbert.serve.settings import read_public_url
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import BEARER, LocalClient

FORM = {"content-type": "application/x-www-form-urlencoded"}
CONCEPTS = [
    Concept(
        "C0000001",
        ["Myocardial infarction", "heart attack"],
        types=["T047"],
        codes={"ICD10CM": ["I21"], "SNOMEDCT_US": ["22298006"]},
        retired=["C9999999"],
        sources={"SNOMEDCT_US": [0], "CHV": [1]},
    ),
    Concept(
        "C0000002",
        ["Heart attack clinic"],
        types=["T073"],
        codes={"SNOMEDCT_US": ["111"]},
        sources={"SNOMEDCT_US": [0]},
    ),
    Concept("C0000003", ["Fever"], types=["T184"], codes={"ICD10CM": ["R50"]}),
    Concept("C0000004", ["Chills"], types=["T184"], codes={"ICD10CM": ["R50"]}),
]


@pytest.fixture(scope="module")
def refined(open_local, make_kb, tmp_path_factory) -> LocalClient:
    folder = tmp_path_factory.mktemp("reconcile")
    return open_local(make_kb(folder, CONCEPTS, backend="exact"))


def ask(client: LocalClient, **query: Any) -> list[dict[str, Any]]:
    """Return the candidates of a query."""
    body = urlencode({"queries": json.dumps({"q": query})}).encode()
    answer = client.send("POST", "/reconcile", body, FORM)
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json()["q"]["result"]
    return found


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        *((id, ["C0000001"]) for id in ("C9999999", "c0000001")),
        *((code, ["C0000001"]) for code in (" 22298006 ", "icd10cm:i21")),
        *((name, ["C0000001"]) for name in ("heart attack", "(Heart attack).")),
        *(("myocardial  infarctions", ["C0000001"]), ("hart attack", []), ("N/A", [])),
        ("R50", []),  # a code of two
    ],
)
def test_an_id_a_code_or_a_name_matches_one_concept(refined, query, ids):
    found = ask(refined, query=query)
    assert [one["id"] for one in found if one["match"]] == ids
    assert len({one["id"] for one in found}) == len(found)
    if ids:
        assert (found[0]["id"], found[0]["score"]) == (ids[0], 100.0)
    if query == "R50":
        assert [one["id"] for one in found][:2] == ["C0000003", "C0000004"]


def test_properties_narrow(refined):
    def narrow(pid: str, value: Any) -> list[str]:
        properties = [{"pid": pid, "v": value}]
        found = ask(refined, query="heart attack", properties=properties)
        return [one["id"] for one in found]

    assert narrow("code:SNOMEDCT_US", "111") == ["C0000002"]
    assert narrow("code:SNOMEDCT_US", ["111", {"id": "22298006"}]) == [
        "C0000001",
        "C0000002",
    ]
    assert narrow("code:SNOMEDCT_US", "no such code") == []
    assert narrow("types", "T073") == ["C0000002"]
    assert "C0000001" in narrow("source", "CHV")
    assert "C0000002" not in narrow("source", "CHV")
    assert "C0000001" in narrow("name", "anything")  # it does not narrow
    assert "C0000001" in narrow("code:ICD10CM", "")  # an empty cell
    both = [{"pid": "code:ICD10CM", "v": "R50"}, {"pid": "types", "v": "T047"}]
    assert ask(refined, query="fever", properties=both) == []


def test_links_open_the_page_of_a_concept_behind_a_proxy(
    open_local, sample_kb, refined
):
    manifest = refined.get("/reconcile").json()
    assert manifest["view"]["url"] == "http://127.0.0.1/#look/{{id}}"
    public = "https://terms.example/sapbert"
    proxied = open_local(
        sample_kb, public_url=public, names=frozenset({"terms.example"})
    )
    manifest = proxied.get("/reconcile").json()
    assert manifest["view"]["url"] == f"{public}/#look/{{{{id}}}}"
    assert manifest["identifierSpace"] == f"{public}/concepts/"
    assert "http://" not in json.dumps(manifest["suggest"])
    # the page behind the proxy has the origin of the proxy
    assert proxied.get("/kb", origin="https://terms.example").status == 200
    assert proxied.get("/kb", origin="https://other.example").status == 403


@pytest.mark.parametrize("given", ["terms.example", "https://a.example?x=1"])
def test_a_public_address_is_checked(given):
    with pytest.raises(SapbertError, match="E331"):
        read_public_url(given)
    assert read_public_url("https://a.example/") == "https://a.example"
    assert read_public_url(None) is None


def test_the_type_that_is_preselected_allows_all_concepts(refined):
    """OpenRefine preselects the type that the most candidates of ten rows have."""
    manifest = refined.get("/reconcile").json()
    first = manifest["defaultTypes"][0]
    for query in ("heart attack", "R50", "fever"):
        for one in ask(refined, query=query):
            assert one["type"][0] == first
    assert ask(refined, query="fever", type=first["id"]) == ask(refined, query="fever")


# The answers of version 0.2 of the Reconciliation Service API, as the JSON schemas have
# them that the W3C group publishes.
NAMED = {"id": str, "name": str}
SERVICE = {"service_url": str, "service_path": str}
MANIFEST = {
    "versions": [str],
    "name": str,
    "identifierSpace": str,
    "schemaSpace": str,
    "serviceVersion": str,
    "defaultTypes": [NAMED],
    "view": {"url": str},
    "preview": {"url": str, "width": int, "height": int},
    "suggest": {"entity": SERVICE, "type": SERVICE, "property": SERVICE},
    "extend": {"propose_properties": SERVICE, "property_settings": [dict]},
}
CANDIDATE = NAMED | {"description": str, "score": float, "match": bool}
CANDIDATE |= {"type": [NAMED]}


def check_shape(value: Any, shape: Any) -> None:
    """Check that a value has exactly the fields of a shape, and their types."""
    if isinstance(shape, dict):
        assert value.keys() == shape.keys()
        for name, inner in shape.items():
            check_shape(value[name], inner)
    elif isinstance(shape, list):
        for one in value:
            check_shape(one, shape[0])
    else:
        assert type(value) is shape, value


def send_form(client: LocalClient, **fields: Any) -> Any:
    data = {name: json.dumps(value) for name, value in fields.items()}
    return client.send("POST", "/reconcile", urlencode(data).encode(), FORM).json()


def test_manifest_is_as_the_schema_has_it(local):
    manifest = local.get("/reconcile").json()
    check_shape(manifest, MANIFEST)
    assert "0.2" in manifest["versions"]
    disease = {"id": "T047", "name": "Disease or Syndrome (Disorders)"}
    assert disease in manifest["defaultTypes"]
    assert manifest["suggest"]["entity"]["service_url"] == "http://127.0.0.1"
    for page in ("view", "preview"):
        assert "{{id}}" in manifest[page]["url"]


def test_each_query_has_a_result(local):
    queries: dict[str, Any] = {
        "q0": {"query": "heart attack", "limit": 2},
        "q1": {"query": "fever", "type": "T047"},
        "q2": {"query": "fever", "type": ["T184", "T047"], "type_strict": "any"},
        "q4": {"properties": [{"pid": "P1", "v": "x"}]},
        "q5": {"query": 7},
        "q6": "fever",
        "q9": {"query": "fever", "limit": float("nan")},
        "": {"query": "aspirin"},
    }
    answer = send_form(local, queries=queries)
    check_shape(answer, dict.fromkeys(queries, {"result": [CANDIDATE]}))
    found = {key: one["result"] for key, one in answer.items()}
    assert len(found["q0"]) == 2
    first, second = found["q0"]
    assert (first["id"], first["match"], first["score"]) == ("C0000001", True, 100.0)
    assert not second["match"]
    assert "C0000004" not in [one["id"] for one in found["q1"]]
    assert found["q2"][0]["id"] == "C0000004"
    for key in ("q4", "q5", "q6", "q9"):
        assert found[key] == []
    assert found[""][0]["id"] == "C0000006"
    address = urlencode({"queries": json.dumps({"a": {"query": "fever"}})})
    inside = local.get(f"/reconcile?{address}").json()
    assert inside["a"]["result"][0]["id"] == "C0000004"


def test_a_query_has_one_to_a_hundred_candidates():
    limits = (None, 0, -3.0, 2.9, 100, 1e9)
    queries = [ReconcileQuery(query="fever", limit=limit) for limit in limits]
    assert [query.k for query in queries] == [5, 1, 1, 2, 100, 100]


@pytest.mark.parametrize(
    "body",
    [
        b"queries=[",
        b"queries=" + b"[" * 100_000,
        b"extend=%7B%22ids%22%3A%5B1%5D%2C%22properties%22%3A%5B%5D%7D",
        b"\xff\xfe",
    ],
)
def test_a_bad_form_is_an_error(local, body):
    answer = local.send("POST", "/reconcile", body, FORM)
    assert (answer.status, answer.code) == (422, "E457")


@pytest.mark.parametrize(
    ("ids", "names", "status"), [(3, 1, 200), (2, 2, 413), (4, 0, 413)]
)
def test_more_queries_or_values_than_documents_are_refused(strict, ids, names, status):
    """The limit is 3."""
    properties = [{"id": "name"}] * names
    extend = {"ids": ["C0000001"] * ids, "properties": properties}
    queries = {str(number): {"query": "x"} for number in range(max(ids, 2 * names))}
    for field in ({"extend": extend}, {"queries": queries}):
        body = urlencode({name: json.dumps(value) for name, value in field.items()})
        answer = strict.send("POST", "/reconcile", body.encode(), {**FORM, **BEARER})
        assert answer.status == status


def test_preview_is_a_page_without_scripts(local):
    answer = local.get("/reconcile/preview?id=C0000001")
    assert b"<h1>Myocardial infarction</h1>" in answer.body
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert local.get("/reconcile/preview?id=C1").status == 404
