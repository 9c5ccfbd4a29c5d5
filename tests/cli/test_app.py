"""What every command does with errors, signals, full outputs and control characters."""

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
import typer

from spacy_sapbert.cli.app import ErrorReportingGroup, make_app
from spacy_sapbert.cli.main import app
from spacy_sapbert.io.version import SITE
from tests.commands import invoke, make_tree

SENTINEL = "SENTINELTEXT"
ROOT = Path(__file__).parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="this system has no such signals")
FULL = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no full file"
)
# DEL, C1 and marks of direction are left by `json.dumps`.
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
HOSTILE = "a\x1b[2J\x9b2J\x7f\u202eb"


def start_link(new_process, kb, output):
    """Start `link`, which ignores SIGHUP, and send one document: it waits with a part.

    A shell that runs the tests may have it ignore SIGINT.
    """

    def set_signals():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    words = ("link", kb, "-", "--output", output, "--batch-size", 1)
    process = new_process.start(
        [sys.executable, "-m", "spacy_sapbert", *words],
        stdin=new_process.PIPE,
        stdout=new_process.PIPE,
        stderr=new_process.PIPE,
        preexec_fn=set_signals,
    )
    line = json.dumps({"text": f"fever {SENTINEL} " + "and more " * 2000})
    process.stdin.write(f"{line}\n{line}\n{{".encode())
    process.stdin.flush()
    deadline = time.monotonic() + 300
    while not (parts := [x for x in output.parent.iterdir() if x.stat().st_size]):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return process, parts[0]


@POSIX
def test_signal_removes_the_part_of_link(exported_kb, tmp_path, new_process):
    output = tmp_path / "out.jsonl"
    process, part = start_link(new_process, exported_kb, output)
    assert SENTINEL in part.read_text("utf8")
    assert part.stat().st_mode & 0o777 == 0o600
    process.send_signal(signal.SIGHUP)  # which was ignored before
    time.sleep(0.5)
    assert process.poll() is None
    assert part.exists()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)  # as a shell and its terminal do together
    # The input stays open, or it would end in a line.
    code, stderr = process.wait(timeout=120), process.stderr.read()
    assert code == 130, stderr
    assert f"Interrupted: {output} was not written." in stderr.decode()
    assert SENTINEL.encode() not in stderr
    assert list(tmp_path.iterdir()) == []


@FULL
def test_full_output_is_an_error_in_one_line(exported_kb, new_process):
    words = [sys.executable, "-m", "spacy_sapbert", "kb", "info", str(exported_kb)]
    with open("/dev/full", "wb") as full:
        done = new_process.run(words, stdout=full, stderr=new_process.PIPE)
    assert done.returncode == 1
    shown = r"✘ \[E004\] Expected .* the standard output .*\n"
    assert re.fullmatch(shown, done.stderr)


@POSIX
@pytest.mark.parametrize("words", [["KB", "fever"], ["--help"]])
def test_pipe_that_is_closed_ends_a_command_without_a_message(
    exported_kb, new_process, words
):
    given = [word.replace("KB", str(exported_kb)) for word in words]
    reading, writing = os.pipe()
    os.close(reading)
    done = new_process.run(
        [sys.executable, "-m", "spacy_sapbert", "kb", "search", *given],
        stdout=writing,
        stderr=new_process.PIPE,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("path", [(), ("concepts",), ("kb",)])
def test_help_lists_all_commands_in_the_order_of_work(path):
    group = make_tree(app)
    for name in path:
        group = group.get_command(None, name)
    assert group.list_commands(None) == [*group.pages]
    for name, pages in group.pages.items():
        assert pages.split()[0] in group.get_command(None, name).epilog
        for page in pages.split():
            assert (ROOT / "docs" / f"{page}.md").is_file(), page


def test_help_ends_with_addresses_of_the_site():
    help = " ".join(invoke("map", "--help", code=0).output.split())
    assert help.endswith(f"More: {SITE}mapping.html {SITE}linker.html")


def fail_with(error):
    """Run a command that raises an error, and return what it says."""
    own = make_app(cls=ErrorReportingGroup)
    own.callback()(lambda: None)

    @own.command()
    def fail() -> None:
        try:
            raise ZeroDivisionError(SENTINEL)
        except ZeroDivisionError:
            raise error from None

    result = invoke("fail", app=own, code=1)
    assert result.stdout == ""
    return result.stderr


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device", "folder/file"), "E004.*folder/file"),
        (Exception("I/O error: File too large (os error 27)"), "E004.*a file, but"),
        (PermissionError(13, "denied", "\x1b[2Jfile"), "E004.*\ufffd\\[2Jfile"),
    ],
)
def test_errors_of_the_system_have_codes(error, expected):
    assert re.match(rf"✘ \[{expected}", fail_with(error))


