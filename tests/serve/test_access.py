"""Roles and their tokens, pages of other sites, and a service that cannot write."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.serve.access import Access, Role, read_tokens
from spacy_sapbert.serve.reviews import store as store_module
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.serve.settings import DEFAULT_LIMITS, read_limits

from .conftest import LocalClient, Reply

READER, ANNA, REVIEWER, ADMIN = ("r" * 20, "a" * 20, "v" * 20, "m" * 20)
TOKENS = (
    Access(READER, Role.READER),
    Access(ANNA, Role.REVIEWER, "Anna Huber"),
    Access(REVIEWER, Role.REVIEWER),
    Access(ADMIN, Role.ADMIN),
)
OPEN = {"/", "/openapi.json", "/healthz", "/readyz", "/page/page.css"}
# What a release adds for readers has to be added here.
READ = (
    *("/metrics", "/access", "/link", "/mentions", "/concepts", "/search", "/roots"),
    "/codes",
    "/verify",
    *("/kb", "/column", "/reconcile", "/inception", "/fhir", "/page-data"),
)
MANAGE = {
    "DELETE /reviews/documents/{id}",
    "DELETE /reviews/columns/{id}",
    "GET /reviews/teach",
    "POST /reviews/teach",
    "DELETE /reviews/teach/{number}",
    "POST /reviews/switch",
    "POST /reviews/quality",
}


def find_role(request: str) -> Role | None:
    """Return the least role of a request."""
    path = request.partition(" ")[2]
    if path in OPEN:
        return None
    if path.startswith("/reviews/"):
        return Role.ADMIN if request in MANAGE else Role.REVIEWER
    assert path.startswith(READ), path
    return Role.READER


ALLOWED = {READER: Role.READER, REVIEWER: Role.REVIEWER, ADMIN: Role.ADMIN}


@pytest.fixture(scope="module")
def guarded(open_local, sample_kb, tmp_path_factory) -> LocalClient:
    store = ReviewStore(tmp_path_factory.mktemp("guarded") / "reviews.db")
    return open_local(sample_kb, store, tokens=TOKENS)


def send(client: LocalClient, token: str | None, request: str, data: Any = 0) -> Reply:
    """Send a request, whose body is wrong in its form if no data is given."""
    method, _, path = request.partition(" ")
    headers = {"content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    body = json.dumps(data).encode() if method == "POST" else b""
    return client.send(method, path.replace("{", "").replace("}", ""), body, headers)


def test_each_role_may_send_what_it_needs(guarded):
    api = guarded.get("/openapi.json").json()
    described = {
        f"{method.upper()} {path}": operation.get("x-role")
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    }
    others = {f"GET {path}": None for path in OPEN}
    assert {*described} >= MANAGE
    for request, told in {**others, "GET /page-data/x": "reader", **described}.items():
        needed = find_role(request)
        assert told == (needed.name.lower() if needed else None), request
        without = send(guarded, None, request)
        assert (without.status == 401) is (needed is not None), request
        assert send(guarded, "x" * 20, request).status == without.status
        for token, role in ALLOWED.items():
            answer = send(guarded, token, request)
            refused = needed is not None and role < needed
            assert (answer.status == 403) is refused, (request, role, answer)
            if refused:
                assert answer.code == "E485"
            assert answer.status != 401


def test_a_name_is_bound_to_its_token(guarded):
    note = {"name": "n", "text": "Fever."}
    document = send(guarded, ANNA, "POST /reviews/documents", note).json()["document"]

    def decide(token: str, reviewer: str, key: str, **more: Any) -> Reply:
        body = {
            **more,
            "key": key,
            "reviewer": reviewer,
            "document": document,
            "start": 0,
            "end": 5,
            "chosen": "C0000004",
        }
        return send(guarded, token, "POST /reviews/decisions", {"decisions": [body]})

    def choices(reviewer: str) -> Any:
        one = {"key": "c" * 8, "reviewer": reviewer, "term": 0, "chosen": None}
        return {"decisions": [one]}

    def remark(reviewer: str) -> Any:
        one = {"key": "r" * 8, "reviewer": reviewer, "document": document}
        return {"decisions": [{**one, "start": 0, "end": 5, "comment": "a"}]}

    assert decide(ANNA, "Anna Huber", "k" * 8).status == 200
    table = {"header": ["a"], "rows": [], "terms": [], "mapped": {}, "kb": ""}
    for other in ("anna huber", "Ben"):
        done = {"reviewer": other, "done": True}
        for answer in (
            decide(ANNA, other, "l" * 8),
            decide(ANNA, other, "n" * 8, settles=True),
            send(guarded, ANNA, f"POST /reviews/documents/{document}/done", done),
            send(guarded, ANNA, "POST /column/write", {**table, "reviewer": other}),
            send(guarded, ANNA, "POST /reviews/columns/x/choices", choices(other)),
            send(guarded, ANNA, "POST /reviews/remarks", remark(other)),
        ):
            assert (answer.status, answer.code) == (403, "E486")
    assert decide(REVIEWER, "Ben", "m" * 8).status == 200
    assert decide(ANNA, "Anna Huber", "o" * 8, settles=True).status == 200
    assert send(guarded, ANNA, "GET /access").json() == {
        "role": "reviewer",
        "reviewer": "Anna Huber",
    }


def test_tokens_are_read_with_roles_and_names(tmp_path):
    path = tmp_path / "tokens"
    roles = (
        f"# roles\nreader {READER}\n\nReviewer {ANNA}  Anna   Huber\nadmin {ADMIN}\n"
    )
    for text, tokens in ((roles, (0, 1, 3)), (f"{ADMIN}\n", (3,))):
        path.write_text(text)
        assert read_tokens(path) == tuple(TOKENS[number] for number in tokens)


@pytest.mark.parametrize(
    "text",
    [
        f"owner {READER}",
        f"reader {READER}\nreviewer {READER}",
        "reader short",
        *("", f"{READER}\n{ADMIN}", "ä" * 20),
    ],
)
def test_a_bad_file_of_tokens_is_an_error(tmp_path, text):
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(SapbertError, match="E450") as caught:
        read_tokens(path)
    assert READER not in str(caught.value)


def test_limits_are_read_from_the_command_line():
    limits = read_limits(["seconds=120", "of_client=1_000"])
    assert (limits.seconds, limits.of_client) == (120.0, 1_000)
    assert limits.body == DEFAULT_LIMITS.body
    for bad in ("seconds", "seconds=0", "second=1"):
        with pytest.raises(SapbertError, match="E331"):
            read_limits([bad])


def test_a_full_disk_is_507(open_local, sample_kb, store, monkeypatch):
    """SQLite reports a file that may not grow as it does a full disk."""
    client = open_local(sample_kb, store)
    assert client.get("/readyz").status == 200
    full = SimpleNamespace(free=10)
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "disk_usage", lambda _: full)
        assert client.get("/readyz").status == 507
    assert client.get("/healthz").status == 200
    pages = store.query("PRAGMA page_count")[0][0]
    store.query(f"PRAGMA max_page_count = {pages}")
    answer = client.post("/reviews/documents", {"name": "a", "text": "Fever. " * 9_000})
    assert (answer.status, answer.code) == (507, "E491")
    store.query("PRAGMA max_page_count = 1000000")
    assert client.post("/reviews/documents", {"name": "a", "text": "F."}).status == 200
