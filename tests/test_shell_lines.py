"""The commands that the pages show are understood as they are typed."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from spacy_sapbert.cli.main import app as package_app
from training.__main__ import app as training_app
from training.trainer.settings import parse_overrides, read_config

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Dockerfile")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "experiments").rglob("README.md")),
]
APPS = {
    "spacy sapbert": get_command(package_app),
    "-m training": get_command(training_app),
}
BLOCK = re.compile(r"^( *)```(?:bash)?\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:python -m training|spacy sapbert) [^`]+)`")
# what the shell gives to a command: up to the next one
WORDS = r"""((?:[^;|&<>()#'"]|'[^']*'|"[^"]*")+)"""
LINE = re.compile(rf"(?:^|[ ;{{])(spacy sapbert|-m training) {WORDS}")
PLACEHOLDERS = ("…", "COMMAND")
WRONG = ("NoSuchOption", "NoSuchCommand", "UsageError")


def list_lines() -> list[Any]:
    """Return the commands in blocks, each with its page; whole = as typed."""
    found = []
    for page in PAGES:
        text = page.read_text("utf8")
        name = page.relative_to(ROOT).as_posix()
        blocks = "\n".join(
            block.replace("\\\n", " ") for _, block in BLOCK.findall(text)
        )
        lines = [line.strip() for line in blocks.splitlines() if "→" not in line]
        inline = [
            " ".join(line.split()) for line in INLINE.findall(BLOCK.sub("", text))
        ]
        for line, whole in [(x, True) for x in lines] + [(x, False) for x in inline]:
            found += [(name, *match, whole) for match in LINE.findall(line)]
    return [each for each in found if not any(p in each[2] for p in PLACEHOLDERS)]


LINES = list_lines()


def parse(command: Any, words: list[str], context: Any = None) -> Any:
    """Return the context of the command at the end, which is not run."""
    made = command.make_context("typed", words, parent=context)
    if not hasattr(command, "resolve_command"):
        return made
    _, inner, rest = command.resolve_command(made, [*made._protected_args, *made.args])
    return parse(inner, rest, made)


@pytest.mark.parametrize(
    ("page", "program", "line", "whole"),
    LINES,
    ids=[f"{page}: {line[:40]}" for page, _, line, _ in LINES],
)
def test_command_of_a_page_is_understood(
    page: str, program: str, line: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(re.sub(r"\$\w+", "0", line))  # variables of the shell
    try:
        context = parse(APPS[program], words)
    except Exception as error:  # of the copy of click in typer, or of click
        # a sentence may name a command without what it needs
        if whole or type(error).__name__ in WRONG:
            raise
        return
    if context.args:  # settings of training
        read_config(context.params["config_path"], parse_overrides(context.args))


def test_pages_have_many_commands() -> None:
    assert len(LINES) > 100
    assert {program for _, program, _, _ in LINES} == {*APPS}
