"""`link --shard-size`: stopped in every way, it goes on to the same bytes."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_sapbert.cli.main import app
from spacy_sapbert.kb.edits.change import remove_concepts
from spacy_sapbert.kb.knowledge_base import load_kb
from spacy_sapbert.kb.settings import change_kb
from tests.commands import invoke
from tests.faults import DONE, KILLED, stop_at

SENTINEL = "SENTINELTEXT"


def arguments(lines, kb, output, *more):
    options = ("--output", output, "--shard-size", 2, "--batch-size", 1)
    return [str(part) for part in ("link", kb, lines, *options, *more)]


def run(*parts, stdin=None, code=None):
    return invoke(*arguments(*parts), input=stdin, code=code)


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


def test_link_parts_run_twice_writes_nothing(lines, sample_kb, tmp_path, whole):
    result = run(lines, sample_kb, tmp_path / "whole", code=0)
    assert "7 documents, 6 entities, 6 linked, 0 NIL; 4 parts in" in result.stderr
    assert contents(tmp_path / "whole") == whole


def kill_linking(words, output, whole):
    """Kill the command at many writes; what its state lists is complete."""
    from transformers import AutoModel  # noqa: F401, once and not in each fork

    spacy.blank("en")
    listed = []

    def link(folder):
        app([*words, "--output", str(folder)])

    for moment in range(1, 1000, 5):
        folder = output / str(moment)
        end = stop_at("kill", moment, lambda folder=folder: link(folder))
        if end == DONE:
            break
        assert end == KILLED
        left = contents(folder) if folder.is_dir() else {}
        parts = json.loads(left.get("_state.json", '{"parts": []}'))["parts"]
        assert all(left[part["file"]] == whole[part["file"]] for part in parts)
        listed.append(len(parts))
        assert stop_at("kill", 1000, lambda folder=folder: link(folder)) == DONE
        assert contents(folder) == whole, moment
    assert {*listed} == {0, 1, 2, 3, 4}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_link_parts_killed_at_any_moment_resume_to_the_same_bytes(
    lines, sample_kb, tmp_path, whole, new_process
):
    words = arguments(lines, sample_kb, tmp_path)
    at = words.index("--output")
    new_process.call(kill_linking, [*words[:at], *words[at + 2 :]], tmp_path, whole)


def test_link_parts_full_disk_is_an_error_and_resumes(
    lines, sample_kb, tmp_path, whole, new_process
):
    output = tmp_path / "out"
    sizes = [len(data) for name, data in sorted(whole.items()) if "part" in name]
    limit = max(sizes) - 1
    command = [sys.executable, "-m", "spacy_sapbert"]
    command += arguments(lines, sample_kb, output)
    done = new_process.run(command, largest_file=limit)
    assert done.returncode == 1, done.stderr
    assert "E004" in done.stdout + done.stderr
    assert SENTINEL not in done.stdout + done.stderr
    assert all(
        whole[name] == data for name, data in contents(output).items() if "part" in name
    )
    assert run(lines, sample_kb, output).exit_code == 0
    assert contents(output) == whole


def test_link_parts_interrupted_print_it_and_resume(
    lines, sample_kb, tmp_path, new_process
):
    """The standard input stays open, so that the run waits when Ctrl-C comes."""
    data = lines.read_bytes()
    expected = tmp_path / "expected"
    assert run("-", sample_kb, expected, stdin=data).exit_code == 0
    output = tmp_path / "out"
    process = new_process.start(
        [sys.executable, "-m", "spacy_sapbert", *arguments("-", sample_kb, output)],
        stdin=new_process.PIPE,
        stdout=new_process.PIPE,
        stderr=new_process.PIPE,
        # A shell that runs the tests in the background has them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    process.stdin.write(b"".join(data.splitlines(keepends=True)[:5]))
    process.stdin.flush()
    deadline = time.monotonic() + 120
    while not (output / "part-00001.jsonl").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert b"Interrupted: 4 documents in " in stderr
    assert SENTINEL.encode() not in stderr
    assert run("-", sample_kb, output, stdin=data).exit_code == 0
    assert contents(output) == contents(expected)


@pytest.mark.parametrize(
    ("more", "setting"),
    [
        (("--k", 3), "`k`"),
        (("--threshold", 0.5), "`threshold`"),
        (("--no-text",), "`no_text`"),
        (("--format", "table"), "`format`"),
        (("--types", "T047"), "`filter`"),
        (("--setting", "ambiguous=nil"), "`ambiguous`"),
    ],
)
def test_link_parts_of_other_settings_are_an_error(
    lines, sample_kb, tmp_path, whole, more, setting
):
    result = run(lines, sample_kb, tmp_path / "whole", *more, code=1)
    assert "E560" in result.output
    assert setting in result.output
    assert contents(tmp_path / "whole") == whole


def test_link_parts_of_another_kb_are_an_error(lines, own_kb, tmp_path, whole):
    change_kb(own_kb, threshold=0.1)
    assert "`kb`" in run(lines, own_kb, tmp_path / "whole", code=1).output


@pytest.fixture
def make_pipeline(sample_kb, tmp_path):
    """Save a pipeline with rules and a linker under a name."""

    def make(name, pattern="fever", **options):
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("entity_ruler")
        ruler.add_patterns([{"label": "X", "pattern": pattern}])
        linker = nlp.add_pipe("sapbert_linker", config={"kb": str(sample_kb)})
        for option, value in options.items():
            setattr(linker, option, value)
        nlp.to_disk(tmp_path / name)
        return tmp_path / name

    return make


@pytest.mark.parametrize(
    "changes", [{"pattern": "aspirin"}, {"k": 3}], ids=["rules", "settings"]
)
def test_link_parts_of_a_pipeline_with_other_files_are_an_error(
    lines, tmp_path, make_pipeline, changes
):
    """Neither its name nor its version, nor its config, tells them apart."""
    first, second = make_pipeline("first"), make_pipeline("second", **changes)
    for name in ("config.cfg", "meta.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    options = (lines, "--output", tmp_path / "out", "--shard-size", 2)
    invoke("link", first, *options, code=0)
    before = contents(tmp_path / "out")
    shown = invoke("link", second, *options, code=1).output
    assert "E560" in shown
    assert "`pipeline`" in shown
    assert contents(tmp_path / "out") == before


def test_link_parts_of_a_moved_pipeline_resume(lines, tmp_path, make_pipeline):
    options = (lines, "--output", tmp_path / "out", "--shard-size", 2)
    moved = make_pipeline("first")
    invoke("link", moved, *options, code=0)
    before = contents(tmp_path / "out")
    moved = moved.rename(tmp_path / "moved")
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
    invoke("link", moved, *options, code=0)
    assert contents(tmp_path / "out") == before


@Language.component("test_link_parts_changing_the_kb")
def change_the_kb(doc):
    if doc.text == "heart attack":
        remove_concepts(load_kb(os.environ["CHANGED_KB"]), ["C0000006"])
    return doc


def test_link_parts_are_of_one_version_although_the_linker_looks_for_new_ones(
    lines, own_kb, tmp_path, monkeypatch
):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "X", "pattern": "aspirin"}])
    nlp.add_pipe("test_link_parts_changing_the_kb")
    nlp.add_pipe("sapbert_linker", config={"kb": str(own_kb), "reload_seconds": 0})
    nlp.to_disk(tmp_path / "pipeline", exclude=["sapbert_linker"])
    monkeypatch.setenv("CHANGED_KB", str(own_kb))
    output = ("--output", tmp_path / "out", "--shard-size", 1, "--batch-size", 1)
    invoke("link", tmp_path / "pipeline", lines, *output, code=0)
    assert "C0000006" not in load_kb(own_kb)
    rows = json.loads((tmp_path / "out" / "part-00005.jsonl").read_text())
    assert [entity["cui"] for entity in rows["entities"]] == ["C0000006"]


def test_link_parts_of_a_moved_kb_resume(lines, own_kb, tmp_path, whole):
    assert run(lines, own_kb, tmp_path / "whole").exit_code == 0


def test_link_parts_of_a_changed_input_are_an_error(lines, sample_kb, tmp_path, whole):
    lines.write_text(lines.read_text() + '{"text": "more"}\n')
    assert "`inputs`" in run(lines, sample_kb, tmp_path / "whole").output
    result = run(lines, sample_kb, tmp_path / "whole", "--force", code=0)
    assert "8 documents" in result.stderr


def test_link_parts_need_a_folder(lines, sample_kb, tmp_path):
    link = ("link", sample_kb, lines)
    assert "E423" in invoke(*link, "--shard-size", "2", code=1).output
    (tmp_path / "full").mkdir()
    assert "E423" in invoke(*link, "--output", tmp_path / "full", code=1).output


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
