"""Processes that are forked, also from one that has used torch and holds locks."""

import os
import threading

import pytest

from spacy_sapbert.io.forks import ProcessLock, TemporaryFolder

needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this system cannot fork"
)


def in_child(new_process, function):
    """Run a function in a forked child; a hang is an error."""
    process = new_process.context("fork").Process(target=function)
    process.start()
    process.join(60)
    alive = process.is_alive()
    if alive:
        process.kill()
    assert not alive
    return process.exitcode


@needs_fork
def test_fork_releases_a_lock_of_another_thread(new_process):
    lock, held, done = ProcessLock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(60)

    def take():
        with lock:
            pass

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        assert in_child(new_process, take) == 0
        assert not lock.lock.acquire(blocking=False)
    finally:
        done.set()
        thread.join()


@needs_fork
def test_temporary_folder_is_removed_by_its_own_process(new_process):
    folder = TemporaryFolder("sapbert-test-")

    def forget():
        nonlocal folder
        del folder

    assert in_child(new_process, forget) == 0
    assert folder.path.is_dir()
    path = folder.path
    del folder
    assert not path.exists()


# ONNX Runtime waits for its threads when an encoder is deleted.
ONNX = """
import os, sys
from spacy_sapbert.kb.knowledge_base import load_kb
kb = load_kb(sys.argv[1])
vectors = kb.embed(["fever"]).vectors
for how in ("used", "deleted"):
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(how, code, flush=True)
        continue
    if how == "used":
        assert (kb.embed(["fever"]).vectors == vectors).all()
    else:
        del kb
    break
"""


@needs_fork
def test_onnx_encoder_of_the_parent_lets_a_fork_end(exported_kb, new_process):
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = new_process.python(ONNX, exported_kb, env=environment, timeout=60)
    assert done.stdout.splitlines() == ["used 0", "deleted 0"], done.stderr


# One pipeline, run by one process and by two, before and after the parent links.
PIPELINE = """
import multiprocessing, os, sys, threading
import spacy
from spacy.language import Language

@Language.component("test_forks_torch")
def use_torch(doc):
    # As much as to need all of torch's threads, which a tiny encoder does not.
    import torch
    x = torch.ones(800, 800)
    (x @ x).exp()
    return doc

def describe(docs):
    return [
        [(e.text, e.kb_id_, e._.cui, e._.link_note, e._.candidates) for e in doc.ents]
        for doc in docs
    ]

def main(method, kb, engine):
    multiprocessing.set_start_method(method)
    nlp = spacy.blank("en")
    nlp.add_pipe("test_forks_torch")
    nlp.add_pipe("sapbert_mentions")
    config = {"kb": kb, "encoder": {"@architectures": engine}}
    nlp.add_pipe("sapbert_linker", config=config)
    data = nlp.to_bytes()
    # The workers open the folder that this unpacks.
    nlp.get_pipe("sapbert_linker").opened = None
    nlp.from_bytes(data)
    texts = ["Heart attack and fever.", "", "No headache, no pyrexia", "aspirin"] * 3
    found = [describe(nlp.pipe(texts, n_process=2, batch_size=2))]
    expected = describe(nlp.pipe(texts, batch_size=2))
    if method == "fork":
        # Now this process has used torch, and opened what they share.
        found.append(describe(nlp.pipe(texts, n_process=2, batch_size=2)))
    print(sum(map(len, expected)), all(one == expected for one in found))

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("method", "engine"),
    [
        ("fork", "Transformer"),
        ("spawn", "Onnx"),
        ("forkserver", "Onnx"),
    ],
)
def test_pipe_with_two_processes_equals_one(
    method, engine, sample_kb, exported_kb, new_process, tmp_path
):
    if method not in new_process.START_METHODS:
        pytest.skip(f"this system cannot {method}")
    script = tmp_path / "script.py"  # a spawned worker imports it
    script.write_text(PIPELINE)
    kb = exported_kb if engine == "Onnx" else sample_kb
    done = new_process.python(script, method, kb, f"spacy-sapbert.{engine}Encoder.v1")
    assert done.stdout == "15 True\n", done.stdout + done.stderr
    assert "huggingface/tokenizers" not in done.stderr
