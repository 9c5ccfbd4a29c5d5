"""What the benchmarks share: the machine, tables, memory, and steps that resume."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from wasabi import msg

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.system.writing import write_atomically

CPU_INFO = Path("/proc/cpuinfo")


def run_cli(command: Callable[..., Any] | typer.Typer) -> None:
    """Run a command line; a `SapbertError` ends it with one line."""
    app = command
    if not isinstance(app, typer.Typer):
        app = make_app()
        app.command()(command)
    try:
        app()
    except SapbertError as error:
        msg.fail(str(error), exits=1)


def make_app() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None)


def describe_machine() -> dict[str, Any]:
    """Return platform, processor, usable cores and the version of Python."""
    cpu = platform.processor()
    if CPU_INFO.is_file():
        lines = CPU_INFO.read_text("utf8").splitlines()
        models = [line for line in lines if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {
        "platform": platform.platform(),
        "cpu": cpu or "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }


def machine_line() -> str:
    """Return the machine in one line, to print with a table."""
    machine = describe_machine()
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}, "
        f"Python {machine['python']}"
    )


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; all columns but the first are aligned to the right."""
    aligns = ("l", *"r" * (len(header) - 1))
    msg.table(rows, header=header, divider=True, aligns=aligns, max_col=60)


def markdown_row(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1
) -> list[str]:
    """Return the lines of a table in Markdown; the first `left` columns have texts."""
    aligns = ["---"] * left + ["---:"] * (len(header) - left)
    return [markdown_row(cells) for cells in (header, aligns, *rows)]


def write_page(page: Path, lines: Iterable[str]) -> None:
    """Write a page in Markdown."""
    with write_atomically(page) as file:
        file.write("\n".join(lines).encode("utf8"))
    msg.good(f"Wrote {page}")


def measure_process(command: Sequence[str]) -> tuple[float, float]:
    """Run Python in a new process.

    command (Sequence[str]): Its arguments.
    RETURNS (tuple[float, float]): Seconds, and peak memory in MB.
    RAISES (typer.Exit): If it fails.
    """
    started = time.monotonic()
    with subprocess.Popen([sys.executable, *command]) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        msg.fail(f"Stopped: {' '.join(command)}", exits=1)
    return time.monotonic() - started, usage.ru_maxrss / 1024


def read_memory(process: int) -> dict[str, int]:
    """Return the memory of a process in kB by the names of smaps_rollup (Linux)."""
    path = Path(f"/proc/{process}/smaps_rollup")
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text("ascii").splitlines()[1:])
    return {line[0].rstrip(":"): int(line[1]) for line in lines}


class Step(NamedTuple):
    """One command of a page of numbers.

    makes (str): The file or folder in $OUT that it writes.
    command (str): With $DATA, $OUT and $BASE as placeholders.
    """

    makes: str
    command: str


def run_step(step: Step, places: dict[str, str], out: Path) -> None:
    """Run a command, unless its output exists.

    places (dict[str, str]): Values of the placeholders.
    out (Path): The folder $OUT.
    RAISES (typer.Exit): If the command fails, with its exit code.
    """
    if (out / step.makes).exists():
        return
    words = shlex.split(step.command)
    words = words[1:] if words[0] == "python" else ["-m", *words]
    for name, place in places.items():
        words = [word.replace(f"${name}", place) for word in words]
    msg.info(step.command)
    done = subprocess.run([sys.executable, *words], check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)


def run_steps(steps: Sequence[Step], data: Path, base: str, out: Path) -> None:
    """Run all commands in order; see `run_step`."""
    out.mkdir(parents=True, exist_ok=True)
    places = {"DATA": os.fspath(data), "OUT": os.fspath(out), "BASE": base}
    for step in steps:
        run_step(step, places, out)


def format_call(module: str, page: str, options: dict[str, str]) -> list[str]:
    """Format the command that writes a page; options without a value are left out."""
    more = "".join(f" --{k} {shlex.quote(v)}" for k, v in options.items() if v)
    return [
        "This command writes the page; in an empty folder it makes everything again:",
        "",
        "```bash",
        f"python -m {module} $DATA --base $BASE --out $OUT --page {page}{more}",
        "```",
    ]


def format_commands(steps: Sequence[Step]) -> list[str]:
    return ["```bash", *(step.command for step in steps), "```"]
