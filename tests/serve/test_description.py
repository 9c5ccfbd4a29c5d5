"""/openapi.json: every request has a name, a schema, its errors and its role."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.serve.access import Access, Role

from .conftest import Client, LocalClient, OpenLocal


@pytest.fixture(scope="module")
def api(local: LocalClient) -> dict[str, Any]:
    found: dict[str, Any] = local.get("/openapi.json").json()
    return found


def test_every_request_is_described(api: dict[str, Any]) -> None:
    requests = {
        f"{method.upper()} {path}": operation
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    }
    ids = [operation["operationId"] for operation in requests.values()]
    assert len({*ids}) == len(ids)
    for request, operation in requests.items():
        assert re.fullmatch(r"[a-z][a-z_]*", operation["operationId"]), request
        assert operation["summary"], request
        assert operation["tags"], request
        (answer,) = (a for c, a in operation["responses"].items() if c[0] == "2")
        schemas = [one["schema"] for one in answer["content"].values()]
        assert schemas, request
        assert all(schema.keys() - {"title"} for schema in schemas), request
        for status in ("4XX", "5XX"):
            (content,) = operation["responses"][status]["content"].values()
            named = "OperationOutcome" if "/fhir/" in request else "ErrorAnswer"
            assert content["schema"]["$ref"].endswith(f"/{named}")
        for parameter in operation.get("parameters", ()):
            assert parameter["schema"], request
    assert not [name for name in api["components"]["schemas"] if "-" in name]


def test_security_is_a_token(api: dict[str, Any]) -> None:
    (scheme,) = api["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert api["security"] == [{}, {"token": []}]  # this one needs none
    assert api["paths"]["/healthz"]["get"]["security"] == []


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