@pytest.mark.parametrize(
    "error",
    [ValueError(f"a line: {SENTINEL}"), SystemExit(0), SystemExit(SENTINEL)],
    ids=repr,
)
def test_other_errors_have_their_place_and_not_their_text(error):
    """They may come from plugins and components, and quote a document."""
    *frames, last = fail_with(error).splitlines()
    kind = type(error).__name__
    assert re.match(rf"✘ \[E024\] .* {kind} at {re.escape(__file__)}:\d+", last)
    assert any("in fail" in line for line in frames)
    assert SENTINEL not in "".join([*frames, last])


def check_printed(result):
    assert result.stdout + result.stderr
    assert not CONTROLS.search(result.stdout + result.stderr)


def test_control_characters_of_names_and_cases_are_not_printed(
    own_kb, sample_kb, tmp_path
):
    alias = f"hostile {HOSTILE}"
    found = invoke("kb", "add", own_kb, "--new", "--cui", "C1", "--alias", alias)
    check_printed(found)
    for words in (
        ("kb", "search", own_kb, f"hostile {HOSTILE}"),
        ("explain", own_kb, f"hostile {HOSTILE}", "--json"),
    ):
        check_printed(invoke(*words))
    shutil.rmtree(own_kb)
    cases = tmp_path / f"{HOSTILE}.yaml"
    texts = dict.fromkeys(("mention", "label", "note"), f"fever {HOSTILE}")
    for name in ("expected", HOSTILE):
        cases.write_text(json.dumps([{**texts, name: f"C{HOSTILE}"}]), "utf8")
        check_printed(invoke("regress", sample_kb, cases))


def test_no_app_has_tracebacks_with_local_variables():
    """Older versions of typer print them unless they are switched off."""
    made = [
        path
        for package in ("spacy_sapbert", "training", "benchmarks")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"typer\.Typer\(|\bApp\(", path.read_text("utf8"))
    ]
    assert made == [ROOT / "spacy_sapbert" / "cli" / "app.py"]
    assert isinstance(app, typer.Typer)
    assert not app.pretty_exceptions_enable


def test_help_needs_neither_spacy_nor_torch(new_process):
    """So that a command answers at once, in the shell's completion too."""
    script = (
        "import sys; from spacy_sapbert.cli.main import app; "
        "from typer.testing import CliRunner; "
        "print(CliRunner().invoke(app, ['concepts', '--help']).exit_code, "
        "sorted({'spacy', 'torch', 'fastapi', 'uvicorn'} & {*sys.modules}))"
    )
    done = new_process.run([sys.executable, "-c", script])
    assert done.stdout.strip() == "0 []"


@pytest.mark.parametrize("group", [[], ["kb"]])
def test_help_lists_commands_with_whole_lines(group):
    """Typer cuts a line that does not fit in 80 columns."""
    _, _, shown = invoke(*group, "--help", code=0).output.partition("Commands")
    assert "kb/ -> " in shown
    assert "..." not in shown


def test_columns_have_one_name_in_all_commands():
    """A column of terms, a text of a document, an id and its name."""
    has = {
        "map": "column id",
        "verify": "column text id label",
        "update": "column id label",
    }
    has["link"] = "text id"
    commands = typer.main.get_command(app).commands
    helps = set()
    for name, words in has.items():
        options = {o.name: o for o in commands[name].params}
        shared = options.keys() & {"column", "text", "id", "label"}
        assert shared == {*words.split()}
        helps |= {(word, options[word].help) for word in [*shared, "encoding"]}
    assert len(helps) == 5


def test_quiet_prints_nothing(sample_kb, annotated_file, tmp_path):
    words = ["evaluate", sample_kb, annotated_file, "--output", tmp_path / "out"]
    assert invoke(*words, "--quiet", code=0).output == ""
