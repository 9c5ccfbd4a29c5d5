"""A build is locked, and what it wrote is tried before it replaces anything."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.encoder.huggingface import EncoderSettings
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.writing import write_json
from spacy_sapbert.kb.adjust import change_kb
from spacy_sapbert.kb.building import build, row_vectors
from spacy_sapbert.kb.building.build import BuildOptions, build_kb
from spacy_sapbert.kb.building.row_vectors import (
    check_plan,
    describe_index,
    lock_work_folder,
)
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.publication import lock_kb
from spacy_sapbert.kb.folder.versions import read_version
from spacy_sapbert.kb.indexes.exact import Exact
from spacy_sapbert.kb.indexes.faiss_graph import Faiss
from spacy_sapbert.kb.indexes.hnsw import Hnsw
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.linking.chance import PLAIN, load_chance
from spacy_sapbert.vocabularies.concepts import Concept, write_concepts
from tests.building import build_small_kb
from tests.commands import invoke

pytest.importorskip("fcntl", reason="this system has no such locks")

BUILD = """
import sys
from pathlib import Path
from spacy_sapbert import build_kb, SapbertError
concepts, kb, encoder = sys.argv[1:4]
options = {"backend_settings": {"M": 200}, "threads": 1} if sys.argv[4:] else {}
try:
    build_kb(Path(concepts), Path(kb), encoder, force=True, **options)
except SapbertError as error:
    print(error)
