"""Commands that build on one another, each given once: long measurements resume."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import typer
from wasabi import msg


class Step(NamedTuple):
    """One command.

    makes (str): The file or folder that is there afterwards, in the folder $OUT.
    command (str): With $DATA, $OUT and $BASE for what is named on the command line.
    """

    makes: str
    command: str


def run_step(step: Step, places: dict[str, str], out: Path) -> None:
    """Run a command, unless what it makes is there.

    step (Step): The command.
    places (dict[str, str]): What stands for $DATA, $OUT and $BASE.
    out (Path): The folder $OUT.
    RAISES (typer.Exit): If the command fails, with its exit code. It has said why.
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
    """Run commands in order; see `run_step`.

    steps (Sequence[Step]): The commands.
    data (Path): What stands for $DATA.
    base (str): What stands for $BASE.
    out (Path): The folder $OUT, which is made.
    RAISES (typer.Exit): If one fails.
    """
    out.mkdir(parents=True, exist_ok=True)
    places = {"DATA": os.fspath(data), "OUT": os.fspath(out), "BASE": base}
    for step in steps:
        run_step(step, places, out)


def render_call(module: str, page: str, options: dict[str, str]) -> list[str]:
    """Write down the command that runs all steps.

    module (str): E.g. "benchmarks.numbers".
    page (str): The page that it writes, in the project.
    options (dict[str, str]): Further ones; those without a value are left out.
    RETURNS (list[str]): Lines of Markdown.
    """
    more = "".join(f" --{k} {shlex.quote(v)}" for k, v in options.items() if v)
    return [
        "Written by one command, which makes everything anew in an empty folder:",
        "",
        "```bash",
        f"python -m {module} $DATA --base $BASE --out $OUT --page {page}{more}",
        "```",
    ]


def render_commands(steps: Sequence[Step]) -> list[str]:
    """Write all commands down.

    steps (Sequence[Step]): The commands.
    RETURNS (list[str]): Lines of Markdown.
    """
    return ["```bash", *(step.command for step in steps), "```"]
