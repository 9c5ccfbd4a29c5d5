"""What a service refuses: bodies, hosts, origins, paths, too much and too slow."""

import json
import socket
import threading
import time
from contextlib import suppress

import pytest

from .conftest import JSON, Client

SECRET = "Zqxwvut Patientname"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"texts": ["a", ' + b"[" * 50_000,
        b"\xff\xfe\x00{",
        b'{"texts": "a text"}',
        b'{"texts": [1]}',
        b'{"texts": [null]}',
        b'{"texts": ["\\ud800"]}',
        b'{"texts": ["a"], "k": 0}',
        b'{"texts": ["a"], "k": "3"}',
        b'{"texts": ["a"], "k": 1e999}',
        b'{"texts": ["a"], "threshold": NaN}',
        b'{"texts": ["a"], "types": [""]}',
        b'{"texts": ["a"], "Zqxwvut Patientname": 1}',
        b'[{"texts": ["a"]}]',
        b'"Zqxwvut Patientname"',
        b"null",
    ],
)
def test_a_body_of_another_form_is_an_error_that_does_not_quote_it(
    service: Client, body: bytes
) -> None:
    answer = service.send("POST", "/link", body, JSON)
    assert (answer.status, answer.code) == (422, "E457")
    assert b"Patientname" not in answer.body


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b'{"text": "a"}', JSON, "body.texts, which is required"),
        (b'{"texts": ["a"], "treshold": 0.5}', JSON, "only fields of the schema"),
        (b'{"texts": ["a"]}', {}, "`content-type: application/json`"),
        (
            b'{"texts": ["a"], "k": 2000}',
            JSON,
            "body.k to be less than or equal to 1000",
        ),
    ],
)
def test_the_error_of_a_body_says_what_was_expected(
    service: Client, body: bytes, headers: dict[str, str], expected: str
) -> None:
    answer = service.send("POST", "/link", body, headers)
    assert (answer.status, answer.code) == (422, "E457")
    assert expected in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({"types": [SECRET]}, "`filter.types` to have values of the knowledge base"),
        ({"sources": [SECRET]}, "Correct `filter.sources`."),
        ({"languages": [SECRET]}, "Correct `filter.languages`."),
        ({"allow": [SECRET]}, "`filter.allow` to have ids"),
        ({"codes": [SECRET]}, "(most similar: ICD10CM)"),
        ({"tie_evidence": [SECRET]}, "Correct `tie_evidence`."),
        ({"label_types": {SECRET: SECRET}}, "body.label_types as in the schema"),
        ({"label_types": {SECRET: [""]}}, "body.label_types.0 with at least 1 char"),
        ({"types": ["a, but no. Patientname"]}, "Correct `filter.types`."),
    ],
)
def test_the_error_of_a_setting_does_not_quote_it(
    service: Client, setting: dict[str, object], expected: str
) -> None:
    answer = service.post("/link", {"texts": ["fever"], **setting})
    assert answer.status == 422
    assert expected in answer.json()["error"]["message"]
    assert b"Zqxwvut" not in answer.body
    assert b"Patientname" not in answer.body


def test_strange_characters_are_linked(service: Client) -> None:
    texts = [
        "fever\x00",
        "\u202efever\u200b",
        "👩‍👩‍👧 fever",
        "\n\r\u2028\x85",
        "\ufffe",
    ]
    answer = service.post("/link", {"texts": texts})
    assert answer.status == 200
    assert len(answer.json()["documents"]) == 5


def test_a_body_of_another_content_type_is_refused(service: Client) -> None:
    body = b'{"texts": ["fever"]}'
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = service.send("POST", "/link", body, {"content-type": kind})
        assert answer.status == 422


def test_ten_megabytes_are_too_large(service: Client) -> None:
    answer = service.post("/link", {"texts": ["x" * 10_000_000]})
    assert (answer.status, answer.code) == (413, "E456")


