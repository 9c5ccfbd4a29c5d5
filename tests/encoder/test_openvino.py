"""The encoder in OpenVINO: like the original, kept whole, and never asked for news."""

import os
import shutil
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
from spacy_sapbert.encoder.export import export_encoder
from spacy_sapbert.encoder.huggingface import EncoderSettings, load_encoder
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.folder.versions import list_versions, read_version
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.settings import export_kb

openvino = pytest.importorskip("openvino", reason="OpenVINO is not installed")

NAMES = [
    "Heart attack",
    "fever",
    "a b c d e f g",
    "",
    "頭痛",
    "x " * 100,
    "Pain",
    "pain",
]
OPENVINO = EncoderConfig("openvino")


@pytest.fixture(scope="module")
def exported_encoder(
    tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "encoder"
    shutil.copytree(tiny_encoder, folder)
    (folder / "openvino").mkdir()
    export_encoder(folder, folder / "openvino", EncoderSettings("mean"))
    return folder


@pytest.mark.parametrize("pooling", sorted(POOLINGS))
def test_openvino_vectors_equal_those_of_torch(
    exported_encoder: Path, pooling: str
) -> None:
    settings = EncoderSettings(pooling, 12, True)
    found = []
    for engine in ("torch", "openvino"):
        config = EncoderConfig(engine, names_per_pass=3)
        encoder = Encoder.open(exported_encoder, config, settings=settings)
        found.append((encoder.embed(NAMES), encoder.tokenize(NAMES)))
    (ours, our_pieces), (theirs, their_pieces) = found
    assert our_pieces == their_pieces
    assert np.allclose(ours, theirs, atol=1e-5)
    assert ours.dtype == theirs.dtype == np.float32


def test_openvino_name_alone_has_the_vector_that_it_has_among_others(
    exported_encoder: Path,
) -> None:
    settings = EncoderSettings("mean", max_length=61)
    encoder = Encoder.open(exported_encoder, OPENVINO, settings=settings)
    # 61 tokens, of 64 positions that the encoder has
    names = [" ".join(["fever"] * words) for words in (1, 13, 14, 15, 30, 59, 70)]
    assert [len(ids) for ids in encoder.tokenize(names)[0]][-2:] == [61, 61]
    together = encoder.embed(names)
    alone = np.concatenate([encoder.embed([name]) for name in names])
    np.testing.assert_allclose(alone, together, atol=1e-6)


def test_openvino_bfloat16_is_close_to_float32(exported_encoder: Path) -> None:
    exact = Encoder.open(exported_encoder, OPENVINO)
    fast = Encoder.open(exported_encoder, replace(OPENVINO, precision="bf16"))
    cosines = (exact.embed(NAMES[:3]) * fast.embed(NAMES[:3])).sum(axis=1)
    assert cosines.min() > 0.99


def test_export_kb_twice_leaves_a_valid_kb(sample_kb: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sample_kb, tmp_path / "kb"))
    before = read_version(folder).manifest
    assert before.engines == ["torch"]
    export_kb(folder)
    export_kb(folder)  # the same, so there is no new version
    assert list_versions(folder) == ["v1", "v2"]
    after = load_kb(folder).manifest
    assert after.engines == ["torch", "openvino"]
    same = {"files": before.files, "digest": before.digest}
    assert after.model_copy(update=same) == before
    encoder = read_version(folder).encoder
    assert read_version(folder, "v1").encoder != encoder
    (encoder / "openvino" / "encoder.bin").write_bytes(b"half")
    with pytest.raises(SapbertError, match="encoder.bin"):
        load_kb(folder)


def test_build_kb_exports_by_default_and_is_close_to_torch(
    concepts_file: Path, tiny_encoder: Path, sample_kb: Path, tmp_path: Path
) -> None:
    build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder))
    built, other = load_kb(tmp_path / "kb"), load_kb(sample_kb)
    rows = np.arange(built.rows)
    assert np.allclose(built.vectors(rows), other.vectors(rows), atol=1e-5)
    assert built.manifest.encoder.fingerprint == other.manifest.encoder.fingerprint
    assert built.manifest.encoder.engine == "openvino"
    assert built.manifest.engines == ["torch", "openvino"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("encoder.xml", "<net/>"),
        ("encoder.bin", ""),
        ("encoder.bin", "half"),
        ("../tokenizer.json", "{"),
    ],
)
def test_openvino_damaged_export_is_an_error(
    exported_encoder: Path, tmp_path: Path, file: str, text: str
) -> None:
    folder = Path(shutil.copytree(exported_encoder, tmp_path / "damaged"))
    (folder / "openvino" / file).write_text(text, "utf8")
    with pytest.raises(SapbertError, match="E223|E203"):
        Encoder.open(folder, OPENVINO)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('offset="0"', 'offset="99999999999"'),
        ('offset="0"', 'offset="-8"'),
        ('shape="155, 32"', 'shape="155, 99999999"'),
        ('element_type="f32"', 'element_type="string"'),
        ('<?xml version="1.0"?>', '<!DOCTYPE net [<!ENTITY a "b">]>'),
        ('type="Gather" version="opset8"', 'type="Gather" version="extension"'),
        # They end the process when OpenVINO reads them.
        ('type="Const" version="opset1"', 'type="Broadcast" version="opset1"'),
        ('type="Gather" version="opset8"', 'type="ReadValue" version="opset13"'),
        ("<input>", "<input/><input>"),
        ("</net>", ""),
    ],
)
def test_openvino_crafted_graph_is_an_error(
    exported_encoder: Path, tmp_path: Path, old: str, new: str
) -> None:
    folder = Path(shutil.copytree(exported_encoder, tmp_path / "crafted"))
    path = folder / "openvino" / "encoder.xml"
    text = path.read_text("utf8")
    assert old in text
    path.write_text(text.replace(old, new), "utf8")
    with pytest.raises(SapbertError, match="E223"):
        Encoder.open(folder, OPENVINO)


