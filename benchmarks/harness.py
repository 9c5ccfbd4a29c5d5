"""What the benchmarks share: command lines, the machine and tables."""

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
from training.data.options import format_markdown

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


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table in Markdown."""
    typer.echo("\n".join(format_markdown(header, rows)))
