"""docs/extending.md: the package of the page is installed, and does what it says."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text("utf8")

USE = """
import json, sys
from pathlib import Path
import spacy
from spacy_sapbert import LinkJob, build_kb, link_files, load_kb, read_vocabulary
from spacy_sapbert.errors import SapbertError

concepts, encoder, notes, folder = map(Path, sys.argv[1:])
(folder / "my.words").write_text("W1\\tblue fever\\nW1\\tazure fever\\n")
words = [concept.aliases for concept in read_vocabulary(folder / "my.words")]
build_kb(concepts, folder / "kb", str(encoder), backend="brute")
kb = load_kb(folder / "kb")
link_files(LinkJob((notes,), folder / "linked.conll", kb=str(folder / "kb")))
try:
    build_kb(concepts, folder / "other", str(encoder), backend="brutal")
except SapbertError as error:
    message = str(error)
from training.losses.functions import registry
import torch
loss = registry.losses.get("extras.cosine.v1")(margin=0.5)
vectors = torch.eye(2)
masks = torch.tensor([[0, 1], [1, 0]]), torch.zeros(2, 2)
print(json.dumps([kb.manifest.index.backend, kb.manifest.index.settings,
                  message, float(loss(vectors, *masks)), words]))
"""


@pytest.fixture
def package(tmp_path, new_process) -> Path:
    """A folder in which the package of the page is installed."""
    source, target = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    (toml,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (source / "pyproject.toml").write_text(toml)
    (source / "sapbert_extras.py").write_text("\n".join(code))
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-q"]
    command = [sys.executable, "-m", "pip", "install", *options]
    new_process.run([*command, "--target", target, source], check=True)
    return target


def test_package_of_the_page_adds_readers_formats_backends_and_losses(
    package, concepts_file, tiny_encoder, tmp_path, new_process
):
    notes = tmp_path / "note.txt"
    notes.write_text("Fever after a heart attack.")
    done = new_process.python(
        USE,
        concepts_file,
        tiny_encoder,
        notes,
        tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
    backend, settings, message, loss, words = json.loads(done.stdout.splitlines()[-1])
    assert (backend, settings) == ("brute", {"block": 1000})
    assert "'brute'" in message
    assert loss == 1.0
    assert words == [["blue fever", "azure fever"]]
    assert (tmp_path / "linked.conll").read_text() == (
        "# note.txt\nFever\tC0000004\nheart attack\tC0000001\n"
    )
