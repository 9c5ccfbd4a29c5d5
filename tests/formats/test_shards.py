import json
import os
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Any

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.formats.documents import Document
from spacy_sapbert.formats.shards import (
    STATE_FILE,
    digest_document,
    lock_folder,
    open_state,
    read_state,
    write_parts,
)
from tests.faults import DONE, ENDS, stop_at

COMMAND = {"k": 10, "kb": "x"}
DOCUMENTS = [Document(number, f"text {number}") for number in range(7)]


def write_texts(documents: Any, file: IO[bytes]) -> Any:
    total = 0
    for document in documents:
        file.write(f"{document.id} {document.text}\n".encode())
        total += 1
    return {"documents": total}


def run(
    folder: Path,
    documents: Any = DOCUMENTS,
    *,
    size: int = 3,
    force: bool = False,
) -> None:
    with lock_folder(folder):
        state = open_state(folder, {**COMMAND, "size": size}, force=force)
        write_parts(
            folder, state, documents, size=size, suffix=".txt", write_part=write_texts
        )


def contents(folder: Path) -> Any:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def texts(folder: Path) -> Any:
    return "".join(path.read_text() for path in sorted(folder.glob("part-*")))


@given(total=st.integers(0, 12), size=st.integers(1, 5))
@settings(max_examples=25)
def test_parts_have_every_document_once_and_in_order(tmp_path_factory, total, size):
    folder = tmp_path_factory.mktemp("parts") / "out"
    documents = [Document(number, "x") for number in range(total)]
    run(folder, documents, size=size)
    assert texts(folder) == "".join(f"{number} x\n" for number in range(total))
    state = read_state(folder)
    sizes = [part["documents"] for part in state["parts"]]
    assert sum(sizes) == total
    assert all(number == size for number in sizes[:-1])
    assert state["finished"] is True
    before = contents(folder)
    run(folder, documents, size=size)
    assert contents(folder) == before


def stop_parts(work: Path) -> None:
    """Stop runs at every write; what the state lists then is complete."""
    run(work / "whole")
    whole = contents(work / "whole")
    for how in ("kill", "full"):
        listed = set()
        for moment in count(1):
            folder = work / f"{how}-{moment}"
            end = stop_at(how, moment, partial(run, folder))
            left = contents(folder) if folder.is_dir() else {}
            parts = json.loads(left.get(STATE_FILE, '{"parts": []}'))["parts"]
            assert all(left[part["file"]] == whole[part["file"]] for part in parts)
            listed.add(len(parts))
            if end == DONE:
                break
            assert end in ENDS[how]
            run(folder)
            assert contents(folder) == whole, (how, moment)
        assert listed == {0, 1, 2, 3}, how


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_parts_stopped_at_any_write_go_on_to_the_same_bytes(tmp_path, new_process):
    new_process.call(stop_parts, tmp_path)


def test_parts_of_another_command_are_left_alone_unless_forced(tmp_path):
    run(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(SapbertError, match="E560.*`size`.*`--force`"):
        run(tmp_path, size=4)
    with pytest.raises(SapbertError, match="E560.*another `kb`, `size`"):
        open_state(tmp_path, {"k": 10}, force=False)
    assert contents(tmp_path) == before
    (tmp_path / "part-00003.txt").write_text("left by a run that was killed")
    run(tmp_path, size=4, force=True)
    assert len(list(tmp_path.glob("part-*"))) == 2
    assert (tmp_path / "mine.txt").read_text() == "mine"
    run(tmp_path, size=4)


def test_parts_never_go_into_a_folder_with_other_files(tmp_path):
    (tmp_path / "part-00000.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(SapbertError, match="E560"):
            run(tmp_path, force=force)
    with pytest.raises(SapbertError, match="E560"):
        run(tmp_path / "part-00000.txt")
    assert contents(tmp_path) == {"part-00000.txt": b"mine"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: "{",
        lambda state: json.dumps({**state, "version": 2}),
        lambda state: json.dumps({**state, "suffix": "/../x"}),
        lambda state: json.dumps(
            {**state, "parts": [{**state["parts"][0], "file": "../other.txt"}]}
        ),
    ],
)
def test_parts_damaged_state_is_a_named_error(tmp_path, damage):
    run(tmp_path / "out")
    (tmp_path / "other.txt").write_text("other")
    path = tmp_path / "out" / STATE_FILE
    path.write_text(damage(json.loads(path.read_text())))
    for force in (False, True):
        with pytest.raises(SapbertError, match="E560"):
            run(tmp_path / "out", force=force)
    assert (tmp_path / "other.txt").exists()


def test_parts_missing_or_truncated_part_is_an_error(tmp_path):
    run(tmp_path)
    part = tmp_path / "part-00001.txt"
    part.write_text("cut")
    with pytest.raises(SapbertError, match="E560.*part-00001.*it has 3"):
        run(tmp_path)
    part.unlink()
    with pytest.raises(SapbertError, match="E560.*there is none"):
        run(tmp_path)


@pytest.mark.parametrize(
    "documents",
    [
        DOCUMENTS[1:],
        [*DOCUMENTS[:6], Document(6, "other")],
        [*DOCUMENTS, Document(7, "more")],
    ],
)
def test_parts_changed_input_is_an_error(tmp_path, documents):
    run(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(SapbertError, match="E560"):
        run(tmp_path, documents)
    assert contents(tmp_path) == before


def test_parts_two_runs_do_not_share_a_folder(tmp_path):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    with lock_folder(tmp_path), pytest.raises(SapbertError, match="E550"):
        run(tmp_path)
    run(tmp_path)


def test_parts_digest_depends_on_the_entities_of_a_doc():
    doc = spacy.blank("en")("fever and pain")
    first = digest_document(Document(1, doc.text, doc))
    doc.ents = [doc.char_span(0, 5, label="X")]
    second = digest_document(Document(1, doc.text, doc))
    doc.spans["sc"] = [doc.char_span(0, 5, label="X")]
    third = digest_document(Document(1, doc.text, doc))
    assert len({first, second, third}) == 3
