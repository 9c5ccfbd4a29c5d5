"""A change of a knowledge base in its place is all or nothing, at every write."""

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
from spacy_sapbert.kb.edits.change import (
    add_concepts,
    discard_edits,
    discard_teaching,
    remove_concepts,
)
from spacy_sapbert.kb.folder.publication import go_back, lock_kb, remove_versions
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.kb.folder.versions import list_history, read_version
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.packages import package_kb
from spacy_sapbert.kb.parts import EmbeddedTexts
from spacy_sapbert.kb.settings import change_kb, export_kb, write_calibration
from spacy_sapbert.kb.teaching.teach import teach_documents
from spacy_sapbert.vocabularies.concepts import Concept
from tests.building import annotated_document, annotated_mention, make_calibration
from tests.faults import ENDS, FULL_DISK, REFUSED, fill_disk, stop_copies

TAUGHT = [("bad heart", "C0000003"), ("hot skin", "C0000004"), ("sugar", "C0000005")]
LIMITS = [1, 200, 3000, 5000, 20_000, 40_000, 1_000_000]  # bytes of a file


def add(folder: Path) -> None:
    concepts = [Concept("L2", ["two"]), Concept("C0000004", ["hot"])]
    add_concepts(load_kb(folder), concepts)


# what is stopped, with a knowledge base of five versions
CHANGES: dict[str, Callable[[Path], object]] = {
    "add": add,
    "calibrate": lambda folder: write_calibration(
        read_version(folder), make_calibration()
    ),
    "remove": lambda folder: remove_concepts(load_kb(folder), ["C0000006"]),
    "set": lambda folder: change_kb(folder, threshold=0.5),
    "use": lambda folder: go_back(folder, "v2"),
    "discard-edits": discard_edits,
    "discard-teaching": lambda folder: discard_teaching(load_kb(folder)),
    "gc": remove_versions,
}


@pytest.fixture
def changed_kb(own_kb: Path) -> Path:
    """A knowledge base whose five versions have edits and what was taught."""
    mentions = [annotated_mention(text, [[cui]]) for text, cui in TAUGHT]
    kb, _ = teach_documents(
        load_kb(own_kb), [annotated_document("made up", "", mentions)], force=True
    )
    kb = add_concepts(kb, [Concept("L1", ["one"])])
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


def stop_changes(source: Path, work: Path, what: str) -> None:
    """Stop a change at every write, and find the old or the new knowledge base."""
    KnowledgeBase.embed = embed_without_torch  # type: ignore[assignment,method-assign]
    change = CHANGES[what]
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
            if end == REFUSED:
                hidden = [path.name for path in folder.glob(".*.tmp")]
                assert len(hidden) <= (how == "full"), hidden
            # The next change goes through, and takes away what is left.
            if found == before:
                change(folder)
            change_kb(folder, threshold=0.1)
            names = {path.name for path in folder.iterdir()}
            assert names <= {"CURRENT", ".lock", *(f"v{n}" for n in range(1, 9))}
            assert read_state(folder)[1:] == after[1:]

        moments = LIMITS if how == "limit" else range(1, 1000)
        stop_copies(how, moments, source, folder, change, check)
        assert {*states} == {False, True}, how


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("what", sorted({*CHANGES} - {"gc"}))
def test_change_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    changed_kb: Path, tmp_path: Path, new_process: Any, what: str
) -> None:
    new_process.call(stop_changes, changed_kb, tmp_path, what)


def export(folder: Path) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed")
    export_kb(folder)


def package(folder: Path) -> None:
    package_kb(folder, folder.parent, name="x", version="1.0", force=True)


