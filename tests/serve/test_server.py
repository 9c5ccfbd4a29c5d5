"""A service starts, switches to a new version, and ends."""

import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.serve.access import Access, Role
from spacy_sapbert.serve.server import open_socket
from spacy_sapbert.serve.settings import check_remote, is_local
from spacy_sapbert.vocabularies.concepts import Concept

from .conftest import Reply, Start


@pytest.mark.parametrize("host", ["127.0.0.1", "127.5.5.5", "::1", "localhost"])
def test_a_local_address_needs_no_token(host: str) -> None:
    assert is_local(host)
    check_remote(host, tokens=(), allow_remote=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "terms.example", ""])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(SapbertError, match="E450"):
        check_remote(host, tokens=(), allow_remote=False)
    check_remote(host, tokens=[Access("t", Role.READER)], allow_remote=False)
    check_remote(host, tokens=(), allow_remote=True)


def test_an_answer_is_sent_without_waiting_for_the_client() -> None:
    with open_socket("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP  # else asyncio sets no TCP_NODELAY


def test_a_port_in_use_is_an_error_before_anything_is_loaded(
    sample_kb: Path, new_process: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        command = ["serve", str(sample_kb), "--port", str(port)]
        done = new_process.run(
            [sys.executable, "-m", "spacy_sapbert", *command], timeout=120
        )
    assert done.returncode == 1
    assert "[E450]" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_new_version_is_used_and_a_damaged_one_is_not(
    start_service: Start, own_kb: Path
) -> None:
    client = start_service(own_kb)
    body = {"mentions": ["zebra stripes"]}
    before = client.post("/mentions", body).json()
    kb = load_kb(own_kb)
    add_concepts(kb, [Concept("C0000009", ["Zebra stripes"], types=["T047"])])
    digest = client.wait_for("kb_switched")["digest"]
    after = client.post("/mentions", body).json()
    assert (after["mentions"][0]["cui"], after["kb"]) == ("C0000009", digest)
    assert before["kb"] != digest
    (own_kb / "v2" / "meta.json").write_text("{", "utf8")
    assert client.wait_for("kb_not_switched")["code"] == "E304"
    assert client.post("/mentions", body).json() == after
    assert client.stop() == 0


def test_the_end_loses_no_accepted_request(
    start_service: Start, sample_kb: Path
) -> None:
    client = start_service(sample_kb)
    text = "Fever and a heart attack. " * 1_500
    replies: list[Reply] = []

    def ask() -> None:
        replies.append(client.post("/link", {"texts": [text], "k": 1}))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):  # until all three are accepted
        if b"sapbert_requests_in_flight 4.0" in client.get("/metrics").body:
            break
        time.sleep(0.01)
    assert client.stop(signal.SIGTERM) == 0
    for thread in threads:
        thread.join()
    assert [reply.status for reply in replies] == [200] * 3
    found = replies[0].json()["documents"][0]["entities"]
    assert len(found) == 3_000
    assert "ended" in client.lines[-1]


def test_importing_the_package_imports_no_service(new_process: Any) -> None:
    code = "import sys, spacy_sapbert.cli.main; print({*sys.modules} & {*sys.argv[1:]})"
    done = new_process.python(code, "fastapi", "starlette", "uvicorn", check=True)
    assert done.stdout == "set()\n"
