"""`link --n-process`: what one process writes, whoever fails or is killed."""

import os
import re
import runpy
import signal
import sys
import time
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_sapbert.kb.edits.change import remove_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.commands import invoke

SENTINEL = "SENTINELTEXT"

# The command with components that fail, die and wait. Workers import this script, and
# so have them too.
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from spacy.language import Language
from spacy_sapbert.cli.main import app

FOLDER = Path(__file__).parent

@Language.component("test_processes_failing")
def fail(doc):
    if "heart" in doc.text:
        raise ZeroDivisionError(doc.text)
    return doc

@Language.component("test_processes_dying")
def die(doc):
    if "heart" in doc.text and (FOLDER / "dies").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    doc.user_data["unwritable"] = object()  # as other components leave behind
    doc.spans["other"] = [doc[0:1]]
    doc.spans["other"].attrs["unwritable"] = object()
    return doc

@Language.component("test_processes_waiting")
def wait(doc):
    (FOLDER / f"{os.getpid()}.pid").touch()
    if "heart" in doc.text:
        time.sleep(600)
    return doc

if __name__ == "__main__":
    app(sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def make_pipeline(tmp_path):
    """Save a pipeline with one component of the script."""

    def make(component):
        folder = tmp_path / component
        folder.mkdir()
        # Only its config says so: the component is not known here.
        nlp = spacy.blank("en")
        nlp.to_disk(folder)
        config = nlp.config.to_str().replace(
            "pipeline = []", f'pipeline = ["{component}"]'
        )
        config += f'\n[components.{component}]\nfactory = "{component}"\n'
        (folder / "config.cfg").write_text(config)
        return folder

    return make


def arguments(inputs, kb, output, *more):
    options = ("--output", output, "--batch-size", 1, "--mentions", "names")
    return [str(part) for part in ("link", kb, inputs, *options, *more)]


def run(*parts, code=0):
    return invoke(*arguments(*parts), code=code)


def run_script(new_process, script, *parts, timeout=300):
    return new_process.run(
        [sys.executable, str(script), *arguments(*parts)], timeout=timeout
    )


def contents(folder: Path):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_link_processes_write_the_same_bytes(lines, sample_kb, tmp_path, new_process):
    nlp = spacy.blank("en")
    docs = [nlp("fever and aspirin"), nlp("fever"), nlp("")]
    docs[0].ents = [docs[0].char_span(10, 17, label="DRUG")]
    docs[0].user_data["kept"] = "value"
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    written = []
    for number in (1, 2):
        output = tmp_path / f"{number}.jsonl"
        more = (tmp_path / "docs.spacy", "--n-process", number)
        result = run(lines, sample_kb, output, *more)
        assert "10 documents, 8 entities, 8 linked" in result.stderr
        written.append(output.read_bytes())
    assert written[0] == written[1]
    assert new_process.context().active_children() == []


@pytest.mark.usefixtures("new_process")
def test_link_processes_resume_parts_of_one_process(lines, sample_kb, tmp_path):
    size = ("--shard-size", 3)
    run(lines, sample_kb, tmp_path / "one", *size)
    for name in ("one", "two"):
        result = run(lines, sample_kb, tmp_path / name, *size, "--n-process", 2)
        assert "7 documents" in result.stderr
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_link_processes_use_one_version_although_one_is_published_meanwhile(
    lines, own_kb, tmp_path, new_process
):
    """The standard input stays open, so that the workers start after the new one."""
    expected, output = tmp_path / "expected.jsonl", tmp_path / "out.jsonl"
    run(lines, own_kb, expected)
    command = arguments("-", own_kb, output, "--n-process", 2)
    process = new_process.start(
        [sys.executable, "-m", "spacy_sapbert", *command],
        stdin=new_process.PIPE,
        stderr=new_process.PIPE,
    )
    deadline = time.monotonic() + 300
    while not [*tmp_path.glob(".out.jsonl.*.tmp")]:  # it has opened everything
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    remove_concepts(load_kb(own_kb), ["C0000006"])  # which some text has
    _, stderr = process.communicate(lines.read_bytes(), timeout=300)
    assert process.returncode == 0, stderr
    assert output.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("number", [0, -1, "many"])
def test_link_processes_must_be_positive(lines, sample_kb, tmp_path, number):
    result = run(
        lines, sample_kb, tmp_path / "out.jsonl", "--n-process", number, code=2
    )
    assert "--n-process" in result.output


@pytest.mark.usefixtures("new_process")
def test_link_processes_wrong_kb_is_the_same_error(lines, tmp_path):
    result = run(lines, "not_there", tmp_path / "out.jsonl", "--n-process", 2, code=1)
    assert "E310" in result.output
    assert not (tmp_path / "out.jsonl").exists()


def test_link_processes_failing_component_is_the_same_error(
    script, lines, sample_kb, tmp_path, make_pipeline, new_process
):
    pipeline = make_pipeline("test_processes_failing")
    runpy.run_path(str(script))
    more = ("--pipeline", pipeline, "--shard-size", 1)
    one = run(lines, sample_kb, tmp_path / "one", *more, code=1)
    more = (*more, "--n-process", 2)
    two = run_script(new_process, script, lines, sample_kb, tmp_path / "two", *more)
    assert two.returncode == 1, two.stderr
    told = [" ".join(text.split()) for text in (one.output, two.stdout + two.stderr)]
    written = [contents(tmp_path / name) for name in ("one", "two")]
    assert (
        "document 3 (notes.jsonl:4), but its component 'test_processes_failing' failed"
        in told[0]
    )
    assert told[0] == told[1]
    assert SENTINEL not in told[1]
    assert written[0] == written[1]
    assert len(written[0]) == 4  # three parts, and what they are


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no signals")
def test_link_processes_dead_worker_is_an_error_with_the_ids(
    script, lines, sample_kb, tmp_path, make_pipeline, new_process
):
    """The parts before it stay, and the same command goes on after them."""
    run(lines, sample_kb, tmp_path / "expected", "--shard-size", 1)
    expected = contents(tmp_path / "expected")
    pipeline = make_pipeline("test_processes_dying")
    more = ("--pipeline", pipeline, "--n-process", 2, "--shard-size", 1)
    output = tmp_path / "out"
    (tmp_path / "dies").touch()
    done = run_script(new_process, script, lines, sample_kb, output, *more)
    assert done.returncode == 1, done.stderr
    told = " ".join((done.stdout + done.stderr).split())
    assert "[E748]" in told
    assert re.search(r"to link the documents [\d, ]*\b3\b[\d, ]*, but one", told)
    assert SENTINEL not in told
    assert "heart" not in told
    assert len(contents(output)) < len(expected)
    (tmp_path / "dies").unlink()
    done = run_script(new_process, script, lines, sample_kb, output, *more)
    assert done.returncode == 0, done.stderr
    parts = {name for name in expected if name.startswith("part-")}
    written = contents(output)
    assert {name: written[name] for name in parts} == {n: expected[n] for n in parts}


def wait_for_workers(process, folder):
    """Wait until two workers are at work, and return their ids."""
    deadline = time.monotonic() + 300
    while len(found := list(folder.glob("*.pid"))) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return [int(path.stem) for path in found]


def has_ended(number):
    """Return whether a process has ended; a zombie of a lost parent has."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{number}/status")
    return status.exists() and "State:\tZ" in status.read_text()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no such groups")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_link_processes_end_with_their_parent(
    script, lines, sample_kb, tmp_path, make_pipeline, name, new_process
):
    """A terminal sends Ctrl-C and SIGHUP to all processes, `kill` to one."""
    number = getattr(signal, name)
    pipeline = make_pipeline("test_processes_waiting")
    output = tmp_path / "out.jsonl"
    more = ("--pipeline", pipeline, "--n-process", 2)
    process = new_process.start(
        [sys.executable, str(script), *arguments(lines, sample_kb, output, *more)],
        stdout=new_process.PIPE,
        stderr=new_process.PIPE,
        start_new_session=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: [
            signal.signal(each, signal.SIG_DFL)
            for each in (signal.SIGINT, signal.SIGHUP)
        ],
    )
    workers = wait_for_workers(process, tmp_path)
    send = os.killpg if name in ("SIGINT", "SIGHUP") else os.kill
    send(process.pid, number)
    process.wait(timeout=120)
    deadline = time.monotonic() + 60
    while not all(map(has_ended, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    stderr = process.stderr.read().decode()
    assert "Traceback" not in stderr
    assert not output.exists()
    if name == "SIGKILL":  # which leaves no time for a message
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number, stderr
        assert f"Interrupted: {output} was not written." in stderr
