"""Errors of the service itself are not those of a request, and show no path."""

import os
from pathlib import Path
from urllib.parse import urlencode

import pytest

from spacy_sapbert.errors import SapbertError, not_written
from spacy_sapbert.serve.problems import RequestError, describe_problem, status_of

from .conftest import Client, Start


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RequestError("E463", "Expected a note.", 404), 404, "E463"),
        (
            SapbertError(
                "E331", "Expected `types` to be texts, but got 1. Correct it."
            ),
            422,
            "E331",
        ),
        (not_written(path="/srv/kb", reason="full"), 500, "E465"),
        (SapbertError("E306", "/srv/kb: Expected a database, but x."), 500, "E465"),
        (OSError(28, "No space left on device", "/srv/kb"), 500, "E465"),
    ],
)
def test_only_errors_of_a_request_are_told(
    error: Exception, status: int, code: str
) -> None:
    assert status_of(error) == status
    assert describe_problem(error).code == code
    assert "/srv" not in str(describe_problem(error))


def test_a_damaged_knowledge_base_is_an_error_of_the_service(
    start_service: Start, own_kb: Path
) -> None:
    client = start_service(own_kb)
    path = own_kb / "v1" / "concepts.db"
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    for answer in (
        client.get("/concepts/C0000007"),
        client.post("/mentions", {"mentions": ["asthma"], "types": ["T047"]}),
    ):
        assert (answer.status, answer.code) == (500, "E465")
        assert str(own_kb) not in answer.body.decode()
        event = client.wait_for("request")
        assert (event["status"], event["code"]) == (500, "E306")


def test_a_bad_table_is_an_error_of_the_request_without_a_path(service: Client) -> None:
    answer = service.send("POST", "/column/read?name=a.csv", b"a,b\n1,2,3\n")
    assert answer.status == 422
    assert answer.json()["error"]["message"].startswith("table.csv:2: Expected ")


def test_a_limit_that_is_no_number_makes_the_query_invalid(service: Client) -> None:
    queries = urlencode({"queries": '{"q": {"query": "fever", "limit": NaN}}'})
    answer = service.get(f"/reconcile?{queries}")
    assert (answer.status, answer.json()) == (200, {"q": {"result": []}})


def test_a_missing_library_is_named_without_a_path(
    start_service: Start, sample_kb: Path, tmp_path: Path
) -> None:
    reason = "cannot import name 'x' from 'python_calamine' (/srv/calamine.py)"
    fake = tmp_path / "python_calamine.py"
    fake.write_text(f"raise ImportError({reason!r})\n", "utf8")
    folders = os.pathsep.join([str(tmp_path), *filter(None, [os.getenv("PYTHONPATH")])])
    client = start_service(sample_kb, PYTHONPATH=folders)
    answer = client.send("POST", "/column/read?name=a.xlsx", b"PK")
    assert (answer.status, answer.code) == (501, "E521")
    assert answer.json()["error"]["message"] == (
        "Expected python_calamine to be installed, but it is not. Run `pip install "
        "python-calamine`."
    )