"""


def test_two_builders_of_one_folder_write_one_of_their_knowledge_bases(
    concepts_file, tiny_encoder, tmp_path, new_process
):
    other = tmp_path / "other.jsonl"
    write_concepts(other, [Concept("C9", ["Lymph node", "heart atack", "fever"])])
    builders = [
        new_process.start(
            [sys.executable, "-c", BUILD, path, tmp_path / "kb", tiny_encoder],
            stdout=new_process.PIPE,
            text=True,
        )
        for path in (concepts_file, other)
    ]
    outputs = [builder.communicate(timeout=120)[0][:6] for builder in builders]
    assert set(outputs) <= {"", "[E550]"}, outputs
    assert "" in outputs
    best = load_kb(tmp_path / "kb").link(["fever"])[0].candidates[0]
    assert (best["cui"], best["score"]) in {("C0000004", 1.0), ("C9", 1.0)}


def test_build_kb_in_two_processes_gives_equal_bytes(
    concepts_file, tiny_encoder, tmp_path, contents, new_process
):
    words = (BUILD, concepts_file, tmp_path / "1", tiny_encoder, "one thread")
    done = new_process.python(*words, env={**os.environ, "PYTHONHASHSEED": "1"})
    assert (done.stdout, done.stderr) == ("", "")
    settings = {"M": 200}
    kb, encoder = tmp_path / "2", str(tiny_encoder)
    build_kb(concepts_file, kb, encoder, backend_settings=settings, threads=1)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_build_kb_that_fails_leaves_nothing(
    own_kb, concepts_file, tiny_encoder, tmp_path, monkeypatch, capsys
):
    before, files = load_kb(own_kb).manifest, {*tmp_path.iterdir()}
    bad = tmp_path / "concepts.jsonl"
    for content, code in (
        ('{"cui": "C1", "name": "fever"}\nno json\n', "E117"),
        ("", "E150"),
        ('{"cui": "C1", "name": "\u982d\u75db"}\n', "1 concepts"),  # not readable
    ):
        bad.write_text(content, "utf8")
        with pytest.raises(SapbertError, match=code):
            build_small_kb(bad, tmp_path / "kb", tiny_encoder)
    with pytest.raises(ValueError, match="M from"):
        build_small_kb(
            concepts_file, tmp_path / "kb", tiny_encoder, backend_settings={"M": 0}
        )
    with pytest.raises(SapbertError, match="E004"):
        build_small_kb(concepts_file, bad / "kb", tiny_encoder)
    assert {*tmp_path.iterdir()} == {*files, bad}
    with lock_work_folder(tmp_path / "kb") as work:  # of another build
        (work / "vectors").write_bytes(b"of the other build")
        with pytest.raises(SapbertError, match="E550"):
            build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder)
        assert (work / "vectors").read_bytes() == b"of the other build"
    # It waits for an edit of the old one.
    monkeypatch.setattr("spacy_sapbert.kb.building.build.LOCK_WAIT", 0.2)
    with lock_kb(own_kb), pytest.raises(SapbertError, match="E550"):
        build_small_kb(concepts_file, own_kb, tiny_encoder, force=True)
    assert load_kb(own_kb).manifest == before
    built = build_small_kb(concepts_file, own_kb, tiny_encoder, force=True)
    build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder, progress=True)
    printed = " ".join(capsys.readouterr().out.split())
    said = (
        r"Embedding takes about 0\.\d s: 21 names, in a trial [\d,]+ a second\. Other"
    )
    assert re.search(said, printed)
    assert "Continuing" not in printed
    # Few rows are compared one by one.
    assert (built.index.backend, built.recall) == ("exact", None)


def test_options_of_a_build_are_checked_before_it_begins():
    assert BuildOptions(threshold=1).index is None
    assert BuildOptions(backend_settings={"M": 8}).index == Hnsw(M=8)
    assert BuildOptions(threshold=0, backend="exact").index == Exact()
    for wrong in ({"threshold": 1.01}, {"threshold": -0.01}, {"order": "x"}):
        with pytest.raises(SapbertError, match="E331"):
            BuildOptions(**wrong)


def test_kb_set_measures_the_recall_anew(tiny_encoder, tmp_path):
    """Of concepts with two names that are alike, and as many with one."""
    path, kb = tmp_path / "concepts.jsonl", tmp_path / "kb"
    words = [f"{a}{b}" for a in "abcdefgh" for b in "xyz"]
    concepts = [
        Concept(f"C{n}", [f"{w} pain", f"{w} fever"]) for n, w in enumerate(words)
    ]
    concepts += [Concept(f"D{n}", [f"{n * 3} of {n * 3}"]) for n in range(24)]
    write_concepts(path, concepts)
    settings = {"M": 8, "ef_construction": 20, "ef": 1, "rerank": 1}
    built = build_small_kb(path, kb, tiny_encoder, backend_settings=settings)
    invoke("kb", "set", kb, "ef=400", "threshold=0.4", code=0)
    manifest = read_version(kb).manifest
    assert (manifest.threshold, manifest.index.settings["ef"]) == (0.4, 400)
    assert manifest.digest != built.digest
    assert built.recall is not None
    assert manifest.recall is not None
    assert built.recall.at_1 <= manifest.recall.at_1
    assert built.recall.at_10 < manifest.recall.at_10
    assert load_kb(kb).link(["ax pain"])[0].cui == "C0"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"index": {"M": 30}}, "E356"),
        ({"index": {"ef": 0}}, "E331"),
        ({"threshold": 1.01}, "E331"),
    ]
    for changes, code in wrong:
        with pytest.raises(SapbertError, match=code):
            change_kb(kb, **changes)
    assert read_version(kb).manifest == manifest


class Stopped(Exception):
    pass


def stop_after(work: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Return a function that does its work so often, and then stops."""
    left = [calls]

    def run(*arguments: Any, **options: Any) -> Any:
        if not left[0]:
            raise Stopped
        left[0] -= 1
        return work(*arguments, **options)

    return run


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("write_at", {"backend": "exact"}),
        ("write_json", {"backend": "faiss", "backend_settings": {"pca": 8}}),
    ],
)
def test_build_kb_stopped_embeds_nothing_again(
    name,
    settings,
    concepts_file,
    tiny_encoder,
    contents,
    tmp_path,
    monkeypatch,
    two_gpus,
    capsys,
):
    """On another machine too: its device is not a part of the plan."""
    monkeypatch.setattr(row_vectors, "ROWS_AT_ONCE", 4)
    build = {"encoder": str(tiny_encoder), "threads": 1, "engine": "torch", **settings}
    build_kb(concepts_file, tmp_path / "whole", **build)
    with monkeypatch.context() as patched:
        patched.setattr(row_vectors, name, stop_after(getattr(row_vectors, name), 2))
        with pytest.raises(Stopped):
            build_kb(concepts_file, tmp_path / "kb", **build, device="auto")
        assert two_gpus[-1] == "cuda"
    with monkeypatch.context() as patched:
        again = stop_after(row_vectors.embed_some, 4)  # of the six for 21 rows
        patched.setattr(row_vectors, "embed_some", again)
        build_kb(concepts_file, tmp_path / "kb", **build, progress=True)
    assert contents(tmp_path / "kb") == contents(tmp_path / "whole")
    assert not (tmp_path / ".kb.build").exists()
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"that was stopped: (4|8) names are embedded", shown)


