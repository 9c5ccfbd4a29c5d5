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

from spacy_sapbert.cli.app import (
    REPEAT_SECONDS,
    ErrorReportingGroup,
    make_app,
    stop_on_signals,
)
from spacy_sapbert.cli.main import app
from tests.commands import invoke

SENTINEL = "SENTINELTEXT"
ROOT = Path(__file__).parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="this system has no such signals")
FULL = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no full file"
)
# DEL, C1 and marks of direction are left by `json.dumps`.
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
HOSTILE = "a\x1b[2J\x9b2J\x7f\u202eb"


def start(new_process, *words, ignored=(), **options):
    """Start a command; a shell that runs the tests may have it ignore signals."""

    def set_signals():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            chosen = signal.SIG_IGN if number in ignored else signal.SIG_DFL
            signal.signal(number, chosen)

    return new_process.start(
        [sys.executable, "-m", "spacy_sapbert", *map(str, words)],
        stdin=new_process.PIPE,
        stdout=new_process.PIPE,
        stderr=new_process.PIPE,
        preexec_fn=set_signals if os.name == "posix" else None,
        **options,
    )


def start_link(new_process, kb, output, *words, **options):
    """Start `link` and send one document, so that it waits with a part."""
    parts = output / ".part-00000.jsonl.*" if words else f".{output.name}.*"
    process = start(
        new_process,
        *("link", kb, "-", "--output", output, "--batch-size", 1, *words),
        **options,
    )
    line = {"text": f"fever {SENTINEL} " + "and more " * 2000}
    process.stdin.write(json.dumps(line).encode() + b"\n" + json.dumps(line).encode())
    process.stdin.write(b"\n{")
    process.stdin.flush()
    folder, pattern = (output, parts.name) if words else (output.parent, parts)
    deadline = time.monotonic() + 300
    while not any(part.stat().st_size for part in folder.glob(pattern)):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return process, next(folder.glob(pattern))


def wait_for_end(process):
    """Return exit code and errors; the input stays open, or it would end in a line."""
    code = process.wait(timeout=120)
    return code, process.stderr.read()


@POSIX
def test_signal_removes_the_part_of_link(exported_kb, tmp_path, new_process):
    output = tmp_path / "out.jsonl"
    process, part = start_link(new_process, exported_kb, output)
    assert SENTINEL in part.read_text("utf8")
    assert part.stat().st_mode & 0o777 == 0o600
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)  # as a shell and its terminal do together
    code, stderr = wait_for_end(process)
    assert code == 130, stderr
    assert f"Interrupted: {output} was not written." in stderr.decode()
    assert SENTINEL.encode() not in stderr
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_signal_that_is_ignored_stays_ignored(exported_kb, tmp_path, new_process):
    output = tmp_path / "out.jsonl"
    process, part = start_link(
        new_process, exported_kb, output, ignored=(signal.SIGHUP,)
    )
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    assert part.exists()
    process.send_signal(signal.SIGTERM)
    assert wait_for_end(process)[0] == 143
    assert list(tmp_path.iterdir()) == []


# Signals are raised in processes of their own: pytest gives a worker a second stack for
# them, which is too small once libraries of the worker use wide registers (AMX).
@POSIX
def test_signal_while_an_object_is_deleted_is_not_lost(new_process):
    new_process.call(lose_signals)


def lose_signals():
    class Deleted:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)  # Python drops what is raised here

    with pytest.raises(typer.Exit) as error, stop_on_signals():
        Deleted()
    assert error.value.exit_code == 143
    time.sleep(3 * REPEAT_SECONDS)  # and it is not sent to what runs next
    own = make_app(cls=ErrorReportingGroup)
    own.callback()(lambda: None)
    deleted = []

    class Object:
        def __del__(self):
            deleted.append(True)
            signal.raise_signal(signal.SIGTERM)

    @own.command()
    def work() -> None:
        Object()
        time.sleep(60)

    invoke("work", app=own, code=143)
    assert deleted


@FULL
def test_full_output_is_an_error_in_one_line(exported_kb, new_process):
    words = [sys.executable, "-m", "spacy_sapbert", "kb", "info", str(exported_kb)]
    with open("/dev/full", "wb") as full:
        done = new_process.run(words, stdout=full, stderr=new_process.PIPE)
    assert done.returncode == 1
    shown = r"✘ \[E004\] Expected .* the standard output .*\n"
    assert re.fullmatch(shown, done.stderr)


@POSIX
def test_pipe_that_is_closed_ends_a_command_without_a_message(exported_kb, new_process):
    words = [sys.executable, "-m", "spacy_sapbert", "kb", "search"]
    reading, writing = os.pipe()
    os.close(reading)
    done = new_process.run(
        [*words, str(exported_kb), "fever"], stdout=writing, stderr=new_process.PIPE
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device", "folder/file"), "E004.*folder/file"),
        (Exception("I/O error: File too large (os error 27)"), "E004.*a file, but"),
        (PermissionError(13, "denied", "\x1b[2Jfile"), "E004.*\ufffd\\[2Jfile"),
    ],
)
def test_errors_of_the_system_have_codes(error, expected):
    own = make_app(cls=ErrorReportingGroup)
    own.callback()(lambda: None)

    @own.command()
    def fail() -> None:
        raise error

    result = invoke("fail", app=own)
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.match(rf"✘ \[{expected}", result.stderr)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(f"a line: {SENTINEL}"),
        SystemExit(0),
        SystemExit(SENTINEL),
    ],
    ids=repr,
)
def test_other_errors_have_their_place_and_not_their_text(error):
    """They may come from plugins and components, and quote a document."""
    own = make_app(cls=ErrorReportingGroup)
    own.callback()(lambda: None)

    @own.command()
    def fail() -> None:
        try:
            raise ZeroDivisionError(SENTINEL)
        except ZeroDivisionError:
            raise error from None

    result = invoke("fail", app=own)
    assert (result.exit_code, result.stdout) == (1, "")
    *frames, last = result.stderr.splitlines()
    kind = type(error).__name__
    assert re.match(rf"✘ \[E024\] .* {kind} at {re.escape(__file__)}:\d+", last)
    assert any("in fail" in line for line in frames)
    assert SENTINEL not in result.stderr


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


def test_long_help_has_panels():
    output = invoke("link", "--help", code=0).output
    panels = [line for line in output.splitlines() if re.match(r"[A-Z][\w ]+:$", line)]
    assert panels == [
        *("Arguments:", "Options:", "Input:", "Linking:"),
        *("Only these concepts and names:", "Output:", "Running:"),
    ]


@pytest.mark.parametrize(
    "command",
    [
        "evaluate KB GOLD --output OUT",
        "kb build CONCEPTS OUT --encoder ENCODER --engine torch",
        "map KB GOLD --column mention -o OUT.csv",
    ],
)
def test_quiet_prints_nothing(
    command, own_kb, annotated_file, concepts_file, tiny_encoder, tmp_path
):
    places = {"KB": own_kb, "GOLD": annotated_file, "CONCEPTS": concepts_file}
    places |= {"ENCODER": tiny_encoder, "OUT": tmp_path / "out"}
    places |= {f"OUT{end}": tmp_path / f"out{end}" for end in (".jsonl", ".csv")}
    words = [places.get(word, word) for word in command.split()]
    result = invoke(*words, "--quiet", code=0)
    assert result.output == ""
