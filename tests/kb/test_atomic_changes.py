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
from spacy_sapbert.kb.folder.publication import lock_kb
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.kb.knowledge_base import KnowledgeBase, load_kb
from spacy_sapbert.kb.settings import write_calibration
from spacy_sapbert.vocabularies.concepts import Concept
from tests.faults import ENDS, REFUSED, stop_copies

LIMITS = [1, 200, 3000, 5000, 20_000, 40_000, 1_000_000]  # bytes of a file


def change(kb: KnowledgeBase, calibration: Calibration | None) -> None:
    """Write a calibration, or add two concepts if there is none."""
    if calibration is not None:
        write_calibration(kb.folder, calibration)
    else:
        add_concepts(kb, [Concept("L2", ["two"]), Concept("C0000004", ["hot"])])


def embed_without_torch(_: KnowledgeBase, texts: list[str], **__: Any) -> EmbeddedTexts:
    """No thread of torch may be there when a process forks."""
    none = np.zeros(len(texts), bool)
    vectors = np.eye(32, dtype="f4")[: len(texts)]
    return EmbeddedTexts(texts, vectors, none, ~none, none, {})


def read_state(folder: Path) -> Any:
    kb = load_kb(folder)
    spellings = kb.store.spellings(["two", "hot", "fever", "one"])
    return kb.manifest, list(kb.concepts()), spellings


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


def test_lock_kb_blocks_other_changes(own_kb: Path, calibration: Calibration) -> None:
    pytest.importorskip("fcntl", reason="this system has no such locks")
    kb = load_kb(own_kb)
    before = load_kb(own_kb).manifest
    with lock_kb(own_kb):
        with pytest.raises(SapbertError, match="E550"):
            add_concepts(kb, [Concept("L1", ["one"])])
        with pytest.raises(SapbertError, match="E550"):
            write_calibration(own_kb, calibration)
        load_kb(own_kb)  # which only reads
    assert load_kb(own_kb).manifest == before
    add_concepts(kb, [Concept("L1", ["one"])])
