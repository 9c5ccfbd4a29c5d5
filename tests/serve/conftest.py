"""A service in a process of its own, and a client that speaks plain HTTP."""

import asyncio
import base64
import http.client
import io
import json
import os
import queue
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("prometheus_client", reason="the extra `serve` is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

JSON = {"content-type": "application/json"}
STARTED = 300  # seconds in which a service has to start on a busy machine


class Reply(NamedTuple):
    """An answer of a service."""

    status: int
    headers: Any
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json()["error"]["code"])


class Sender:
    """Requests, however `send` sends them."""

    def get(self, path: str, query: Any = (), **headers: str) -> Reply:
        address = f"{path}?{urlencode(query, doseq=True)}" if query else path
        return self.send("GET", address, b"", headers)

    def post(self, path: str, data: Any, **headers: str) -> Reply:
        return self.send("POST", path, json.dumps(data).encode(), {**JSON, **headers})


class PortClient(Sender):
    """Requests to a port of this machine."""

    port: int

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Any = ()
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body or None, dict(headers))
            got = connection.getresponse()
            found = {name.lower(): value for name, value in got.getheaders()}
            return Reply(got.status, found, got.read())
        finally:
            connection.close()

    def connect(self, *sent: bytes) -> socket.socket:
        """Open a connection, and send bytes."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        for data in sent:
            connection.sendall(data)
        return connection


class Client(PortClient):
    """A process that serves, its log, and requests to it."""

    def __init__(
        self, shared_process: Any, command: list[str], **environment: str
    ) -> None:
        self.process = shared_process.start(
            command,
            stderr=shared_process.PIPE,
            stdout=shared_process.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        self.lines: list[str] = []
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        self.port = int(self.wait_for("listening")["url"].rpartition(":")[2])

    def read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("{"):
                self.events.put(json.loads(line))
        self.events.put({"event": "end of log"})

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the next such event of the log."""
        while True:
            found = self.events.get(timeout=STARTED)
            if found["event"] == event:
                return found
            assert found["event"] != "end of log", "".join(self.lines)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the process, and return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self.reader.join(timeout=10)
        return int(code)


Start = Callable[..., Client]


def send_files(client: Sender, *files: tuple[str, str]) -> Any:
    """Import texts, and return what became of them."""
    encoded = [
        {"name": name, "content": base64.b64encode(text.encode()).decode()}
        for name, text in files
    ]
    answer = client.post("/reviews/import", {"files": encoded})
    assert answer.status == 200, answer.body
    link_all(client)
    return answer.json()


def link_all(client: Sender) -> None:
    """Link the documents that are not linked yet."""
    while client.post("/reviews/prepare", {}).json()["left"]:
        pass


def decide(
    client: Sender,
    reviewer: str,
    places: list[Any],
    chosen: str | None,
    *,
    settles: bool = False,
) -> None:
    """Write a decision on each of some places."""
    decisions = [
        {
            "key": secrets.token_hex(8),
            "reviewer": reviewer,
            **{name: place[name] for name in ("document", "start", "end")},
            "label": place.get("label", ""),
            "chosen": chosen,
            "settles": settles,
        }
        for place in places
    ]
    answer = client.post("/reviews/decisions", {"decisions": decisions})
    assert answer.status == 200, answer.body


def wait_for_teaching(client: Sender) -> Any:
    """Return the state of the teaching when it has ended."""
    while (state := client.get("/reviews/teach").json())["state"] == "running":
        time.sleep(0.01)
    assert state["state"] == "done", state
    return state


def use_newest(client: Sender) -> Any:
    """Use the newest taught version, and return it."""
    number = client.get("/reviews/teach").json()["versions"][0]["number"]
    answer = client.post("/reviews/switch", {"number": number})
    newest = answer.json()["versions"][0]
    assert newest["used"]
    return newest


@pytest.fixture(scope="session")
def start_service(shared_process) -> Start:
    """Starts `spacy sapbert serve` with some options on a free port."""

    def start(*options: object, **environment: str) -> Client:
        command = [sys.executable, "-m", "spacy_sapbert", "serve", "--port", "0"]
        return Client(shared_process, [*command, *map(str, options)], **environment)

    return start


class LocalClient(Sender):
    """Requests to an application in this process: no port, no lifespan."""

    def __init__(self, application: Any, log: io.StringIO) -> None:
        self.application, self.log = application, log

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Any = ()
    ) -> Reply:
        async def ask() -> Any:
            transport = httpx.ASGITransport(self.application)
            base = "http://127.0.0.1"
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                given = {"content": body, "headers": dict(headers)}
                return await client.request(method, path, **given)

        got = asyncio.run(ask())
        return Reply(got.status_code, got.headers, got.content)


