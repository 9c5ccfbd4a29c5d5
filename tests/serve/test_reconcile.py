"""OpenRefine: a proxy, and what is refused. Answers are in `answers`."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.linking.link import Linked
from spacy_sapbert.serve.protocols.reconcile_answers import (
    ReconcileQuery,
    describe_found,
    is_match,
)
from spacy_sapbert.serve.settings import read_public_url

from .conftest import BEARER

FORM = {"content-type": "application/x-www-form-urlencoded"}


def test_links_open_the_page_of_a_concept_behind_a_proxy(open_local, sample_kb):
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


def test_a_public_address_is_checked():
    for given in ("terms.example", "https://a.example?x=1"):
        with pytest.raises(SapbertError, match="E331"):
            read_public_url(given)
    assert read_public_url("https://a.example/") == "https://a.example"
    assert read_public_url(None) is None


def test_a_query_has_one_to_a_hundred_candidates():
    limits = (None, 0, -3.0, 2.9, 100, 1e9)
    queries = [ReconcileQuery(query="fever", limit=limit) for limit in limits]
    assert [query.k for query in queries] == [5, 1, 1, 2, 100, 100]


def test_a_query_that_says_more_than_a_concept_is_no_match():
    first: Any = {"cui": "C0000004", "alias": "Fever", "score": 0.9}
    link = Linked([{**first, "name": "Fever", "probability": 0.95}], None, "C0000004")
    for text in ("F/H fever", "fever?", "fever (R50.9)"):
        assert not is_match(text, link)
    assert is_match("high fever", link)


@pytest.mark.parametrize(
    ("probability", "scores"), [(0.93, [93.0, 50.04, 45.81]), (0.2, [20.0, 20.0, 20.0])]
)
def test_the_first_candidate_has_the_highest_score(probability, scores):
    """A client that sorts by the score chose the second one for "hedache"."""
    cosines = {"Headache": 0.1717, "Ache": 0.5004, "Head": 0.4581}
    found: Any = [
        {"cui": name, "name": name, "alias": name, "score": score, "types": []}
        for name, score in cosines.items()
    ]
    for one in found:
        one["probability"] = probability if one is found[0] else None
    shown = describe_found("hedache", Linked(found, None, "Headache"))
    assert [one["id"] for one in shown] == [*cosines]
    assert [one["score"] for one in shown] == scores


@pytest.mark.parametrize(
    "body",
    [
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
