"""What requests are refused, as the description of the API has them; what is told."""

import io
import json
import logging
import re
import time
import warnings
from collections.abc import Iterator

import pytest

from spacy_sapbert.errors import SapbertError, not_written
from spacy_sapbert.serve import server
from spacy_sapbert.serve.application import ROUTERS
from spacy_sapbert.serve.logs import EventLog, describe_exception, redirect_messages
from spacy_sapbert.serve.problems import describe_problem, status_of

from .conftest import BEARER, JSON, PortClient

SECRET = "Zqxwvut Patientname"
BROKEN = (b"", b"{", b"[" * 100_000, b"\xff\xfe\x00{", b"null", b'"Patientname"')


def test_a_body_that_is_not_as_its_schema_is_refused_and_not_quoted(
    open_local, store, sample_kb
):
    client = open_local(sample_kb, store)
    api = client.get("/openapi.json").json()
    described = [
        (method.upper(), path.replace("{id}", "x"), operation["requestBody"])
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    ]
    assert len(described) > 10

    def check(path: str, method: str, sent: bytes, kind: str) -> None:
        answer = client.send(method, path, sent, {"content-type": kind})
        assert (answer.status, path) == (422, path), sent[:50]
        assert b"Patientname" not in answer.body
        if "/fhir/" in path:
            assert [one["code"] for one in answer.json()["issue"]] == ["invalid"]
        else:
            assert answer.code == "E457"

    for method, path, content in described:
        form = content["content"]["application/json"]["schema"]["$ref"]
        schema = api["components"]["schemas"][form.rpartition("/")[2]]
        wrong = [{field: {SECRET: SECRET}} for field in schema["properties"]]
        if schema.get("additionalProperties") is False:
            wrong.append({SECRET: 1})
        for sent in (*BROKEN, *(json.dumps(one).encode() for one in wrong)):
            if sent or content.get("required"):
                check(path, method, sent, "application/json")
        if schema.get("required"):
            for kind in ("text/plain", "application/x-www-form-urlencoded"):
                check(path, method, b'{"texts": []}', kind)
    assert client.get("/reviews/documents").json()["documents"] == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"types": [SECRET]}, "`filter.types` to have values of the knowledge base"),
        ({"allow": [SECRET]}, "`filter.allow` to have ids"),
        ({"codes": [SECRET]}, "(it has ICD10CM)"),
        ({"label_types": {SECRET: SECRET}}, "body.label_types as in the schema"),
    ],
)
def test_an_error_says_what_was_expected_and_does_not_quote_it(local, fields, expected):
    answer = local.post("/link", {"texts": ["fever"], **fields})
    assert answer.status == 422
    assert expected in answer.json()["error"]["message"]
    assert not re.search(b"Zqxwvut|Patientname", answer.body)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421)),
        *(("[", 421), ("", 421), ("LOCALHOST:80", 200), ("192.168.1.2", 200)),
        *(("[::1]:9", 200), ("terms.example", 200)),
    ],
)
def test_only_names_of_the_service_are_answered(strict, host, status):
    answer = strict.get("/readyz", host=host, **BEARER)
    assert answer.status == status
    assert status == 200 or answer.code == "E453"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost"])
def test_a_page_of_another_origin_is_refused(local, origin):
    for answer in (
        local.post("/link", {"texts": ["fever"]}, origin=origin),
        local.get("/concepts/C0000001", origin=origin),
    ):
        assert (answer.status, answer.code) == (403, "E454")
        assert "access-control-allow-origin" not in answer.headers
    assert local.get("/kb", origin="http://127.0.0.1").status == 200


