"""/openapi.json: every request has a name, examples that are true, and its errors."""

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from spacy_sapbert.serve.access import Access, Role
from spacy_sapbert.serve.description import read_examples
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.vocabularies.registry import read_vocabulary

from .conftest import Client, LocalClient, OpenLocal, Reply

jsonschema = pytest.importorskip("jsonschema", reason="`jsonschema` is missing")

SAMPLE = Path(__file__).parents[2] / "assets" / "sample" / "MRCONSO.RRF"
EXAMPLES = read_examples()
# They change the knowledge base in use, or need one that was taught.
NOT_RUN = {"POST /reviews/teach", "POST /reviews/switch"}
# Statuses that an answer may have beside 2xx, by what the request is.
METHODS = {"get", "post", "delete", "put"}


@pytest.fixture(scope="module")
def described(
    open_local: OpenLocal, make_kb: Any, tmp_path_factory: pytest.TempPathFactory
) -> LocalClient:
    """A service with the sample vocabulary, reviews and a document."""
    folder = tmp_path_factory.mktemp("described")
    kb = make_kb(folder, read_vocabulary(SAMPLE), backend="exact", order="none")
    client = open_local(kb, ReviewStore(folder / "reviews.db"))
    send_example(client, "POST /reviews/documents")  # which other examples are about
    return client


@pytest.fixture(scope="module")
def api(described: LocalClient) -> dict[str, Any]:
    found: dict[str, Any] = described.get("/openapi.json").json()
    return found


def list_requests(api: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    }


def send_example(client: LocalClient, request: str) -> Reply:
    """Send the example of a request."""
    method, _, path = request.partition(" ")
    example = EXAMPLES[request]
    for name, value in example.get("path", {}).items():
        path = path.replace(f"{{{name}}}", quote(value))
    if query := example.get("query"):
        path = f"{path}?{urlencode(query, doseq=True)}"
    body = example.get("body")
    if body is None:
        return client.send(method, path)
    if path == "/reconcile":
        return client.send(method, path, urlencode(body).encode())
    if isinstance(body, str):
        return client.send(method, path, body.encode())
    return client.post(path, body)


def check_schema(api: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    """Check a value against a schema of the description."""
    whole = {**schema, "components": api["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def answer_of(operation: dict[str, Any]) -> dict[str, Any]:
    (answer,) = (a for c, a in operation["responses"].items() if c.startswith("2"))
    content: dict[str, Any] = next(iter(answer["content"].values()))
    return content


def test_every_request_is_described(api: dict[str, Any]) -> None:
    requests = list_requests(api)
    ids = [operation["operationId"] for operation in requests.values()]
    assert len({*ids}) == len(ids)
    for request, operation in requests.items():
        assert re.fullmatch(r"[a-z][a-z_]*", operation["operationId"]), request
        assert operation["summary"], request
        assert operation["tags"], request
        schema = answer_of(operation).get("schema")
        assert schema, request
        for status, answer in operation["responses"].items():
            if status.startswith("2"):
                continue
            (content,) = answer["content"].values()
            named = "OperationOutcome" if "/fhir/" in request else "ErrorAnswer"
            assert content["schema"]["$ref"].endswith(f"/{named}")
        for parameter in operation.get("parameters", ()):
            assert parameter["schema"], request
    assert not [name for name in api["components"]["schemas"] if "-" in name]


def test_errors_depend_on_the_request(api: dict[str, Any]) -> None:
    requests = list_requests(api)
    assert {"403", "422", "401", "413", "500"} <= {*requests["POST /link"]["responses"]}
    assert "404" in requests["GET /concepts/{cui}"]["responses"]
    assert "409" in requests["POST /reviews/teach"]["responses"]
    assert "401" not in requests["GET /healthz"]["responses"]
    assert requests["GET /healthz"]["security"] == []


def test_security_is_a_token(api: dict[str, Any], open_local: OpenLocal) -> None:
    (scheme,) = api["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert api["security"] == [{}, {"token": []}]  # this one needs none


@pytest.mark.parametrize("request_", [*EXAMPLES])
def test_the_example_of_a_request_is_answered_as_described(
    described: LocalClient, api: dict[str, Any], request_: str
) -> None:
    operation = list_requests(api)[request_]
    example = EXAMPLES[request_]
    content = answer_of(operation)
    if "answer" in example and isinstance(example["answer"], (dict, list)):
        check_schema(api, content["schema"], example["answer"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if "body" in example and body:
        check_schema(api, body["schema"], example["body"])
    if request_ in NOT_RUN:
        return
    answer = send_example(described, request_)
    assert 200 <= answer.status < 300, answer.body
    media = answer.headers["content-type"]
    codes = operation["responses"][str(answer.status)]["content"]
    assert media.partition(";")[0] in {one.partition(";")[0] for one in codes}
    if "json" in media and "jsonl" not in media:
        check_schema(api, content["schema"], answer.json())
        shown = example["answer"]
        assert type(shown) is type(answer.json())
        if isinstance(shown, dict):
            assert shown.keys() == answer.json().keys()


def test_requests_have_examples(api: dict[str, Any]) -> None:
    requests = {r for r in list_requests(api) if not r.endswith("/metrics")}
    assert {*EXAMPLES} <= requests
    assert not [r for r in requests - {*EXAMPLES} if "/reviews/" not in r]
    for request in EXAMPLES:
        operation = list_requests(api)[request]
        assert "example" in answer_of(operation), request
        if "requestBody" in operation:
            bodies = operation["requestBody"]["content"].values()
            assert all("example" in body for body in bodies), request


def test_description_needs_no_token(open_local: OpenLocal, sample_kb: Path) -> None:
    strict = open_local(sample_kb, tokens=[Access("a-token-of-the-tests", Role.READER)])
    api = strict.get("/openapi.json").json()
    assert api["security"] == [{"token": []}]
    assert strict.get("/kb").status == 401


CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from spacy_sapbert_client import Client
from spacy_sapbert_client.api.linking import link_texts
from spacy_sapbert_client.models import LinkRequest

client = Client(base_url=sys.argv[2])
answer = link_texts.sync(client=client, body=LinkRequest(texts=["A heart attack."]))
print([entity.cui for entity in answer.documents[0].entities])
"""


def test_a_generated_client_links_a_note(
    service: Client, new_process: Any, tmp_path: Path
) -> None:
    """`OPENAPI_CLIENT_PYTHON` names a Python that has openapi-python-client."""
    python = os.environ.get("OPENAPI_CLIENT_PYTHON")
    if not python:
        pytest.skip("OPENAPI_CLIENT_PYTHON names no Python with the generator")
    described = tmp_path / "openapi.json"
    described.write_bytes(service.get("/openapi.json").body)
    target = tmp_path / "client"
    command = [
        *(python, "-m", "openapi_python_client", "generate", "--meta", "none"),
        *("--path", described, "--output-path", target / "spacy_sapbert_client"),
    ]
    done = new_process.run(command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout, done.stdout
    script = tmp_path / "use.py"
    script.write_text(CLIENT)
    address = f"http://127.0.0.1:{service.port}"
    used = new_process.run([python, script, target, address])
    assert used.stdout.strip() == "['C0000001']", used.stderr


def test_examples_are_json() -> None:
    assert json.dumps(EXAMPLES)
