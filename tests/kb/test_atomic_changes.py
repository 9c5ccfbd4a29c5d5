"""A change of a knowledge base in its place is all or nothing, at every write."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.embedding import EmbeddedTexts
from spacy_sapbert.kb.folder.publication import lock_kb, remove_versions
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.kb.history import go_back, list_history
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.settings import write_calibration
from spacy_sapbert.vocabularies.concepts import Concept
from tests.faults import ENDS, REFUSED, stop_copies

LIMITS = [1, 200, 3000, 5000, 20_000, 40_000, 1_000_000]  # bytes of a file


def change(kb: KnowledgeBase, calibration: Calibration | None) -> None:
    """Write a calibration, or add two concepts if there is none."""
    if calibration is not None:
        write_calibration(kb.version, calibration)
    else:
        add_concepts(kb, [Concept("L2", ["two"]), Concept("C0000004", ["hot"])])


def embed_without_torch(_: KnowledgeBase, texts: list[str], **__: Any) -> EmbeddedTexts:
    """No thread of torch may be there when a process forks."""
    none = np.zeros(len(texts), bool)
    vectors = np.eye(32, dtype="f4")[: len(texts)]
    return EmbeddedTexts(vectors, truncated=none, readable=~none)


def read_state(folder: Path) -> Any:
    kb = load_kb(folder)
    names = kb.store.names_of_keys(kb.store.keys())
    return kb.manifest, list(kb.concepts()), names


def stop_changes(source: Path, work: Path, calibration: Calibration | None) -> None:
    """Stop a change at every write, and find the old or the new knowledge base."""
    KnowledgeBase.embed = embed_without_torch  # type: ignore[assignment,method-assign]
    kb = add_concepts(load_kb(source), [Concept("L1", ["one"])])
    remove_concepts(kb, ["C0000005"])
    shutil.copytree(source, work / "new")
    change(load_kb(work / "new"), calibration)
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
            change(load_kb(folder), calibration)
            names = {path.name for path in folder.iterdir()}
            assert names <= {"CURRENT", ".lock", *(f"v{n}" for n in range(1, 6))}
            assert read_state(folder)[1:] == after[1:]

        moments = LIMITS if how == "limit" else range(1, 1000)
        stop_copies(
            how,
            moments,
            source,
            folder,
            lambda path: change(load_kb(path), calibration),
            check,
        )
        assert {*states} == {False, True}, how


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("what", ["add", "calibrate"])
def test_add_concepts_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    own_kb: Path,
    tmp_path: Path,
    calibration: Calibration,
    new_process: Any,
    what: str,
) -> None:
    wanted = calibration if what == "calibrate" else None
    new_process.call(stop_changes, own_kb, tmp_path, wanted)


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