@pytest.mark.parametrize(
    "settings",
    [{"backend": "exact"}, {"backend": "faiss", "backend_settings": {"pca": 8}}],
)
def test_build_kb_that_reuses_vectors_writes_the_bytes_of_a_new_one(
    settings, few_concepts, sample_kb, tiny_encoder, contents, tmp_path, encoded
):
    concepts = few_concepts[2:] + [
        Concept("C1000000", ["Fever of unknown origin", "Heart attack", "pain"])
    ]
    path = tmp_path / "concepts.jsonl"
    write_concepts(path, concepts)
    encoder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    (encoder / "README.md").write_text("a model card, which changes no vector", "utf8")
    build = {"encoder": str(encoder), "threads": 1, "engine": "torch", **settings}
    build_kb(path, tmp_path / "new", **build)
    at_first = sum(encoded)
    encoded.clear()
    build_kb(path, tmp_path / "kb", reuse=sample_kb, **build)
    assert contents(tmp_path / "kb") == contents(tmp_path / "new")
    assert sum(encoded) < at_first
    add_concepts(load_kb(tmp_path / "kb"), [Concept("C1", ["sore throat"])])
    # An overlay has names too, and a folder may be built from its own vectors.
    build_kb(path, tmp_path / "kb", reuse=tmp_path / "kb", force=True, **build)
    assert contents(tmp_path / "kb" / "v3") == contents(tmp_path / "new" / "v1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": EncoderSettings("cls", 25, True)}, r"\(other: encoder\)"),
        ({"precision": "bf16"}, r"\(other: precision\)"),
        ({"reuse": "short"}, "16 bits"),
    ],
)
def test_build_kb_that_cannot_reuse_vectors_is_an_error(
    changes, message, concepts_file, sample_kb, tiny_encoder, tmp_path
):
    build: dict[str, Any] = {"reuse": sample_kb, **changes}
    build |= {"backend": "exact", "engine": "torch"}
    if "reuse" in changes:
        build["reuse"] = tmp_path / "short"
        build_small_kb(concepts_file, tmp_path / "short", tiny_encoder, backend="faiss")
    with pytest.raises(SapbertError, match=f"E394.*{message}"):
        build_kb(concepts_file, tmp_path / "kb", str(tiny_encoder), **build)
    assert not (tmp_path / "kb").exists()


PLAN = {"concepts_sha256": "1", "engine": "torch"}
OTHER = {"concepts_sha256": "1", "engine": "onnx"}


@pytest.mark.parametrize(
    ("plan", "index", "name"),
    [(OTHER, None, "engine"), (PLAN, Faiss(), "index")],
)
def test_check_plan_keeps_vectors_of_another_plan_unless_they_are_to_be_replaced(
    plan, index, name, tmp_path
):
    state = {**PLAN, **describe_index(Hnsw()), "done": 3}
    write_json(tmp_path / "plan.json", state)
    (tmp_path / "vectors").touch()
    with pytest.raises(SapbertError, match=rf"E394.*\(other: {name}\).*--force"):
        check_plan(tmp_path, plan, index, replace=False)
    assert {path.name for path in tmp_path.iterdir()} == {"plan.json", "vectors"}
    assert check_plan(tmp_path, plan, index, replace=True) == {}
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("most_rows", [0, 1_000_000])
def test_knowledge_bases_without_an_order_have_the_same_decision(
    concepts_file, tiny_encoder, most_rows, monkeypatch, tmp_path
):
    """Above the rows of 3-grams, and below the names of which an order is learned."""
    monkeypatch.setattr(build, "MOST_ROWS", most_rows)
    build_small_kb(concepts_file, tmp_path / "kb", tiny_encoder)
    kb = load_kb(tmp_path / "kb")
    assert kb.ranker is None
    assert kb.manifest.chance == load_chance(PLAIN)
    nonsense = kb.link(["parking ticket", "qwertz", "blue car", "TNF-a"])
    for linked in nonsense:
        assert linked.cui is None
        assert 0 <= linked.candidates[0]["probability"] < kb.manifest.threshold
    (named,) = kb.link(["Fevers"])
    assert named.cui == "C0000004"
    assert named.candidates[0]["probability"] > 0.9
