"""A change of a knowledge base in its place is all or nothing, at every write."""

import os
from pathlib import Path
from typing import Any

import pytest

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.building.build import build_kb
from spacy_sapbert.kb.edits.change import add_concepts
from spacy_sapbert.kb.folder.publication import lock_kb
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.settings import write_calibration
from spacy_sapbert.vocabularies.concepts import Concept

# One process that opens a knowledge base, and forks for each moment a child that
# changes it and there is killed, or told that the disk is full.
CHANGE = """
import resource, shutil
from pathlib import Path
import numpy as np
from spacy_sapbert.vocabularies.concepts import Concept
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.kb.search import EmbeddedTexts
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.edits.change import add_concepts, remove_concepts
from spacy_sapbert.kb.folder.records import Calibration
from spacy_sapbert.kb.settings import write_calibration

source, work, what = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
# No thread of torch may be there when this process forks.
def embed(self, texts, variants=False):
    n = len(texts)
    vectors = np.eye(32, dtype="f4")[:n]
    none = np.zeros(n, bool)
    return EmbeddedTexts(vectors, none, ~none, none)

KnowledgeBase.embed = embed

def change(kb):
    if what == "add":
        add_concepts(kb, [Concept("L2", ["two"]), Concept("C0000004", ["hot"])])
    else:
        write_calibration(kb.folder, Calibration.model_validate_json(sys.argv[4]))

def state(folder):
    kb = load_kb(folder)
    forms = kb.store.spellings(["two", "hot", "fever", "one"])
    return kb.manifest, list(kb.concepts()), forms

kb = load_kb(source)
encoder = kb.encoder
kb = add_concepts(kb, [Concept("L1", ["one"])])
remove_concepts(kb, ["C0000005"])
before = state(source)
shutil.copytree(source, work / "new")
opened = load_kb(work / "new")
opened.parts.encoder = encoder
change(opened)
after = state(work / "new")
assert before != after

limits = [1, 200, 3000, 5000, 20_000, 40_000]

def stop_at(moment):
    # gives how the child ended, and which knowledge base there was then
    global left
    folder = work / "kb"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    kb = load_kb(folder)
    kb.parts.encoder = encoder
    child = os.fork()
    if not child:
        code = 3
        try:
            if how == "limit":
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                limit = limits[moment - 1]
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            else:
                left = moment
            change(kb)
            code = 0 if how == "limit" or left > 0 else 4
        except SapbertError as error:
            code = 1 if "E004" in str(error) else 5
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    found = state(folder)
    assert found in (before, after), (how, moment, found)
    # 4: what the disk had no space for was not needed
    assert code in {"kill": (-9, 0), "full": (0, 1, 4), "limit": (0, 1)}[how], code
    if code == 1:
        hidden = [path.name for path in folder.glob(".*.tmp")]
        assert len(hidden) <= (how == "full"), (how, moment, hidden)
    # The next change goes through, and takes away what is left.
    kb = load_kb(folder)
    kb.parts.encoder = encoder
    change(kb) if what == "calibrate" else add_concepts(kb, [Concept("L3", ["three"])])
    names = {path.name for path in folder.iterdir()}
    versions = {f"v{number}" for number in range(1, 6)}
    assert names <= {"CURRENT", ".lock", *versions}, (how, moment, names)
    if what != "calibrate":
        assert "L3" in load_kb(folder)
    return code, "new" if found == after else "old"

for how in ("kill", "full", "limit"):
    seen = []
    while not (how == "limit" and len(seen) == len(limits)):
        seen.append(stop_at(len(seen) + 1))
        if seen[-1][0] == 0 and how != "limit":
            break
    print(how, len(seen), {f"{code} {state}" for code, state in seen})
    states = {state for _, state in seen}
    assert "old" in states and ("new" in states or how == "limit"), seen
    assert (-9 if how == "kill" else 1) in {code for code, _ in seen}, seen
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("what", ["add", "calibrate"])
def test_add_concepts_stopped_at_any_write_leaves_the_old_or_the_new_kb(
    concepts_file: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    calibration: Calibration,
    new_process: Any,
    stop_at_write: str,
    what: str,
) -> None:
    source = tmp_path / "source"
    build_kb(concepts_file, source, str(tiny_encoder), threads=1)
    arguments = [source, tmp_path, what, calibration.model_dump_json()]
    one = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    done = new_process.python(
        stop_at_write + CHANGE, *arguments, env={**os.environ, **one}
    )
    assert done.returncode == 0, done.stdout + done.stderr


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