@pytest.mark.parametrize("what", [*CHANGES, "export", "package"])
def test_change_on_a_full_disk_leaves_the_old_or_the_new_kb(
    changed_kb: Path, disk: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def stop_exports(source: Path, work: Path) -> None:
    """Stop an export at many writes, also those of OpenVINO."""
    import openvino  # noqa: F401, once and not in each fork
    from transformers import AutoModel  # noqa: F401

    before, folder, digests = read_state(source), work / "kb", set()

    def check(end: int) -> None:
        kb = load_kb(folder)
        exported = "openvino" in kb.manifest.engines
        assert not (exported and end == REFUSED)
        assert exported or read_state(folder) == before
        digests.add(kb.manifest.digest)
        change_kb(folder, threshold=0.1)
        assert not [*folder.glob(".*.tmp")]

    stop_copies("kill", range(1, 1000, 4), source, folder, export_kb, check)
    stop_copies("full", range(2, 1000, 8), source, folder, export_kb, check)
    limits = [1, 300, 5000, 100_000, 1_000_000]
    stop_copies("limit", limits, source, folder, export_kb, check)
    assert len(digests) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_export_kb_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    own_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    pytest.importorskip("openvino", reason="OpenVINO is not installed")
    new_process.call(stop_exports, own_kb, tmp_path)


def stop_packages(kb: Path, work: Path) -> None:
    """Stop the building of a wheel at many writes."""
    source, folder = work / "source", work / "wheels"
    source.mkdir()
    name = "sapbert_kb_x-1.0-py3-none-any.whl"
    (source / name).write_bytes(b"old")
    states = []

    def change(output: Path) -> None:
        package_kb(kb, output, name="x", version="1.0", force=True)

    def check(end: int) -> None:
        shown = [path.name for path in folder.iterdir() if path.name[0] != "."]
        assert shown == [name]
        old = (folder / name).read_bytes() == b"old"
        assert old or (
            end != REFUSED and zipfile.ZipFile(folder / name).testzip() is None
        )
        states.append(old)

    moments = {
        "kill": range(1, 100),
        "full": range(1, 100),
        "limit": (9, 9000, 1 << 30),
    }
    for how, each in moments.items():
        stop_copies(how, each, source, folder, change, check)
        assert {*states} == {True, False}
        states.clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_package_kb_stopped_at_any_write_leaves_the_old_or_the_new_wheel(
    own_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    new_process.call(stop_packages, own_kb, tmp_path)


def stop_removals(source: Path, folder: Path) -> None:
    """Stop the removal of old versions at every step."""
    KnowledgeBase.embed = embed_without_torch  # type: ignore[assignment,method-assign]
    kb = load_kb(source)
    for number in range(3):
        kb = add_concepts(kb, [Concept(f"L{number}", ["one"])])
    after = read_state(source)

    def check(_: int) -> None:
        assert read_state(folder) == after
        names = [entry.name for entry in list_history(folder)]
        assert names in (["v1", "v2", "v3", "v4"], ["v1", "v3", "v4"])
        remove_versions(folder)
        left = {path.name for path in folder.iterdir()}
        assert left == {"CURRENT", ".lock", "v1", "v3", "v4"}

    for how in ("kill", "full"):
        stop_copies(how, range(1, 100), source, folder, remove_versions, check)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_remove_versions_stopped_at_any_step_leaves_whole_versions(
    own_kb: Path, tmp_path: Path, new_process: Any
) -> None:
    new_process.call(stop_removals, own_kb, tmp_path / "kb")


def test_folder_without_a_description_is_no_version(own_kb: Path) -> None:
    kb = add_concepts(load_kb(own_kb), [Concept("L1", ["one"])])
    kb = add_concepts(kb, [Concept("L2", ["two"])])
    (own_kb / "v2" / "meta.json").unlink()
    assert [entry.name for entry in list_history(own_kb)] == ["v1", "v3"]
    with pytest.raises(SapbertError, match="E348.*v1, v3"):
        go_back(own_kb, "v2")
    assert remove_versions(own_kb) == ["v2"]
    assert add_concepts(kb, [Concept("L3", ["six"])]).version.name == "v4"


def test_lock_kb_blocks_other_changes(own_kb: Path, calibration: Calibration) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    kb = load_kb(own_kb)
    before = load_kb(own_kb).manifest
    with lock_kb(own_kb):
        with pytest.raises(SapbertError, match="E550"):
            add_concepts(kb, [Concept("L1", ["one"])])
        with pytest.raises(SapbertError, match="E550"):
            write_calibration(kb.version, calibration)
        load_kb(own_kb)  # which only reads
    assert load_kb(own_kb).manifest == before
    add_concepts(kb, [Concept("L1", ["one"])])