def test_an_allowed_origin_gets_the_headers_of_cors(strict):
    origin = "http://127.0.0.1:3333"
    headers = "authorization,content-type"
    asks = {
        "access-control-request-method": "POST",
        "access-control-request-headers": headers,
    }
    asked = strict.send("OPTIONS", "/link", b"", {"origin": origin, **asks})
    assert asked.status == 200
    assert asked.headers["access-control-allow-origin"] == origin
    assert "authorization" in asked.headers["access-control-allow-headers"].lower()
    for other in ("http://evil.example", "null"):
        asked = strict.send("OPTIONS", "/link", b"", {"origin": other, **asks})
        assert asked.status == 400
        assert "access-control-allow-origin" not in asked.headers
    answer = strict.post("/mentions", {"mentions": ["MI"]}, origin=origin, **BEARER)
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_can_send_nothing(local, strict, site):
    """A browser sends no `Origin` for an image, but `Sec-Fetch-Site`."""
    given = {"sec-fetch-site": site}
    for path in ("/roots", "/reconcile?queries={}", "/fhir/metadata", "/kb"):
        assert local.get(path, **given).status == 403
    for own in ("same-origin", "none"):
        assert local.get("/kb", **{"sec-fetch-site": own}).status == 200
    # a link to the page, and the preview in a frame of OpenRefine
    assert local.get("/", **given).status == 200
    assert local.get("/reconcile/preview?id=C0000001", **given).status == 200
    given["origin"] = "http://127.0.0.1:3333"
    assert strict.get("/reconcile", **given, **BEARER).status == 200


@pytest.mark.parametrize("value", ["", "Bearer another", "a-token-of-the-tests"])
def test_a_request_without_the_token_is_refused(strict, value):
    for path in ("/roots", "/metrics", "/kb"):
        answer = strict.get(path, authorization=value)
        assert (answer.status, answer.code) == (401, "E455")
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/openapi.json", "/healthz", "/"):
        assert strict.get(path, authorization=value).status == 200
    assert strict.get("/openapi.json").json()["security"] == [{"token": []}]


def test_too_much_is_refused(local, strict):
    answer = local.post("/link", {"texts": ["x" * 10_000_000]})
    assert (answer.status, answer.code) == (413, "E456")
    assert answer.headers["connection"] == "close"
    for path, body in (
        ("/link", {"texts": ["a"] * 4}),
        ("/mentions", {"mentions": ["a" * 401]}),
        ("/column/map", {"terms": ["a"] * 4}),
        ("/verify", {"texts": ["a"] * 4, "ids": ["b"] * 4}),
    ):
        answer = strict.post(path, body, **BEARER)
        assert (answer.status, answer.code) == (413, "E458")
    for mentions in (["a"] * 3, ["a" * 400]):
        asked = strict.post("/mentions", {"mentions": mentions}, **BEARER)
        assert asked.status == 200
    for size, status in ((2_000, 200), (2_001, 413)):
        body = b'{"mentions":[]}'.ljust(size)
        answer = strict.send("POST", "/mentions", body, {**JSON, **BEARER})
        assert answer.status == status