def test_too_many_texts_or_characters_are_refused(
    strict: Client, token: dict[str, str]
) -> None:
    many = strict.post("/link", {"texts": ["a"] * 4}, **token)
    assert (many.status, many.code) == (413, "E458")
    long = strict.post("/mentions", {"mentions": ["a" * 401]}, **token)
    assert (long.status, long.code) == (413, "E458")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "[",
        "::1",
    ],
)
def test_another_host_is_refused(service: Client, host: str) -> None:
    answer = service.get("/readyz", host=host)
    assert (answer.status, answer.code) == (421, "E453")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "192.168.1.2", "[::1]:9"]
)
def test_names_and_addresses_of_the_machine_are_allowed(
    service: Client, host: str
) -> None:
    assert service.get("/readyz", host=host).status == 200


def test_a_name_that_is_allowed_is_allowed(strict: Client) -> None:
    assert strict.get("/readyz", host="terms.example").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:1", "http://localhost"]
)
def test_a_page_of_another_origin_is_refused(service: Client, origin: str) -> None:
    for answer in (
        service.post("/link", {"texts": ["fever"]}, origin=origin),
        service.get("/concepts/C0000001", origin=origin),
    ):
        assert (answer.status, answer.code) == (403, "E454")
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_of_the_same_origin_is_allowed(service: Client) -> None:
    origin = f"http://127.0.0.1:{service.port}"
    assert service.post("/link", {"texts": []}, origin=origin).status == 200


def test_an_allowed_origin_gets_the_headers_of_cors(
    strict: Client, token: dict[str, str]
) -> None:
    origin = "http://127.0.0.1:3333"
    asked = strict.send("OPTIONS", "/link", None, {"origin": origin})
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == origin
    assert "authorization" in asked.headers["access-control-allow-headers"]
    answer = strict.post("/mentions", {"mentions": ["MI"]}, origin=origin, **token)
    assert answer.headers["access-control-allow-origin"] == origin


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer another"},
        {"authorization": "Basic a-token-of-the-tests"},
        {"authorization": "Bearer"},
        {"authorization": "a-token-of-the-tests"},
    ],
)
def test_a_request_without_the_token_is_refused(
    strict: Client, headers: dict[str, str]
) -> None:
    answer = strict.get("/search?q=fever", **headers)
    assert (answer.status, answer.code) == (401, "E455")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert strict.get("/metrics", **headers).status == 401
    assert strict.get("/openapi.json", **headers).status == 200
    assert strict.get("/healthz", **headers).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/concepts/",
        "/concepts/C1",
        "/concepts/../../etc/passwd",
        "/concepts/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/concepts/%00",
        "/concepts/%ff%fe",
        "/concepts/%ED%A0%80",
        "/concepts/" + "A" * 30_000,
        "/concepts/' OR 1=1 --",
        "//concepts/C0000001",
        "/page/../guard.py",
    ],
)
def test_a_path_without_a_concept_is_not_found(service: Client, path: str) -> None:
    answer = service.get(path.replace(" ", "%20"))
    assert (answer.status, answer.code in ("E463", "E464")) == (404, True)


def test_bad_parameters_are_errors(service: Client) -> None:
    for path in ("/search", "/search?q=", "/search?q=a&k=x", "/search?q=a&k=0"):
        assert service.get(path).code == "E457"
    assert service.get("/search?q=%00").status == 200
    assert service.get("/search?q=%ED%A0%80%ff").status == 200
    assert service.get("/search?q=" + "a" * 5_000).code == "E457"


def test_other_methods_are_refused(service: Client) -> None:
    for method in ("DELETE", "PUT", "TRACE", "PATCH"):
        assert service.send(method, "/link").status in (404, 405)


