"""`link --shard-size` and `--n-process`: a run that ended goes on to the same bytes."""

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

from spacy_sapbert.kb.adjust import change_kb
from spacy_sapbert.kb.edits.change import remove_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from tests.commands import invoke

SENTINEL = "SENTINELTEXT"


def run(*parts, code=None):
    """Run `link` in parts of two documents."""
    return invoke(*list_words(*parts, "--shard-size", 2), code=code)


def list_words(inputs, kb, output, *more):
    options = ("--output", output, "--batch-size", 1, "--mentions", "names")
    return ["link", kb, inputs, *options, *more]


def contents(folder: Path):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def whole(lines, sample_kb, tmp_path):
    """What a run gives that nobody stopped."""
    run(lines, sample_kb, tmp_path / "whole", code=0)
    return contents(tmp_path / "whole")


def test_link_parts_equal_one_file(lines, sample_kb, tmp_path, whole):
    single = tmp_path / "single.jsonl"
    invoke("link", sample_kb, lines, "--output", single, code=0)
    parts = [whole[name] for name in sorted(whole) if name.startswith("part-")]
    assert b"".join(parts) == single.read_bytes()
    assert [len(part.splitlines()) for part in parts] == [2, 2, 2, 1]
    assert SENTINEL.encode() not in whole["_state.json"]


def test_link_parts_of_a_pipeline_with_other_files_are_an_error(
    lines, sample_kb, tmp_path
):
    """Neither its name nor its version, nor its config, tells them apart."""
    for name, pattern in {"first": "fever", "second": "aspirin"}.items():
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("entity_ruler")
        ruler.add_patterns([{"label": "X", "pattern": pattern}])
        nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
        nlp.to_disk(tmp_path / name)
    options = (lines, "--output", tmp_path / "out", "--shard-size", 2)
    invoke("link", tmp_path / "first", *options, code=0)
    before = contents(tmp_path / "out")
    shown = invoke("link", tmp_path / "second", *options, code=1).output
    assert "E560" in shown
    assert "`pipeline`" in shown
    assert contents(tmp_path / "out") == before


def test_link_parts_of_a_moved_kb_resume_and_of_another_do_not(
    lines, own_kb, tmp_path, whole
):
    run(lines, own_kb, tmp_path / "whole", code=0)
    for more, setting in (
        (("--k", 3), "`k`"),
        (("--candidates", 4), "`candidates`"),
        (("--no-text",), "`no_text`"),
    ):
        result = run(lines, own_kb, tmp_path / "whole", *more, code=1)
        assert "E560" in result.output
        assert setting in result.output
    change_kb(own_kb, threshold=0.1)
    assert "`kb`" in run(lines, own_kb, tmp_path / "whole", code=1).output
    assert contents(tmp_path / "whole") == whole
    lines.write_text(lines.read_text() + '{"text": "more"}\n')
    assert "`inputs`" in run(lines, own_kb, tmp_path / "whole").output
    result = run(lines, own_kb, tmp_path / "whole", "--force", code=0)
    assert "8 documents" in result.stderr


def test_link_parts_invalid_line_keeps_earlier_parts(lines, sample_kb, tmp_path, whole):
    good = lines.read_text()
    rows = good.splitlines(keepends=True)
    rows[4] = "{" + " " * (len(rows[4]) - 2) + "\n"
    lines.write_text("".join(rows))
    output = tmp_path / "out"
    result = run(lines, sample_kb, output, code=1)
    assert "notes.jsonl:5" in "".join(result.output.split())
    parts = [f"part-0000{number}.jsonl" for number in (0, 1)]
    assert sorted(contents(output)) == ["_state.json", *parts]
    lines.write_text(good)
    assert run(lines, sample_kb, output).exit_code == 0
    assert contents(output) == whole


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
def make_component(tmp_path):
    """Save a pipeline with one component of the script."""

    def make(component):
        # Only its config says so: the component is not known here.
        nlp = spacy.blank("en")
        nlp.to_disk(tmp_path / component)
        path = tmp_path / component / "config.cfg"
        config = path.read_text().replace(
            "pipeline = []", f'pipeline = ["{component}"]'
        )
        config += f'\n[components.{component}]\nfactory = "{component}"\n'
        path.write_text(config)
        return tmp_path / component

    return make


