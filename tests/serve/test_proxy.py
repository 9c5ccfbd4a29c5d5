"""The service behind a path of a real proxy."""

import json
import re
import shutil
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest

from .conftest import Start

NGINX = shutil.which("nginx")
pytestmark = pytest.mark.skipif(NGINX is None, reason="no nginx is installed")
CONFIG = """
daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/1; uwsgi_temp_path {folder}/2; scgi_temp_path {folder}/3;
    server {{
        listen 127.0.0.1:{port};
        location /terms/ {{ proxy_pass http://127.0.0.1:{to}/; }}
    }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def fetch(address: str, data: Any = None, **headers: str) -> tuple[str, str]:
    """Return the body, and the address from which it came."""
    body = None if data is None else json.dumps(data).encode()
    headers = {"content-type": "application/json", **headers}
    with urlopen(Request(address, body, headers), timeout=20) as answer:
        return answer.read().decode(), answer.url


@pytest.fixture(scope="module")
def base(
    start_service: Start,
    shared_process: Any,
    sample_kb: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The address of a service with reviews behind a proxy."""
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    address = f"http://127.0.0.1:{port}/terms"
    reviews = ("--reviews", folder / "reviews.db", "--public-url", address)
    service = start_service(sample_kb, *reviews)
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, port=port, to=service.port))
    shared_process.start([NGINX, "-c", str(config), "-e", str(folder / "error.log")])
    for _ in range(100):
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return address
        time.sleep(0.1)
    raise AssertionError((folder / "error.log").read_text())


def test_all_files_of_the_page_are_found_behind_a_path(base: str) -> None:
    todo, seen = [f"{base}/"], set()
    while todo:
        address = todo.pop()
        if address not in seen:
            seen.add(address)
            assert address.startswith(f"{base}/")
            text, _ = fetch(address)
            parts = re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
            parts += re.findall(r'(?:from|import)\s*\(?"(\.[^"]+)"', text)
            todo += [urljoin(address, part) for part in parts if "{" not in part]
    assert any(address.partition("?")[0].endswith(".js") for address in seen)


def test_a_note_is_linked_and_decided_behind_a_path(base: str) -> None:
    origin = base.removesuffix("/terms")
    note = {"name": "n", "text": "Fever."}
    kept, _ = fetch(f"{base}/reviews/documents", note, origin=origin)
    place = {"document": json.loads(kept)["document"], "start": 0, "end": 5}
    decision = {**place, "key": "k" * 8, "reviewer": "Ben", "chosen": "C0000004"}
    fetch(f"{base}/reviews/decisions", {"decisions": [decision]}, origin=origin)
    found, _ = fetch(f"{base}/reviews/export?reviewer=Ben")
    assert json.loads(found)["entities"][0]["cui"] == "C0000004"


def test_protocols_name_addresses_behind_the_path(base: str) -> None:
    manifest = json.loads(fetch(f"{base}/reconcile")[0])
    assert manifest["identifierSpace"] == f"{base}/concepts/"
    for suggest in manifest["suggest"].values():
        address = suggest["service_url"] + suggest["service_path"]
        assert json.loads(fetch(f"{address}?prefix=fev")[0])["result"] is not None
    preview = manifest["preview"]["url"].replace("{{id}}", "C0000004")
    assert "Fever" in fetch(preview)[0]
