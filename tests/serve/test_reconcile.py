"""OpenRefine: ids and codes as queries, properties that narrow, one batch, a proxy."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.serve.settings import read_public_url
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import LocalClient, OpenLocal

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
def refined(
    open_local: OpenLocal, make_kb: Any, tmp_path_factory: pytest.TempPathFactory
) -> LocalClient:
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
    "query",
    [
        *("C0000001", "C9999999", "c0000001", "I21", "i21", " 22298006 "),
        *("ICD10CM:I21", "icd10cm:i21", "SNOMEDCT:22298006"),
    ],
)
def test_an_id_or_a_code_is_a_query(refined: LocalClient, query: str) -> None:
    searched = refined.get("/search", {"q": query}).json()["concepts"]
    assert searched[0]["cui"] == "C0000001"
    first, *others = ask(refined, query=query)
    assert (first["id"], first["match"], first["score"]) == ("C0000001", True, 100.0)
    assert not any(one["match"] for one in others)
    assert "C0000001" not in [one["id"] for one in others]


@pytest.mark.parametrize(
    "query",
    [
        *("heart attack", "Heart attack.", '"Heart attack"', "(heart attack)"),
        *("Heart attack (disorder)", "heart attacks", "myocardial  infarctions"),
    ],
)
def test_a_name_matches_in_any_way_to_write_it(
    refined: LocalClient, query: str
) -> None:
    first, *others = ask(refined, query=query)
    assert (first["id"], first["match"], first["score"]) == ("C0000001", True, 100.0)
    assert not any(one["match"] for one in others)


@pytest.mark.parametrize("query", ["hart attack", "N/A", "None", "unknown", "NA"])
def test_what_is_no_name_matches_none(refined: LocalClient, query: str) -> None:
    assert not any(one["match"] for one in ask(refined, query=query))


def test_a_code_of_two_concepts_matches_none(refined: LocalClient) -> None:
    found = ask(refined, query="R50", limit=2)
    assert [one["id"] for one in found] == ["C0000003", "C0000004"]
    assert not any(one["match"] for one in found)
    (only,) = ask(refined, query="R50", type="T047") or [{}]
    assert only.get("match") in (None, False)


def test_properties_narrow(refined: LocalClient) -> None:
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


def test_queries_with_the_same_filter_are_one_batch(refined: LocalClient) -> None:
    service = refined.application.application.state.service
    submitted: list[int] = []
    submit = service.thread.submit

    def count(job: Any) -> Any:
        submitted.append(len(job.items))
        return submit(job)

    service.thread.submit = count
    try:
        queries = {f"q{n}": {"query": f"fever {n}", "limit": n + 1} for n in range(10)}
        body = urlencode({"queries": json.dumps(queries)}).encode()
        answer = refined.send("POST", "/reconcile", body, FORM).json()
    finally:
        service.thread.submit = submit
    assert submitted == [10]
    assert [len(answer[f"q{n}"]["result"]) for n in range(4)] == [1, 2, 3, 4]


def test_links_open_the_page_of_a_concept_behind_a_proxy(
    open_local: OpenLocal, sample_kb: Path, refined: LocalClient
) -> None:
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


@pytest.mark.parametrize(
    "given", ["terms.example", "ftp://a.example", "https://a.example?x=1", "https://"]
)
def test_a_public_address_is_checked(given: str) -> None:
    with pytest.raises(SapbertError, match="E331"):
        read_public_url(given)
    assert read_public_url("https://a.example/") == "https://a.example"
    assert read_public_url(None) is None


def test_the_type_that_is_preselected_allows_all_concepts(refined: LocalClient) -> None:
    """OpenRefine preselects the type that the most candidates of ten rows have."""
    manifest = refined.get("/reconcile").json()
    first = manifest["defaultTypes"][0]
    for query in ("heart attack", "R50", "fever"):
        for one in ask(refined, query=query):
            assert one["type"][0] == first
    assert ask(refined, query="fever", type=first["id"]) == ask(refined, query="fever")