def link(*parts, code=0):
    return invoke(*list_words(*parts), code=code)


def run_script(new_process, script, *parts):
    return new_process.python(script, *list_words(*parts))


def test_link_processes_write_the_same_bytes(lines, exported_kb, tmp_path, new_process):
    nlp = spacy.blank("en")
    docs = [nlp("fever and aspirin"), nlp("fever"), nlp("")]
    docs[0].ents = [docs[0].char_span(10, 17, label="DRUG")]
    docs[0].user_data["kept"] = "value"
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    written = []
    for number in (1, 2):
        output = tmp_path / f"{number}.jsonl"
        more = (tmp_path / "docs.spacy", "--n-process", number)
        result = link(lines, exported_kb, output, *more)
        said = "10 documents, 8 entities, 7 linked, 1 NIL (1 ambiguous)"
        assert said in result.stderr
        written.append(output.read_bytes())
    assert written[0] == written[1]
    size = ("--shard-size", 3)
    link(lines, exported_kb, tmp_path / "one", *size)
    before = contents(tmp_path / "one")
    result = link(lines, exported_kb, tmp_path / "one", *size, "--n-process", 2)
    assert "7 documents" in result.stderr  # it resumes what one process has written
    assert contents(tmp_path / "one") == before
    assert new_process.context().active_children() == []


def test_link_processes_use_one_version_although_one_is_published_meanwhile(
    lines, own_exported_kb, tmp_path, new_process
):
    """The standard input stays open, so that the workers start after the new one."""
    expected, output = tmp_path / "expected.jsonl", tmp_path / "out.jsonl"
    link(lines, own_exported_kb, expected)
    command = list_words("-", own_exported_kb, output, "--n-process", 2)
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
    remove_concepts(load_kb(own_exported_kb), ["C0000006"])  # which some text has
    _, stderr = process.communicate(lines.read_bytes(), timeout=300)
    assert process.returncode == 0, stderr
    assert output.read_bytes() == expected.read_bytes()


def test_link_processes_failing_component_is_the_same_error(
    script, lines, exported_kb, tmp_path, make_component, new_process
):
    pipeline = make_component("test_processes_failing")
    runpy.run_path(str(script))
    more = ("--pipeline", pipeline, "--shard-size", 1)
    one = link(lines, exported_kb, tmp_path / "one", *more, code=1)
    more = (*more, "--n-process", 2)
    two = run_script(new_process, script, lines, exported_kb, tmp_path / "two", *more)
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
    script, lines, exported_kb, tmp_path, make_component, new_process
):
    """The parts before it stay, and the same command goes on after them."""
    link(lines, exported_kb, tmp_path / "expected", "--shard-size", 1)
    expected = contents(tmp_path / "expected")
    pipeline = make_component("test_processes_dying")
    more = ("--pipeline", pipeline, "--n-process", 2, "--shard-size", 1)
    output = tmp_path / "out"
    (tmp_path / "dies").touch()
    done = run_script(new_process, script, lines, exported_kb, output, *more)
    assert done.returncode == 1, done.stderr
    told = " ".join((done.stdout + done.stderr).split())
    assert "[E748]" in told
    assert re.search(r"to link the documents [\d, ]*\b3\b[\d, ]*, but one", told)
    assert SENTINEL not in told
    assert "heart" not in told
    assert len(contents(output)) < len(expected)
    (tmp_path / "dies").unlink()
    done = run_script(new_process, script, lines, exported_kb, output, *more)
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
@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGKILL"])
def test_link_processes_end_with_their_parent(
    script, lines, exported_kb, tmp_path, make_component, name, new_process
):
    """A terminal sends Ctrl-C to all processes, `kill` a signal to one."""
    number = getattr(signal, name)
    pipeline = make_component("test_processes_waiting")
    output = tmp_path / "out.jsonl"
    more = ("--pipeline", pipeline, "--n-process", 2)
    process = new_process.start(
        [sys.executable, str(script), *list_words(lines, exported_kb, output, *more)],
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
    send = os.killpg if name == "SIGINT" else os.kill
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