def test_answers_have_the_headers_of_security(local):
    for answer in (local.get("/healthz"), local.get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers


def test_no_word_of_a_document_is_in_the_log_or_the_metrics(local):
    local.post("/link", {"texts": [f"{SECRET} has fever", "(" * 100_001 + SECRET]})
    local.post("/mentions", {"mentions": [SECRET], "types": [SECRET]})
    word = SECRET.replace(" ", "%20")
    for path in (f"/concepts/{word}", f"/inception?q={word}", f"/{word}?{word}"):
        local.get(path)
    local.post("/search", {"text": SECRET, "types": [SECRET]})
    local.send("POST", "/link", f'{{"texts": ["{SECRET}'.encode(), JSON)
    local.send(SECRET.split()[0], "/link")
    metrics = local.get("/metrics").body.decode()
    assert not re.search("Zqxwvut|Patientname", local.log.getvalue() + metrics)
    assert 'sapbert_requests_total{method="GET",route="/concepts/{cui:path}"' in metrics
    assert "sapbert_batch_jobs_count" in metrics


# A person who decides, a format, and ids of what the service has.
IN_ADDRESSES = {"reviewer", "format", "id", "cui"}
OWN_FILES = {"/", "/page/{digest}/{name}"}
PROTOCOLS = ("/fhir", "/reconcile", "/inception")  # they say what addresses have


def test_no_address_of_our_own_has_words(local):
    """Proxies and browsers keep addresses: words of documents and terms are bodies."""
    api = local.get("/openapi.json").json()
    routes = {
        route.path.replace(":path", "") for one in ROUTERS for route in one.routes
    }
    assert routes - {*api["paths"]} == OWN_FILES
    free, bounded = set(), set()
    for path, methods in api["paths"].items():
        for operation in methods.values():
            for one in operation.get("parameters", ()):
                shape = json.dumps(one["schema"])
                is_free = '"string"' in shape and '"pattern"' not in shape
                if not path.startswith(PROTOCOLS):
                    (free if is_free else bounded).add(one["name"])
    assert free == IN_ADDRESSES
    assert bounded == {"ending", "number", "related"}


# --- a real port ---


@pytest.fixture(scope="module")
def listening(listen, sample_kb, strict_settings) -> Iterator[PortClient]:
    """A server with small limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "HEADER_SECONDS", 0.3)
        yield listen(sample_kb, **strict_settings)


HEAD = (
    "POST /link HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    f"Authorization: {BEARER['authorization']}\r\n\r\n{{"
).encode()


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_slow_body_is_ended(listening):
    with listening.connect(HEAD) as slow:
        got = slow.makefile("rb").read()
    assert b" 408 " in got.splitlines()[0]
    assert b"E462" in got


@pytest.mark.parametrize("before", [b"", HEALTH])
def test_slow_headers_are_ended(listening, before):
    """The first of a connection, and those after an answer."""
    with listening.connect(before) as slow:
        if before:
            assert b"HTTP/1.1" in slow.recv(10_000)
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        while slow.recv(10_000):  # what is left of the answer, then the end
            pass


def test_more_requests_of_a_client_at_once_are_refused(listening):
    held = [listening.connect(HEAD)]
    for _ in range(20):  # two at once are the most
        assert listening.get("/roots", **BEARER).status == 200
    held.append(listening.connect(HEAD))
    for _ in range(50):
        answer = listening.get("/roots", **BEARER)
        if answer.status == 429:
            break
        time.sleep(0.01)
    assert (answer.status, answer.code) == (429, "E459")
    assert answer.headers["retry-after"] == "1"
    for one in held:
        one.close()


# --- errors and the log ---


OWN = "Expected the service to answer, but it failed. Report the line of its log with "


@pytest.mark.parametrize(
    ("error", "status", "code", "told"),
    [
        (
            SapbertError("E331", "Expected x, but got 1. Correct it. Or not."),
            *(422, "E331", "Expected x, but got something else. Or not."),
        ),
        (SapbertError("E117", "Expected x, but got 1."), 500, "E465", OWN),
        (not_written(path="/srv/kb", reason="full"), 500, "E465", OWN),
        (
            SapbertError("E521", "Expected x to be installed, but /srv/x. Run `pip`."),
            *(501, "E521", "Expected x to be installed, but it is not. Run `pip`."),
        ),
    ],
)
def test_only_errors_of_a_request_are_told(error, status, code, told):
    found = describe_problem(error)
    assert (status_of(error), found.code) == (status, code)
    assert found.message.startswith(told)
    assert "/srv" not in str(found)


@pytest.fixture
def log(monkeypatch) -> io.StringIO:
    """What is written to a log to which all messages go."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
        monkeypatch.setattr(logging.getLogger(name), "propagate", False)
    stream = io.StringIO()
    redirect_messages(EventLog(stream))
    return stream


def test_warnings_and_exceptions_are_logged_without_their_text(log):
    for text in (SECRET, f"[W554] {SECRET}"):
        warnings.showwarning(text, UserWarning, "x.py", 1)
    try:
        raise KeyError(SECRET)
    except KeyError:
        logging.getLogger("uvicorn.error").exception("Exception in %s", SECRET)
    *warned, failed = map(json.loads, log.getvalue().splitlines())
    shown = [(one["event"], one["category"], one["code"]) for one in warned]
    expected = ("warning", "UserWarning")
    assert shown == [(*expected, None), (*expected, "W554")]
    assert failed["exception"] == "KeyError"
    assert failed["message"] == "Exception in %s"
    assert "test_requests.py" in failed["place"]
    assert "Patientname" not in log.getvalue()
    assert describe_exception(ValueError(SECRET)) == {
        "exception": "ValueError",
        "place": "",
    }
    log.close()
    EventLog(log).write("event")  # a log that cannot be written stops nothing