def test_openvino_opens_no_socket(
    tiny_encoder: Path, tmp_path: Path, new_process: Any
) -> None:
    folder = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    (folder / "openvino").mkdir()
    home = tmp_path / "home"
    home.mkdir()
    # OpenVINO's reports go out in a thread, by a forked process.
    code = f"""
import sys, threading
import torch  # with CUDA it runs ldconfig
from pathlib import Path
told = []
watched = ("socket.connect", "socket.getaddrinfo", "os.fork", "subprocess.Popen")
sys.addaudithook(lambda event, _: told.append(event) if event in watched else None)
from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
from spacy_sapbert.encoder.export import export_encoder
from spacy_sapbert.encoder.huggingface import EncoderSettings
folder = Path({str(folder)!r})
export_encoder(folder, folder / "openvino", EncoderSettings("mean"))
Encoder.open(folder, EncoderConfig("openvino")).embed(["fever"])
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(10)
assert not told, told
assert "openvino_telemetry" not in sys.modules
assert not [*Path({str(home)!r}).iterdir()]
"""
    done = new_process.python(code, env={**os.environ, "HOME": str(home)})
    assert done.returncode == 0, done.stderr


LIGHT = """
import sys
import numpy as np
import spacy
from spacy.tokens import Span
nlp = spacy.blank("en")
nlp.add_pipe("sapbert_linker", config={
    "kb": sys.argv[1],
    "encoder": {"@architectures": "spacy-sapbert.OpenVinoEncoder.v1"},
})
nlp.initialize()
kb = nlp.get_pipe("sapbert_linker").kb
np.save(sys.argv[2], kb.embed(["heart attack", "a mild fever", "MI"]).vectors)
doc = nlp.make_doc("fever")
doc.ents = [Span(doc, 0, 1, "X")]
for _, component in nlp.pipeline:
    doc = component(doc)
assert doc.ents[0]._.cui == "C0000004", doc.ents[0]._.cui
heavy = {"torch", "transformers", "spacy_transformers", "sklearn"}
assert not heavy & {*sys.modules}, heavy & {*sys.modules}
"""


@pytest.mark.skipif(os.name != "posix", reason="this system has no such signals")
def test_openvino_that_ends_in_a_thread_leaves_signals_as_they_are(
    exported_kb: Path, new_process: Any
) -> None:
    """A service closes a knowledge base in another thread than that which opened it."""
    code = f"""
import os, signal, threading
from spacy_sapbert.kb.knowledge_base import load_kb
signal.signal(signal.SIGTERM, lambda *_: print("asked to end"))
opened = [load_kb({str(exported_kb)!r}).encoder.engine]
opened[0].request()
thread = threading.Thread(target=opened.clear)
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = new_process.python(code)
    assert (done.returncode, done.stdout.strip()) == (0, "asked to end")


@pytest.mark.smoke
@pytest.mark.skipif(os.name != "posix", reason="links need a right on this system")
def test_openvino_links_without_torch_and_transformers(
    exported_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    heavy = ("torch", "transformers", "spacy_transformers", "spacy_alignments")
    heavy += ("spacy_huggingface_pipelines",)  # which imports transformers
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if path.name.partition("-")[0] not in heavy:
            (packages / path.name).symlink_to(path)
    # Without the folder of installed packages there is only what is linked here.
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": f"{root}:{packages}"}
    path, code = tmp_path / "vectors.npy", tmp_path / "light.py"
    code.write_text(LIGHT, "utf8")
    done = new_process.run(
        [sys.executable, "-S", str(code), str(exported_kb), str(path)], env=environment
    )
    assert done.returncode == 0, done.stderr
    folder = read_version(exported_kb).encoder
    encoder = Encoder.open(folder, OPENVINO)
    expected = encoder.embed(["heart attack", "a mild fever", "MI"])
    np.testing.assert_allclose(np.load(path), expected, atol=1e-6)


def test_auto_runs_an_exported_encoder_in_openvino(
    exported_kb: Path, sample_kb: Path
) -> None:
    engines = [
        type(load_kb(kb).encoder.engine).__name__ for kb in (exported_kb, sample_kb)
    ]
    assert engines == ["OpenVinoEngine", "TorchEngine"]


def test_torch_that_is_missing_is_an_error_that_says_what_to_install(
    sample_kb: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SapbertError, match="E521.*pip install torch.*export-openvino"):
        load_kb(sample_kb).link(["fever"])
    with pytest.raises(SapbertError, match="E521.*pip install torch transformers"):
        load_encoder(str(tiny_encoder))


def test_auto_without_openvino_runs_torch(
    exported_kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.setattr("spacy_sapbert.encoder.encoder.find_spec", lambda name: None)
    assert type(load_kb(exported_kb).encoder.engine).__name__ == "TorchEngine"


def test_build_continues_the_engine_of_the_names_it_reuses(
    concepts_file: Path, tiny_encoder: Path, sample_kb: Path, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    manifest = build_kb(concepts_file, kb, str(tiny_encoder), reuse=sample_kb)
    assert manifest.encoder.engine == "torch"


def test_build_runs_in_torch_what_openvino_cannot_run(
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spacy_sapbert.encoder.export.LEAST_COSINE", 2)
    manifest = build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder))
    assert manifest.engines == ["torch"]
    with pytest.raises(SapbertError, match="E223"):
        build_kb(
            concepts_file, tmp_path / "other", str(tiny_encoder), engine="openvino"
        )