def start_linking(kb: Path, options: Any = None, **limits: Any) -> Any:
    """Start what links for a service, without a port, with some options of linking."""
    from spacy_sapbert.pipeline.running import complete_pipeline, load_pipeline
    from spacy_sapbert.serve.service import Service

    nlp = load_pipeline(None)
    linker: Any = complete_pipeline(
        nlp, kb=str(kb), mentions="names", options=options or {}
    )
    service = Service(nlp, linker, **limits)
    service.start()
    return service


OpenLocal = Callable[..., LocalClient]


@pytest.fixture(scope="session")
def open_local() -> Iterator[OpenLocal]:
    """Opens a service in this process, for a folder, with settings."""
    from spacy_sapbert.serve.application import make_application
    from spacy_sapbert.serve.logs import EventLog
    from spacy_sapbert.serve.settings import Settings

    opened: list[Any] = []

    def make(kb: Path, store: Any = None, **settings: Any) -> LocalClient:
        chosen = Settings(**settings)
        service = start_linking(kb, limits=chosen.limits)
        opened.append(service)
        log = io.StringIO()
        return LocalClient(make_application(service, chosen, EventLog(log), store), log)

    yield make
    for service in opened:
        service.close()


@pytest.fixture(scope="session")
def local(open_local, sample_kb) -> LocalClient:
    """A service in this process with the names of the small vocabulary."""
    return open_local(sample_kb)


TOKEN = "a-token-of-the-tests"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="session")
def strict_settings() -> dict[str, Any]:
    """A token, small limits, one other name and one other origin."""
    from spacy_sapbert.serve.access import Access, Role
    from spacy_sapbert.serve.settings import Limits

    limits = Limits(body=2000, documents=3, characters=400, of_client=2, seconds=1.0)
    return {
        "tokens": (Access(TOKEN, Role.ADMIN),),
        "names": frozenset({"terms.example"}),
        "origins": frozenset({"http://127.0.0.1:3333"}),
        "limits": limits,
    }


@pytest.fixture(scope="session")
def strict(open_local, sample_kb, strict_settings) -> LocalClient:
    """A service with these settings."""
    return open_local(sample_kb, **strict_settings)


class ThreadClient(PortClient):
    """A server that listens in a thread of this process, its log, and requests to it.

    It has no signals, which only the first thread has.
    """

    def __init__(
        self, servers: list[Any], service: Any, settings: Any, store: Any
    ) -> None:
        from spacy_sapbert.serve.logs import EventLog
        from spacy_sapbert.serve.server import open_socket, run_server

        bound = open_socket("127.0.0.1", 0)
        self.port = bound.getsockname()[1]
        self.log = io.StringIO()
        given = (service, settings, bound, EventLog(self.log), store)
        self.thread = threading.Thread(target=run_server, args=given)
        self.thread.start()
        self.wait_for("listening")
        while not servers:
            time.sleep(0.01)
        self.server = servers.pop()
        while not self.server.started:
            time.sleep(0.01)

    def read_events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a name that the log has so far."""
        events = map(json.loads, self.log.getvalue().splitlines())
        return [event for event in events if event["event"] == name]

    def wait_for(self, name: str, **values: str) -> dict[str, Any]:
        """Return the last event of a name with these values, when there is one."""
        for _ in range(3000):
            for event in reversed(self.read_events(name)):
                if values.items() <= event.items():
                    return event
            time.sleep(0.01)
        raise AssertionError(self.log.getvalue())

    def stop(self) -> None:
        """End the server, which answers what it has accepted."""
        self.server.should_exit = True
        self.thread.join(30)
        assert self.read_events("ended")


Listen = Callable[..., ThreadClient]


@pytest.fixture(scope="session")
def listen() -> Iterator[Listen]:
    """Opens a service that listens on a port, for a folder, with settings."""
    from spacy_sapbert.serve import server
    from spacy_sapbert.serve.settings import Settings

    opened: list[ThreadClient] = []
    servers: list[Any] = []

    class Server(server.uvicorn.Server):  # type: ignore[misc]
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            servers.append(self)

    def start(
        kb: Path, store: Any = None, options: Any = None, **chosen: Any
    ) -> ThreadClient:
        settings = Settings(port=0, **chosen)
        service = start_linking(kb, options, limits=settings.limits)
        opened.append(ThreadClient(servers, service, settings, store))
        return opened[-1]

    before = sys.getswitchinterval()
    sys.setswitchinterval(server.SWITCH_SECONDS)  # as in a process that serves
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "HANG_UP", None)
        patch.setattr(server.uvicorn, "Server", Server)
        for of_process in ("redirect_messages", "let_threads_share"):
            patch.setattr(server, of_process, lambda *_: None)
        yield start
        for client in opened:
            client.stop()
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def kb(sample_kb) -> Any:
    """The small vocabulary."""
    from spacy_sapbert import load_kb

    return load_kb(sample_kb)


@pytest.fixture
def store(tmp_path) -> Any:
    """A new file of reviews."""
    from spacy_sapbert.serve.reviews.store import ReviewStore

    opened = ReviewStore(tmp_path / "reviews.db")
    yield opened
    opened.close()
