"""Wheels of knowledge bases, without names that nobody may give away unasked."""

import json
import os
import shutil
import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.io.version import __version__
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder import versions
from spacy_sapbert.kb.folder.publication import describe_files, save_copy
from spacy_sapbert.kb.folder.records import Vocabulary
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.packages import (
    check_distribution,
    current_vocabularies,
    describe_vocabulary,
    format_requirement,
    package_kb,
)
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from spacy_sapbert.vocabularies.releases import releases_path
from tests.building import build_small_kb
from tests.commands import invoke


def test_package_kb_wheel_has_the_overlay_and_no_old_files(
    concepts_file, tiny_encoder, tmp_path
):
    folder = tmp_path / "kb"
    encoder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    (encoder / "README.md").write_text("# Ward encoder\n\nIt is better.\n", "utf8")
    build_small_kb(concepts_file, folder, encoder)
    kb = load_kb(folder)
    for number in range(2):
        kb = add_concepts(kb, [Concept(f"L{number}", [f"ward {number}"])])
    (folder / ".version.1.tmp").mkdir()
    (folder / "v3" / ".meta.json.1.tmp").write_text("{", "utf8")
    wheel = package_kb(folder, tmp_path, name="local", version="1.0")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        contents = {name: archive.read(name) for name in archive.namelist()}
    info = "sapbert_kb_local-1.0.dist-info"
    rows = contents.pop(f"{info}/RECORD").decode().splitlines()
    digests = {
        name: urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
        for name, content in contents.items()
    }
    expected = [f"{n},sha256={digests[n]},{len(contents[n])}" for n in contents]
    assert rows == [f"{info}/RECORD,,", *expected]
    digest = kb.manifest.digest
    assert contents[f"{info}/METADATA"].decode().splitlines() == [
        *("Metadata-Version: 2.1", "Name: sapbert-kb-local", "Version: 1.0"),
        f"Summary: 8 concepts for spacy-sapbert, digest {digest}",
        f"Requires-Dist: spacy-sapbert[torch]>={__version__}",
        "Description-Content-Type: text/markdown",
        *("", "# Ward encoder", "", "It is better."),
    ]
    assert f"digest = {digest!r}" in contents["sapbert_kb_local/__init__.py"].decode()
    points = "[spacy_sapbert_kbs]\nlocal = sapbert_kb_local:folder\n"
    assert contents[f"{info}/entry_points.txt"].decode() == points
    installed = tmp_path / "site" / "sapbert_kb_local" / "kb"
    save_copy(kb.version, tmp_path / "copy")
    for other in (installed, tmp_path / "copy"):
        assert {*describe_files(other / "v1")} == {*kb.manifest.files}
        assert {path.name for path in other.iterdir()} == {"CURRENT", "v1"}
        found = load_kb(other).link(["ward 1"])[0].candidates
        assert found[0]["cui"] == "L1"
    for name, version, message in (("../x", "1.0", "--name"), ("x", "one", "--vers")):
        with pytest.raises(SapbertError, match=message):
            package_kb(folder, tmp_path, name=name, version=version)
    (folder / "v1" / "index.f32").write_bytes(b"")
    with pytest.raises(SapbertError, match="index"):
        package_kb(folder, tmp_path, name="x", version="1.0")


def test_format_requirement_asks_for_what_linking_needs(sample_kb):
    manifest = load_kb(sample_kb).manifest  # a few names, exact, not exported
    start = "spacy-sapbert"
    assert format_requirement(manifest).startswith(f"{start}[torch]>=")
    graph = manifest.files["concepts.db"]
    exported = {**manifest.files, "encoder/onnx/encoder.onnx": graph}
    for backend, rows, extras in (
        *(("exact", 10**7, ""), ("faiss", 10, "[faiss]")),
        *(("hnsw", 500_000, ""), ("hnsw", 500_001, "[hnsw]")),
    ):
        index = manifest.index.model_copy(update={"backend": backend})
        counts = manifest.counts.model_copy(update={"rows": rows})
        changes = {"index": index, "counts": counts, "files": exported}
        changed = manifest.model_copy(update=changes)
        assert format_requirement(changed).startswith(f"{start}{extras}>="), backend


def test_find_kb_finds_an_installed_package_by_name(sample_kb, tmp_path, new_process):
    wheel = package_kb(sample_kb, tmp_path, name="tiny", version="1.2.3")
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


