"""Several processes behind one port: one file of decisions, one end."""

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from spacy_sapbert.serve.reviews.store import ReviewStore
from tests.commands import invoke

from .conftest import LocalClient, OpenLocal, Start

DECIDERS, DECISIONS = 4, 8


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_processes_keep_all_decisions_in_one_file(
    start_service: Start, sample_kb: Path, tmp_path: Path
) -> None:
    reviews = tmp_path / "reviews.db"
    client = start_service(sample_kb, "--workers", 2, "--reviews", reviews)
    client.wait_for("listening")  # the second one
    note = {"name": "note", "text": "Fever. " * DECISIONS}
    document = client.post("/reviews/documents", note).json()["document"]
    statuses: list[int] = []

    def decide(reviewer: str) -> None:
        for number in range(DECISIONS):
            start = 7 * number
            body = {
                "key": f"{reviewer}-{number:08}".replace(" ", "-"),
                "reviewer": reviewer,
                "document": document,
                "start": start,
                "end": start + 5,
                "chosen": "C0000004",
            }
            answer = client.post("/reviews/decisions", {"decisions": [body]})
            statuses.append(answer.status)

    threads = [
        threading.Thread(target=decide, args=(f"Anna {n}",)) for n in range(DECIDERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * DECIDERS * DECISIONS
    assert client.post("/link", {"texts": ["Fever"]}).status == 200
    assert client.post("/reviews/teach", {}).code == "E495"
    assert client.get("/metrics").code == "E495"
    assert client.stop() == 0
    events = [json.loads(line) for line in client.lines if line.startswith("{")]
    started = {e["process"] for e in events if e["event"] == "listening"}
    assert len(started) == 2
    assert not any(map(is_running, started))
    assert [e["event"] for e in events].count("ended") == 2
    assert len(ReviewStore(reviews).latest()) == DECIDERS * DECISIONS


def test_if_one_process_dies_the_service_ends_with_an_error(
    start_service: Start, sample_kb: Path
) -> None:
    client = start_service(sample_kb, "--workers", 2)
    client.wait_for("listening")
    lines = [json.loads(line) for line in client.lines if line.startswith("{")]
    first, second = (e["process"] for e in lines if e["event"] == "listening")
    os.kill(first, signal.SIGKILL)
    assert client.process.wait(timeout=60) == 1
    client.reader.join(timeout=10)
    assert "E494" in client.lines[-1]
    for _ in range(50):
        if not is_running(second):
            break
        time.sleep(0.1)
    assert not is_running(second)


def test_if_the_first_process_is_killed_the_others_end(
    start_service: Start, sample_kb: Path
) -> None:
    """They went on to listen, so that the service could not be started again."""
    client = start_service(sample_kb, "--workers", 2)
    client.wait_for("listening")
    client.stop(signal.SIGKILL)
    for _ in range(600):  # they may have to end slowly on a busy machine
        try:
            socket.create_connection(("127.0.0.1", client.port)).close()
        except ConnectionRefusedError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("a process still listens")


def test_teaching_needs_one_process(
    open_local: OpenLocal, sample_kb: Path, tmp_path: Path
) -> None:
    store = ReviewStore(tmp_path / "reviews.db")
    several: LocalClient = open_local(sample_kb, store, workers=2)
    for answer in (
        several.get("/reviews/teach"),
        several.post("/reviews/teach", {}),
        several.get("/metrics"),
    ):
        assert (answer.status, answer.code) == (409, "E495")
    assert several.get("/reviews/documents").status == 200


@pytest.mark.parametrize("number", [0, 65])
def test_the_number_of_processes_is_bounded(number: int) -> None:
    invoke("serve", "--workers", number, code=2)
