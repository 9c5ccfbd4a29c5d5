"""A service that listens: alone, with others, behind a proxy, and killed at work."""

import json
import os
import signal
import socket
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.serve import versions
from spacy_sapbert.serve.access import Access, Role
from spacy_sapbert.serve.reviews.store import ReviewStore
from spacy_sapbert.serve.service import Service
from spacy_sapbert.serve.settings import check_remote, is_local
from spacy_sapbert.vocabularies.concepts import Concept
from tests.commands import invoke

from .conftest import (
    Client,
    Reply,
    Start,
    ThreadClient,
    decide,
    link_all,
    send_files,
    use_newest,
    wait_for_teaching,
)


@pytest.mark.parametrize(
    ("local", "other"),
    [("127.0.0.1", "0.0.0.0"), ("::1", "::"), ("localhost", "terms.example")],
)
def test_an_address_that_others_reach_needs_a_token(local, other):
    assert (is_local(local), is_local(other)) == (True, False)
    check_remote(local, tokens=(), allow_remote=False)
    check_remote(other, tokens=[Access("t", Role.READER)], allow_remote=False)
    check_remote(other, tokens=(), allow_remote=True)
    with pytest.raises(SapbertError, match="E450"):
        check_remote(other, tokens=(), allow_remote=False)


def test_wrong_options_are_errors_before_anything_is_loaded(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as used:
        for options, code, error in (
            (["--port", used.getsockname()[1]], 1, "E450"),
            (["--port", 0, "--documents", tmp_path], 1, "E423"),
            (["--host", "0.0.0.0"], 1, "E450"),
            (["--limit", "seconds=0"], 1, "E331"),
            (["--workers", 65], 2, "--workers"),
        ):
            assert error in invoke("serve", "not there", *options, code=code).output


@pytest.fixture(scope="module")
def served(listen, sample_kb) -> ThreadClient:
    return listen(sample_kb)


def run_all(*calls: tuple[Any, ...]) -> None:
    """Call functions at the same time, and wait until all have ended."""
    threads = [threading.Thread(target=call, args=args) for call, *args in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_work_ends_when_the_client_has_gone(served):
    text = "heart attack, fever and headache. " * 20_000
    body = json.dumps({"texts": [text]}).encode()
    head = f"POST /link HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    head += "\r\nContent-Type: application/json"
    with served.connect(f"{head}\r\n\r\n".encode() + body):
        for _ in range(500):  # until the pipeline works on it
            if b"sapbert_requests_in_flight 2.0" in served.get("/metrics").body:
                break
            time.sleep(0.01)
    events: list[Any] = []
    while not events:
        time.sleep(0.01)
        events = [e for e in served.read_events("request") if e.get("gone")]
    assert (events[0]["route"], events[0]["status"]) == ("/link", 0)
    assert events[0]["bytes"] == len(body)
    answer = served.post("/link", {"texts": ["fever"]})
    assert answer.json()["documents"][0]["entities"][0]["cui"] == "C0000004"


def test_a_new_version_is_used_and_a_damaged_one_is_not(listen, own_kb, monkeypatch):
    monkeypatch.setattr(versions, "SECONDS", 0.1)
    client = listen(own_kb)
    body = {"mentions": ["zebra stripes"]}
    before = client.post("/mentions", body).json()
    zebra = Concept("C0000009", ["Zebra stripes"], types=["T047"])
    add_concepts(load_kb(own_kb), [zebra])
    digest = client.wait_for("kb_switched")["digest"]
    after = client.post("/mentions", body).json()
    assert (after["mentions"][0]["cui"], after["kb"]) == ("C0000009", digest)
    assert before["kb"] != digest
    meta = own_kb / "v2" / "meta.json"
    good = meta.read_bytes()
    meta.write_text("{", "utf8")
    client.wait_for("kb_not_switched", code="E304")
    assert client.post("/mentions", body).json() == after
    meta.write_bytes(good)
    # after one that does not fit the options, the next one is used

    def refuse(service: Service, kb: KnowledgeBase) -> None:
        raise SapbertError("E333", "it does not fit")

    with monkeypatch.context() as patch:
        patch.setattr(Service, "check_kb", refuse)
        add_concepts(load_kb(own_kb), [Concept("C0000010", ["Okapi"])])
        client.wait_for("kb_not_switched", code="E333")
    add_concepts(load_kb(own_kb), [Concept("C0000011", ["Tapir"])])
    client.wait_for("kb_switched", digest=load_kb(own_kb).manifest.digest)


def test_the_end_loses_no_accepted_request(listen, sample_kb):
    client = listen(sample_kb)
    replies: list[Reply] = []

    def ask() -> None:
        text = "Fever and a heart attack. " * 500
        replies.append(client.post("/link", {"texts": [text], "k": 1}))

    def stop() -> None:
        for _ in range(200):  # until all three are accepted
            if b"sapbert_requests_in_flight 4.0" in client.get("/metrics").body:
                break
            time.sleep(0.01)
        client.stop()

    run_all((ask,), (ask,), (ask,), (stop,))
    assert [reply.status for reply in replies] == [200] * 3
    assert len(replies[0].json()["documents"][0]["entities"]) == 1_000


def test_a_lock_on_the_reviews_keeps_nobody_else_waiting(listen, sample_kb, tmp_path):
    """All requests waited for five seconds, and reading was an error of the service."""
    store = ReviewStore(tmp_path / "reviews.db")
    store.query("PRAGMA busy_timeout = 2000")
    client = listen(sample_kb, store)
    (id,) = send_files(client, ("a.txt", "Fever."))["documents"]
    paths = [f"/reviews/documents/{id}?reviewer=Ada", "/reviews/queue?reviewer=Ada"]
    answers: list[Any] = []
    holder = sqlite3.connect(tmp_path / "reviews.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")

    def look_meanwhile() -> None:
        time.sleep(0.3)
        for _ in range(3):
            assert client.get("/healthz").status == 200
            assert client.post("/link", {"texts": ["Fever."]}).status == 200
        answers.append("others")

    def read(path: str) -> None:
        answers.append(client.get(path))

    run_all((look_meanwhile,), *((read, path) for path in paths))
    first, *late = answers  # they wait, and nobody else
    assert first == "others"
    assert [(one.status, one.code) for one in late] == [(503, "E491")] * 2
    holder.execute("ROLLBACK")
    assert client.get(paths[0]).status == 200


def test_a_damaged_knowledge_base_is_an_error_of_the_service(open_local, own_kb):
    client = open_local(own_kb)
    path = own_kb / "v1" / "concepts.db"
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    for answer in (
        client.get("/concepts/C0000007"),
        client.post("/mentions", {"mentions": ["asthma"], "types": ["T047"]}),
    ):
        assert (answer.status, answer.code) == (500, "E465")
        assert str(own_kb) not in answer.body.decode()
        event = json.loads(client.log.getvalue().splitlines()[-1])
        assert (event["status"], event["code"]) == (500, "E306")


# --- processes ---


def open_places(client: Client, reviewer: str) -> dict[str, list[Any]]:
    """The open places of a reviewer by text, after all documents are linked."""
    link_all(client)
    found = client.get(f"/reviews/queue?reviewer={reviewer}").json()["first"]
    return {one["mention"]["text"].lower(): one["places"] for one in found}


def link_first(client: Client, mention: str) -> Any:
    (linked,) = client.post("/mentions", {"mentions": [mention]}).json()["mentions"]
    return linked["cui"]


def write_day(path: Path) -> None:
    """Write twenty documents with three mentions each."""
    words = (("vwkj zzz", "-1"), ("fever", "C0000004"), ("MI", "C0000001"))
    with path.open("w") as file:
        for n in range(20):
            text = f"Day {n}: vwkj zzz, fever, MI."
            file.write(f"{n}|t|{text}\n{n}|a|\n")
            for word, cui in words:
                start = text.index(word)
                place = f"{start}\t{start + len(word)}"
                file.write(f"{n}\t{place}\t{word}\tX\t{cui}\n")
            file.write("\n")


def test_a_day_with_kill_9_at_any_moment_loses_nothing(
    start_service, own_exported_kb, tmp_path
):
    """Twenty documents with links: decide, teach, use, back, export."""
    documents, reviews = tmp_path / "day.pubtator", tmp_path / "reviews.db"
    write_day(documents)
    options = [own_exported_kb, "--reviews", reviews]
    client = start_service(*options, "--documents", documents)
    assert reviews.stat().st_mode & 0o077 == 0
    places = open_places(client, "Ada")
    counts = {text: len(found) for text, found in places.items()}
    assert counts == dict.fromkeys(("vwkj zzz", "fever", "mi"), 20)
    decide(client, "Ada", places["vwkj zzz"], "C0000008")
    accepted: list[Any] = []

    def write(first: int) -> None:
        for place in places["fever"][first::3]:
            try:
                decide(client, "Ada", [place], "C0000004")
            except OSError:
                return
            accepted.append(place)

    def kill() -> None:
        while len(accepted) < 5:
            time.sleep(0.001)
        client.process.kill()

    run_all((write, 0), (write, 1), (write, 2), (kill,))
    with sqlite3.connect(reviews) as connection:
        checked = connection.execute("PRAGMA integrity_check").fetchall()
        assert checked == [("ok",)]
    client = start_service(*options, "--documents", documents)  # they are there once
    left = open_places(client, "Ada")
    assert 17 - len(accepted) <= len(left.get("fever", [])) <= 20 - len(accepted)
    assert not [place for place in accepted if place in left.get("fever", [])]
    decide(client, "Ada", left["fever"], "C0000004")
    decide(client, "Ada", left["mi"], "C0000001")
    assert open_places(client, "Ada") == {}
    assert client.post("/reviews/teach", {}).status == 202
    assert client.wait_for("taught")["changed"]
    before = link_first(client, "vwkj zzz")
    assert use_newest(client)["report"]["counts"]["mentions"] == 60
    assert (before != "C0000008", link_first(client, "vwkj zzz")) == (True, "C0000008")
    client.process.kill()
    more = ("--codes", "ICD10CM", "--context", "is_denied=negated")
    client = start_service(*options, *more)  # what was in use is in use again
    assert client.get("/kb").json()["codes"] == ["ICD10CM"]
    assert link_first(client, "vwkj zzz") == "C0000008"
    (version,) = client.get("/reviews/teach").json()["versions"]
    assert version["used"]
    state = client.post("/reviews/switch", {"number": None}).json()
    assert not state["versions"][0]["used"]
    assert link_first(client, "vwkj zzz") == before
    lines = client.get("/reviews/export?reviewer=agreed").body.splitlines()
    exported = [json.loads(line) for line in lines]
    assert sorted(one["id"] for one in exported) == sorted(map(str, range(20)))
    assert {len(one["entities"]) for one in exported} == {3}
    assert client.stop() == 0
    assert "ended" in client.lines[-1]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def start_two(start_service: Start, *options: object) -> tuple[Client, tuple[int, int]]:
    """Start two processes, and return their ids."""
    client = start_service(*options, "--workers", 2)
    client.wait_for("listening")  # the second one
    events = [json.loads(line) for line in client.lines if line.startswith("{")]
    first, second = (e["process"] for e in events if e["event"] == "listening")
    return client, (first, second)


def test_two_processes_keep_all_decisions_and_both_forget_a_deleted_note(
    start_service, open_local, own_exported_kb, tmp_path
):
    reviews, word = tmp_path / "reviews.db", "vwkj zzz"
    teaching = open_local(own_exported_kb, ReviewStore(reviews))
    files = [(f"{n}.txt", f"{word}, fever {n}") for n in range(12)]
    ids = send_files(teaching, *files)["documents"]
    places = [{"document": id, "start": 0, "end": 8} for id in ids]
    decide(teaching, "Ada", places, "C0000008")
    for _ in range(2):
        assert teaching.post("/reviews/teach", {}).status == 202
        wait_for_teaching(teaching)
    use_newest(teaching)
    client, started = start_two(start_service, own_exported_kb, "--reviews", reviews)
    note = {"name": "note", "text": "Fever. " * 8}
    document = client.post("/reviews/documents", note).json()["document"]

    def write(reviewer: str) -> None:
        for number in range(8):
            place = {"document": document, "start": 7 * number, "end": 7 * number + 5}
            decide(client, reviewer, [place], "C0000004")

    run_all(*((write, f"Anna {number}") for number in range(4)))
    assert client.post("/reviews/teach", {}).code == "E495"
    assert client.get("/metrics").code == "E495"
    assert link_first(client, word) == "C0000008"
    deleted = client.send("DELETE", f"/reviews/documents/{ids[0]}").json()
    assert deleted == {"versions": 2}
    for _ in range(2):  # in the process that deletes, and in the other one
        client.wait_for("kb_switched")
    assert "C0000008" not in {link_first(client, word) for _ in range(20)}
    assert [*(tmp_path / "reviews.db.taught").iterdir()] == []
    assert client.stop() == 0
    assert not any(map(is_running, started))
    assert len(ReviewStore(reviews).latest()) == 32 + len(ids) - 1


def test_if_one_process_dies_the_others_end(start_service, exported_kb):
    client, (first, second) = start_two(start_service, exported_kb)
    os.kill(first, signal.SIGKILL)
    assert client.process.wait(timeout=60) == 1
    client.reader.join(timeout=10)
    assert "E494" in client.lines[-1]
    deadline = time.monotonic() + 60
    while is_running(second):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # They went on to listen, so that the service could not be started again.
    client, _ = start_two(start_service, exported_kb)
    client.stop(signal.SIGKILL)
    deadline = time.monotonic() + 60
    with suppress(ConnectionRefusedError):
        while client.connect():
            assert time.monotonic() < deadline, "a process still listens"
            time.sleep(0.1)
