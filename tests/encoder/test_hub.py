import hashlib
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import torch
from safetensors.torch import load_file

from spacy_sapbert.encoder.hub import ask_hub, choose_files
from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError


@pytest.fixture
def silent_hub() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_hub_that_does_not_answer_is_an_error_soon(silent_hub, monkeypatch):
    answer = ask_hub("some/encoder", endpoint=silent_hub, seconds=0.2)
    assert "did not answer" in str(answer.problem)
    monkeypatch.setattr("spacy_sapbert.encoder.hub.ask_hub", lambda name: answer)
    with pytest.raises(SapbertError, match="E634.*did not answer.*fetch-encoder"):
        load_encoder("some/encoder")


def test_a_folder_that_is_missing_is_an_error_that_names_how_to_make_one(tmp_path):
    with pytest.raises(SapbertError, match=r"E634.*Check the path.*fetch-encoder"):
        load_encoder(str(tmp_path / "nope"))


COMMIT = "c0ffee" + "0" * 34
OLD, NEW = "some/PubMedBERT", "some/BiomedBERT"


class Hub(BaseHTTPRequestHandler):
    """The requests of huggingface_hub for one encoder, which has been renamed."""

    folder: Path
    fetched: list[str]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if OLD in path:
            self.answer(307, b"", {"Location": path.replace(OLD, NEW)})
        elif path.startswith(f"/api/models/{NEW}"):
            files = sorted(each.name for each in self.folder.iterdir())
            info = {"id": NEW, "sha": COMMIT, "private": False}
            info["siblings"] = [{"rfilename": name} for name in files]
            self.answer(200, json.dumps(info).encode(), {})
        else:
            name = path.rpartition("/")[2]
            data = (self.folder / name).read_bytes()
            etag = hashlib.sha256(data).hexdigest()
            if self.command == "GET":
                self.fetched.append(name)
            self.answer(200, data, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

    do_HEAD = do_GET

    def answer(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def hub(tiny_encoder, tmp_path) -> Iterator[tuple[str, type[Hub]]]:
    """A hub with an encoder of pickled weights, and with files of other libraries."""
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "published"))
    weights = folder / "model.safetensors"
    torch.save(load_file(weights), folder / "pytorch_model.bin")
    weights.unlink()
    for name in ("flax_model.msgpack", "tf_model.h5", "modeling.py"):
        (folder / name).write_bytes(b"of another library")
    handler = type("Handler", (Hub,), {"folder": folder, "fetched": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()


def test_load_encoder_of_the_hub_fetches_only_what_it_needs_and_keeps_it(
    new_process, hub, tiny_encoder, tmp_path
):
    """By its old name, and again when the hub is out of reach."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "import huggingface_hub, torch\n"
        "from safetensors.torch import load_file\n"
        "from spacy_sapbert.encoder import hub\n"
        "from spacy_sapbert.encoder.huggingface import load_encoder, read_settings\n"
        "weights = load_file(sys.argv[1])\n"
        "for problem in (None, 'none'):\n"
        "    if problem:\n"
        "        hub.ask_hub = lambda name: hub.Answer(problem)\n"
        f"    assert read_settings(Path({OLD!r})).pooling == 'mean'\n"
        f"    _, model = load_encoder({OLD!r})\n"
        "    for key, value in model.state_dict().items():\n"
        "        assert torch.equal(value, weights[key]), key\n"
    )
    address, handler = hub
    env = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home")}
    env["PYTHONPATH"] = os.pathsep.join(map(str, sys.path))
    weights = tiny_encoder / "model.safetensors"
    # without a limit of ours it takes longer than a minute
    done = new_process.python(code, weights, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    needed = {path.name for path in tiny_encoder.iterdir()} - {"model.safetensors"}
    assert sorted(handler.fetched) == sorted({*needed, "pytorch_model.bin"})


def test_choose_files_prefers_safetensors_and_takes_no_other_formats():
    small = ["config.json", "tokenizer_config.json", "vocab.txt"]
    bert = [*small, "pytorch_model.bin"]
    others = ["flax_model.msgpack", "tf_model.h5", "onnx/model.onnx", "README.md"]
    others += ["model.fp16.safetensors", "onnx/config.json", "training_args.bin"]
    assert choose_files([*bert, *others, "rust_model.ot"]) == sorted(bert)
    weights = "model.safetensors"
    assert choose_files([*bert, weights]) == sorted([*small, weights])
    shards = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
    shards.append("pytorch_model.bin.index.json")
    assert choose_files([*small, *shards]) == sorted([*small, *shards])
    names = ("config.json", weights, "sentencepiece.bpe.model", "vocab.txt")
    modules = [f"0_Transformer/{name}" for name in names]
    modules += ["1_Pooling/config.json", "modules.json"]
    assert choose_files([*modules, "2_Dense/pytorch_model.bin"]) == modules
    adapter = ["adapter.safetensors", weights]
    assert choose_files(adapter) == adapter
