import errno
import json
import os
import sys
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb import packages
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.folder.publication import describe_files, save_copy
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.packages import package_kb
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import build_small_kb
from tests.commands import invoke


@pytest.fixture(scope="module")
def wheel(sample_kb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    return package_kb(sample_kb, folder, name="tiny", version="1.2.3")


def test_package_kb_wheel_has_every_file_of_the_kb(
    wheel: Path, sample_kb: Path
) -> None:
    assert wheel.name == "sapbert_kb_tiny-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        inside = {
            name.removeprefix("sapbert_kb_tiny/kb/")
            for name in archive.namelist()
            if name.startswith("sapbert_kb_tiny/kb/")
        }
    names = ["meta.json", *load_kb(sample_kb).manifest.files]
    assert inside == {"CURRENT", *(f"v1/{name}" for name in names)}


def test_package_kb_wheel_has_the_overlay_and_no_old_files(
    concepts_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kb"
    build_small_kb(concepts_file, folder, tiny_encoder)
    kb = load_kb(folder)
    for number in range(2):
        kb = add_concepts(kb, [Concept(f"L{number}", [f"ward {number}"])])
    (folder / ".version.1.tmp").mkdir()
    (folder / "v3" / ".meta.json.1.tmp").write_text("{", "utf8")
    wheel = package_kb(folder, tmp_path, name="local", version="1.0")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    installed = tmp_path / "site" / "sapbert_kb_local" / "kb"
    save_copy(kb, tmp_path / "copy")
    for other in (installed, tmp_path / "copy"):
        assert {*describe_files(other / "v1")} == {*kb.manifest.files}
        assert {path.name for path in other.iterdir()} == {"CURRENT", "v1"}
        found = load_kb(other).link(["ward 1"])[0].candidates
        assert found[0]["cui"] == "L1"


def test_find_kb_finds_an_installed_package_by_name(
    wheel: Path, sample_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    install += ["--no-index", "--target", str(tmp_path / "site"), str(wheel)]
    new_process.run(install, check=True)
    code = (
        "import json, spacy\n"
        "from spacy.tokens import Doc, Span\n"
        "for kb in (None, 'tiny'):\n"
        "    nlp = spacy.blank('en')\n"
        "    nlp.add_pipe('sapbert_linker', config={'kb': kb})\n"
        "    doc = Doc(nlp.vocab, words=['heart', 'attacks'])\n"
        "    doc.ents = [Span(doc, 0, 2, 'X')]\n"
        "    print(json.dumps(nlp(doc).ents[0]._.candidates))\n"
        "import sapbert_kb_tiny\n"
        "print(json.dumps(sapbert_kb_tiny.digest))\n"
    )
    path = {"PYTHONPATH": str(tmp_path / "site")}
    done = new_process.python(code, env={**os.environ, **path}, cwd=tmp_path)
    kb = load_kb(sample_kb)
    expected = kb.link(["heart attacks"])[0].candidates
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert printed == [expected, expected, kb.manifest.digest]


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [("My KB", "1.0", "--name"), ("../x", "1.0", "--name"), ("x", "one", "--version")],
)
def test_package_kb_invalid_name_or_version_is_an_error(
    sample_kb: Path, tmp_path: Path, name: str, version: str, message: str
) -> None:
    with pytest.raises(SapbertError, match=message):
        package_kb(sample_kb, tmp_path, name=name, version=version)


def test_package_kb_of_a_damaged_kb_is_an_error(own_kb: Path, tmp_path: Path) -> None:
    (own_kb / "v1" / "index.hnsw").write_bytes(b"")
    with pytest.raises(SapbertError, match="index.hnsw"):
        package_kb(own_kb, tmp_path, name="x", version="1.0")


def test_package_kb_on_a_full_disk_keeps_the_old_wheel(
    sample_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "sapbert_kb_x-1.0-py3-none-any.whl"
    wheel.write_bytes(b"good")

    def fill(archive: zipfile.ZipFile, *_: Any) -> None:
        archive.writestr("x", b"n")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(packages.ZipFile, "write", fill)
        with pytest.raises(SapbertError, match=rf"E004.*{wheel.name}.*No space left"):
            package_kb(sample_kb, tmp_path, name="x", version="1.0", force=True)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]
    assert wheel.read_bytes() == b"good"
    package_kb(sample_kb, tmp_path, name="x", version="1.0", force=True)
    assert zipfile.is_zipfile(wheel)


def test_installed_kb_that_cannot_be_imported_fails_alone(
    sample_kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kb_that_exits.py").write_text("import sys\nsys.exit(0)\n", "utf8")
    monkeypatch.syspath_prepend(tmp_path)
    values = {
        "broken": "no_such_package:folder",
        "wrong": "math:pi",
        "bad": "math",
        "exits": "kb_that_exits:folder",
    }
    points = [EntryPoint(name, value, "") for name, value in values.items()]
    monkeypatch.setattr(versions, "entry_points", lambda group: points)
    assert versions.find_kb(sample_kb) == sample_kb
    for name, value in values.items():
        with pytest.raises(SapbertError, match=rf"E310.*'{name}', but {value}"):
            versions.find_kb(name)


def test_edit_of_an_installed_kb_is_an_error(
    own_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        name = "tiny"

        def load(self) -> Path:
            return own_kb

    monkeypatch.setattr(versions, "entry_points", lambda group: [Installed()])
    words = ("kb", "add", "tiny", "--cui", "C1", "--alias", "x")
    assert "E586" in invoke(*words, code=1).output
    assert load_kb(own_kb).manifest.overlay is None