def test_a_slow_body_is_ended(strict: Client, token: dict[str, str]) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as slow:
        head = "POST /link HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        head += f"Authorization: {token['authorization']}\r\n\r\n{{"
        slow.sendall(head.encode())
        got = slow.makefile("rb").read()
    assert b" 408 " in got.splitlines()[0]
    assert b"E462" in got


@pytest.mark.parametrize(
    "before", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)
def test_slow_headers_are_ended(strict: Client, before: bytes) -> None:
    """The first of a connection, and those after an answer."""
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as slow:
        if before:
            slow.sendall(before)
            assert b"HTTP/1.1" in slow.recv(10_000)
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        while slow.recv(10_000):  # what is left of the answer, then the end
            pass


def test_more_requests_of_a_client_at_once_are_refused(
    strict: Client, token: dict[str, str]
) -> None:
    head = "POST /link HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    head += f"Authorization: {token['authorization']}\r\n\r\n{{"
    held = [socket.create_connection(("127.0.0.1", strict.port)) for _ in range(2)]
    for one in held:
        one.sendall(head.encode())
    try:
        for _ in range(50):
            answer = strict.get("/search?q=fever", **token)
            if answer.status == 429:
                break
            time.sleep(0.01)
        assert (answer.status, answer.code) == (429, "E459")
        assert answer.headers["retry-after"] == "1"
    finally:
        for one in held:
            one.close()


def test_broken_requests_do_not_end_the_service(service: Client) -> None:
    for data in (
        b"\x16\x03\x01\x02",
        b"GET\r\n\r\n",
        b"\x00" * 100_000,
        b"GET / HTTP/9",
    ):
        with socket.create_connection(("127.0.0.1", service.port)) as broken:
            broken.sendall(data)
            broken.settimeout(0.2)
            with suppress(OSError):
                broken.recv(100)
    assert service.get("/readyz").status == 200


def test_answers_have_the_headers_of_security(service: Client) -> None:
    for answer in (service.get("/healthz"), service.get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers


def test_no_word_of_a_document_is_in_the_log_or_the_metrics(service: Client) -> None:
    service.post("/link", {"texts": [f"{SECRET} has fever", "(" * 100_001 + SECRET]})
    service.post("/mentions", {"mentions": [SECRET], "types": [SECRET]})
    service.get(f"/search?q={SECRET.replace(' ', '+')}")
    service.get(f"/concepts/{SECRET.replace(' ', '%20')}")
    service.get(f"/{SECRET.replace(' ', '%20')}?{SECRET.replace(' ', '%20')}")
    service.send("POST", "/link", f'{{"texts": ["{SECRET}'.encode(), JSON)
    service.send(SECRET.split()[0], "/link")
    seen = "".join(service.lines) + service.get("/metrics").body.decode()
    assert "Zqxwvut" not in seen
    assert "Patientname" not in seen


def test_requests_in_parallel_get_their_own_answers(service: Client) -> None:
    words = {"fever": "C0000004", "aspirin": "C0000006", "headache": "C0000007"}
    wrong: list[str] = []

    def ask(word: str, k: int) -> None:
        body = {"texts": [f"A case of {word}."] * k, "k": k}
        for _ in range(5):
            documents = service.post("/link", body).json()["documents"]
            found = [d["entities"][0] for d in documents]
            if any(one["cui"] != words[word] for one in found):
                wrong.append(word)
            if any(len(one["candidates"]) != k for one in found) or len(found) != k:
                wrong.append(f"{word} {k}")

    asks = [(word, k) for word in words for k in (1, 2, 3, 4)]
    threads = [threading.Thread(target=ask, args=one) for one in asks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_work_ends_when_the_client_has_gone(service: Client) -> None:
    text = "heart attack, fever and headache. " * 20_000
    body = json.dumps({"texts": [text]}).encode()
    head = f"POST /link HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    head += "\r\nContent-Type: application/json"
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
        time.sleep(1)  # the pipeline works on it
    events = (service.wait_for("request") for _ in range(1_000))
    event = next(one for one in events if one.get("bytes") == len(body))
    assert (event["route"], event["status"], event["gone"]) == ("/link", 0, True)
    answer = service.post("/link", {"texts": ["fever"]})
    assert answer.json()["documents"][0]["entities"][0]["cui"] == "C0000004"
