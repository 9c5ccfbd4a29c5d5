"""The step `upload` of project.yml, with the command line of the hub and a hub here."""

import base64
import json
import os
import shutil
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does, takes each file as a small one, and keeps requests."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lines = [json.loads(line) for line in body.splitlines()]
        self.server.requests.append((self.path, lines))  # type: ignore[attr-defined]
        answer: dict[str, Any] = {"url": f"http://{self.headers['Host']}/me/encoder"}
        if "/preupload/" in self.path:
            names = [file["path"] for file in lines[0]["files"]]
            some = {"uploadMode": "regular", "shouldIgnore": False}
            answer = {"files": [{"path": name, **some} for name in names]}
        elif "/commit/" in self.path:
            answer = {"commitUrl": f"{answer['url']}/commit/1", "commitOid": "1"}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.requests = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_upload_sends_encoder_and_card_to_the_named_place_alone(
    hub, run_training, make_config, pairs_file, tmp_path, new_process
):
    folder = tmp_path / "models" / "mine"
    run_training(folder, pairs_file, make_config({"training.steps": 1}))
    shutil.copy(ROOT / "project.yml", tmp_path)
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_TOKEN": "hf_none"}
    env["HF_HUB_OFFLINE"] = "0"
    command = [sys.executable, "-m", "spacy", "project", "run", "upload", "."]
    command += ["--vars.name", "mine"]
    done = new_process.run(command, cwd=tmp_path, env=env)
    assert done.returncode != 0
    assert "the following arguments are required: repo_id" in done.stderr
    assert "Traceback" not in done.stderr
    assert hub.requests == []
    command += ["--vars.hub", "me/encoder"]
    new_process.run(command, cwd=tmp_path, env=env, check=True)
    created = [lines[0] for path, lines in hub.requests if path.endswith("/create")]
    assert {(each["name"], each["organization"]) for each in created} == {
        ("encoder", "me")
    }
    assert all(each["private"] for each in created)
    ((path, lines),) = [each for each in hub.requests if "/commit/" in each[0]]
    assert path == "/api/models/me/encoder/commit/main"
    sent = {
        line["value"]["path"]: base64.b64decode(line["value"]["content"])
        for line in lines
        if line["key"] == "file"
    }
    encoder = folder / "encoder"
    files = [each for each in encoder.rglob("*") if each.is_file()]
    assert sent == {
        each.relative_to(encoder).as_posix(): each.read_bytes() for each in files
    }
    assert sent["README.md"].startswith(b"---\ntags: [biomedical, ")