def test_installed_kb_that_cannot_be_imported_fails_alone(
    sample_kb, tmp_path, monkeypatch
):
    (tmp_path / "kb_that_exits.py").write_text("import sys\nsys.exit(0)\n", "utf8")
    monkeypatch.syspath_prepend(tmp_path)
    values = {"wrong": "math:pi", "exits": "kb_that_exits:folder"}
    points = [EntryPoint(name, value, "") for name, value in values.items()]
    monkeypatch.setattr(versions, "entry_points", lambda group: points)
    assert versions.find_kb(sample_kb) == sample_kb
    names = [versions.installed_name(x) for x in (sample_kb, None, "wrong", "other")]
    assert names == [None, None, "wrong", None]
    monkeypatch.setattr(versions, "entry_points", lambda group: points[:1])
    assert versions.installed_name(None) == "wrong"
    monkeypatch.setattr(versions, "entry_points", lambda group: points)
    for name, value in values.items():
        with pytest.raises(SapbertError, match=rf"E310.*'{name}', but {value}"):
            versions.find_kb(name)


def test_edit_of_an_installed_kb_is_an_error(own_kb, monkeypatch):
    class Installed:
        name = "tiny"

        def load(self) -> Path:
            return own_kb

    monkeypatch.setattr(versions, "entry_points", lambda group: [Installed()])
    words = ("kb", "add", "tiny", "--cui", "C1", "--alias", "x")
    assert "E586" in invoke(*words, code=1).output
    assert load_kb(own_kb).manifest.overlay is None


CONCEPTS = [
    Concept("C1", ["Fever", "Pyrexia"], sources={"MSH": [0, 1], "SNOMEDCT_US": [1]}),
    Concept("C2", ["Ache"], sources={"WARD": [0]}),
]
MSH = Vocabulary(source="MSH", names=2, release="2026", licence="own words")


def test_package_of_licensed_names_is_an_error_that_names_the_option(
    tiny_encoder, tmp_path
):
    concepts, folder, wheels = tmp_path / "a.jsonl", tmp_path / "kb", tmp_path / "wheel"
    write_concepts(concepts, CONCEPTS)
    known = {"release": "2026", "licence": "own words"}
    sources = {"MSH": known, "ABSENT": known}
    data = {"concepts_sha256": file_digest(concepts), "sources": sources}
    releases_path(concepts).write_text(json.dumps(data), "utf8")
    build_small_kb(concepts, folder, tiny_encoder, backend="exact")
    kb = load_kb(folder)
    found = kb.manifest.vocabularies
    assert found is not None
    affiliate = "SNOMED CT Affiliate License"
    snomed = Vocabulary(source="SNOMEDCT_US", names=1, licence=affiliate)
    assert found == [MSH, snomed, Vocabulary(source="WARD", names=1)]
    assert current_vocabularies(kb) == found
    assert describe_vocabulary(found[2]) == "WARD (1 names; licence unknown)"
    assert "MSH 2026 (2 names; own words)" in invoke("kb", "info", folder).output
    with pytest.raises(SapbertError, match="E424") as caught:
        package_kb(folder, wheels, name="x", version="1")
    assert "--may-distribute SNOMEDCT_US`" in str(caught.value)
    assert "WARD" not in str(caught.value)
    assert not wheels.exists()
    with pytest.raises(SapbertError, match="--may-distribute WARD,SNOMEDCT_US`"):
        package_kb(folder, wheels, name="x", version="1", may_distribute=["WARD"])
    added = add_concepts(kb, [Concept("C3", ["Cough"], sources={"MDR": [0]})])
    with pytest.raises(SapbertError, match="MedDRA"):
        check_distribution(current_vocabularies(added), ["SNOMEDCT_US"])


def test_check_distribution_knows_categories_of_the_umls():
    free = Vocabulary(source="A", names=1, licence="UMLS restriction category 0")
    check_distribution([free, MSH, Vocabulary(source="WARD", names=1)], [])
    limited = Vocabulary(source="A", names=1, licence="UMLS restriction category 3")
    with pytest.raises(SapbertError, match="category 3"):
        check_distribution([MSH, limited], [])
    check_distribution([limited], ["A"])
    with pytest.raises(SapbertError, match="no part of the Metathesaurus"):
        check_distribution([Vocabulary(source="UMLS", names=0)], [])


def test_a_name_that_is_nearly_one_is_told_which(tmp_path, monkeypatch):
    for name in ("medic", "mesh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "CURRENT").write_text("v1", "utf8")
    (tmp_path / "medikk").mkdir()  # is no knowledge base
    with pytest.raises(SapbertError, match=rf"E310.*mean {tmp_path / 'medic'}\?"):
        versions.find_kb(tmp_path / "medik")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SapbertError, match=r"E310.*mean medic\?"):
        versions.find_kb("medik")
    for name in ("umls", "nowhere/medic", "\0"):
        with pytest.raises(SapbertError, match="E310") as caught:
            versions.find_kb(name)
        assert "mean" not in str(caught.value)
