"""A change, a build or a copy is all or nothing, at every write."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.writing import FolderKind, write_folder_atomically
from spacy_sapbert.kb.adjust import change_kb, export_kb
from spacy_sapbert.kb.building import row_vectors
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.folder.publication import go_back, remove_versions, save_copy
from spacy_sapbert.kb.indexes import faiss_graph
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.packages import package_kb
from spacy_sapbert.kb.parts import EmbeddedTexts
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention
from tests.faults import (
    ENDS,
    FULL_DISK,
    KILLED,
    REFUSED,
    STOPPED,
    fill_disk,
    stop_copies,
)

TAUGHT = [("bad heart", "C0000003"), ("hot skin", "C0000004"), ("sugar", "C0000005")]


def add(folder: Path) -> None:
    concepts = [Concept("L2", ["two"]), Concept("C0000004", ["hot"])]
    add_concepts(load_kb(folder), concepts)


def teach(folder: Path, taught: list[tuple[str, str]]) -> KnowledgeBase:
    mentions = [annotated_mention(text, [[cui]]) for text, cui in taught]
    document = annotated_document("made up", "", mentions)
    return teach_documents(load_kb(folder), [document], force=True)[0]


# what is stopped, with a knowledge base of five versions
CHANGES: dict[str, Callable[[Path], object]] = {
    "add": add,
    "use": lambda folder: go_back(folder, "v2"),
    "teach": lambda folder: teach(folder, [*TAUGHT, ("no fever", "C0000004")]),
    "gc": remove_versions,
}


@pytest.fixture
def changed_kb(own_kb) -> Path:
    """A knowledge base whose five versions have edits and what was taught."""
    kb = add_concepts(teach(own_kb, TAUGHT), [Concept("L1", ["one"])])
    kb = remove_concepts(kb, ["C0000005"])
    add_concepts(kb, [Concept("L3", ["three"])])
    return own_kb


def embed_without_torch(_: KnowledgeBase, texts: list[str], **__: Any) -> EmbeddedTexts:
    """No thread of torch may be there when a process forks."""
    none = np.zeros(len(texts), bool)
    vectors = np.eye(32, dtype="f4")[: len(texts)]
    return EmbeddedTexts(vectors, truncated=none, readable=~none)


def read_state(folder: Path) -> Any:
    kb = load_kb(folder)
    names = kb.store.names_of_keys(kb.store.keys())
    return kb.manifest, list(kb.concepts()), names


def stop_changes(source: Path, work: Path, what: str, other: Path) -> None:
    """Stop a change at every write, and find the old or the new knowledge base."""
    KnowledgeBase.embed = embed_without_torch  # type: ignore[assignment,method-assign]
    opened = load_kb(other)
    change = CHANGES.get(what, lambda folder: save_copy(opened.version, folder))
    shutil.copytree(source, work / "new")
    change(work / "new")
    before, after = read_state(source), read_state(work / "new")
    assert before != after
    folder = work / "kb"
    for how in ENDS:
        states = []

        def check(end: int, how: str = how, states: list[bool] = states) -> None:
            found = read_state(folder)
            assert found in (before, after)
            states.append(found == after)
            if end in (REFUSED, STOPPED):
                hidden = [path.name for path in folder.glob(".*.tmp")]
                assert len(hidden) <= (how == "full"), hidden
            # The next change goes through, and takes away what is left.
            if found == before:
                change(folder)
            change_kb(folder, threshold=0.1)
            names = {path.name for path in folder.iterdir()}
            assert names <= {"CURRENT", ".lock", *(f"v{n}" for n in range(1, 9))}
            assert read_state(folder)[1:] == after[1:]

        limits = [1, 200, 3000, 5000, 20_000, 60_000, 1_000_000]  # bytes of a file
        every = range(1, 1000, 3 if what == "teach" else 1)  # one takes long
        moments = limits if how == "limit" else every
        stop_copies(how, moments, source, folder, change, check)
        assert {*states} == {False, True}, how


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("what", ["save", "add", "use", "teach"])
def test_change_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    changed_kb, other_encoder_kb, tmp_path, new_process, what
):
    new_process.call(stop_changes, changed_kb, tmp_path, what, other_encoder_kb)


def stop_removals(source: Path, folder: Path) -> None:
    """Stop the removal of old versions at every write; the next one removes all."""
    before = read_state(source)
    shutil.copytree(source, folder)
    removed = {*remove_versions(folder)}
    expected = {".lock", *(path.name for path in source.iterdir())} - removed
    assert removed
    for how in ("kill", "stop"):

        def check(end: int) -> None:
            assert read_state(folder) == before
            hidden = [path.name for path in folder.glob(".*.tmp")]
            assert end != STOPPED or not hidden, hidden
            remove_versions(folder)
            assert {path.name for path in folder.iterdir()} == expected

        stop_copies(how, range(1, 1000), source, folder, remove_versions, check)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_gc_stopped_at_any_write_leaves_all_that_is_used(
    changed_kb, tmp_path, new_process
):
    new_process.call(stop_removals, changed_kb, tmp_path / "kb")


def export(folder: Path) -> None:
    export_kb(folder)


def package(folder: Path) -> None:
    package_kb(folder, folder.parent, name="x", version="1.0", force=True)


def stop_packages(kb: Path, work: Path) -> None:
    """Stop the writing of a wheel at every write: there is a whole one, or none."""
    folder, build = work / "wheels", work / "build"

    def write(_: Path) -> None:
        package_kb(kb, folder, name="x", version="1.0")

    build.mkdir()
    for how in ("kill", "stop", "full"):

        def check(end: int, how: str = how) -> None:
            left = [path.name for path in folder.glob("*")] if folder.exists() else []
            hidden = [name for name in left if name.startswith(".")]
            assert end == KILLED or not hidden, (how, hidden)
            assert all(zipfile.is_zipfile(folder / n) for n in left if n not in hidden)
            assert left or not folder.exists() or end == KILLED
            shutil.rmtree(folder, ignore_errors=True)

        stop_copies(how, range(1, 1000), build, work / "copy", write, check)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_package_stopped_at_any_write_leaves_a_whole_wheel_or_none(
    own_kb, tmp_path, new_process
):
    new_process.call(stop_packages, own_kb, tmp_path)


@pytest.mark.parametrize("what", ["teach", "gc", "export", "package"])
def test_change_on_a_full_disk_leaves_the_old_or_the_new_kb(
    changed_kb, disk, what, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    folder, wheel = disk / "kb", disk / "sapbert_kb_x-1.0-py3-none-any.whl"
    change = {**CHANGES, "export": export, "package": package}[what]
    before = read_state(changed_kb)
    wheel.write_bytes(b"old")
    refused = 0
    for free in (*range(0, 64, 8), *range(64, 2048, 128)):
        shutil.copytree(changed_kb, folder)
        fill_disk(disk, free << 10)
        message = None
        try:
            change(folder)
        except SapbertError as error:
            message = str(error)
        (disk / "filler").unlink()
        if message is None:
            break
        refused += 1
        assert any(part in message for part in FULL_DISK), message
        assert read_state(folder) == before
        assert wheel.read_bytes() == b"old"
        names = {path.name for path in changed_kb.iterdir()}
        assert {path.name for path in folder.iterdir()} <= {*names, ".lock"}
        assert {path.name for path in disk.iterdir()} == {"kb", wheel.name}
        shutil.rmtree(folder)
    assert refused or what == "gc"
    assert (read_state(folder) != before) == (what not in ("gc", "package"))
    assert zipfile.is_zipfile(wheel) == (what == "package")


FOLDER = FolderKind("a folder of this test", "a", ("a", "sub/b").__contains__)


@pytest.mark.parametrize("files", [["a", "sub/notes.csv"], ["sub/b"]])
def test_write_folder_atomically_replaces_only_its_own_kind(tmp_path, contents, files):
    target = tmp_path / "folder"
    for name in files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text("of hours", "utf8")
    before = contents(target)
    with (
        pytest.raises(SapbertError, match=f"E003.*it has {files[-1]}"),
        write_folder_atomically(target, FOLDER),
    ):
        pytest.fail("nothing is made for a folder that is not replaced")
    assert contents(target) == before
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_write_folder_atomically_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fail(target: Path, error: Exception | None) -> None:
        with write_folder_atomically(target, FOLDER) as part:
            (part / "a").touch()
            if error:
                raise error
            target.mkdir()
            (target / "notes.csv").touch()

    with pytest.raises(RuntimeError):
        fail(tmp_path / "x", RuntimeError())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SapbertError, match="E003"):  # it checks again at the end
        fail(tmp_path / "folder", None)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "notes.csv"]
    monkeypatch.chdir(tmp_path / "folder")
    for name in (".", "..", "x/.."):
        with pytest.raises(SapbertError, match="E003"):
            fail(Path(name), None)


def stop_builds(concepts: Path, encoder: Path, old: Path, work: Path) -> None:
    """Stop a build at many writes, and find the old or the new knowledge base."""
    index: dict[str, Any] = {"backend": "faiss", "backend_settings": {"pca": 8}}
    row_vectors.ROWS_AT_ONCE = 8
    faiss_graph.BLOCK_ROWS = 8

    def build(target: Path) -> None:
        build_kb(concepts, target, str(encoder), threads=1, force=True, **index)

    def find_digest(path: Path) -> str:
        return load_kb(path).manifest.digest

    build(work / "new")
    before, after = find_digest(old), find_digest(work / "new")
    assert before != after
    folder = work / "kb"

    def check(end: int) -> None:
        assert find_digest(folder) in {before, before if end == REFUSED else after}

    moments = {
        "kill": range(2, 1000, 17),
        "full": range(9, 1000, 17),
        "limit": [300, 3000, 30_000, 1_000_000],
    }
    for how, each in moments.items():
        stop_copies(how, each, old, folder, build, check)
        # What the stopped ones left is used, or does no harm.
        build(folder)
        assert find_digest(folder) == after
        assert {path.name for path in work.iterdir()} <= {"kb", "new"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_build_kb_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    concepts_file, tiny_encoder, sample_kb, tmp_path, new_process
):
    pytest.importorskip("faiss")
    new_process.call(stop_builds, concepts_file, tiny_encoder, sample_kb, tmp_path)
