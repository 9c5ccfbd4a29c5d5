"""What the benchmarks share: command lines, the machine, tables and memory."""

import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from spacy_sapbert.cli.app import make_app
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.terminal import msg

CPU_INFO = Path("/proc/cpuinfo")


def run_cli(command: Callable[..., Any] | typer.Typer) -> None:
    """Run a command line; a `SapbertError` ends it with one line."""
    app = command
    if not isinstance(app, typer.Typer):
        app = make_app(add_completion=False)
        app.command()(command)
    try:
        app()
    except SapbertError as error:
        msg.fail(error, exits=1)


def machine_line() -> str:
    """Return processor, usable cores, platform and the version of Python."""
    cpu = platform.processor()
    if CPU_INFO.is_file():
        models = re.findall(r"model name\s*: (.+)", CPU_INFO.read_text("utf8"))
        cpu = models[0].strip() if models else cpu
    return (
        f"{cpu or 'unknown'}, {len(os.sched_getaffinity(0))} cores, "
        f"{platform.platform()}, Python {platform.python_version()}"
    )


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; all columns but the first are aligned to the right."""
    aligns = ("l", *"r" * (len(header) - 1))
    msg.table(rows, header=header, divider=True, aligns=aligns, max_col=60)


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, left: int = 1
) -> list[str]:
    """Return the lines of a table in Markdown; the first `left` columns have texts."""
    aligns = ["---"] * left + ["---:"] * (len(header) - left)
    return [f"| {' | '.join(map(str, row))} |" for row in (header, aligns, *rows)]


def read_memory(process: int) -> dict[str, int]:
    """Return the memory of a process in kB by the names of smaps_rollup (Linux)."""
    path = Path(f"/proc/{process}/smaps_rollup")
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text("ascii").splitlines()[1:])
    return {line[0].rstrip(":"): int(line[1]) for line in lines}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf8"))
