"""Commands, run in the process of the tests."""

from functools import cache
from typing import Any

from click.testing import CliRunner, Result
from typer import Typer
from typer.main import get_command

from spacy_sapbert.cli import main

make_tree = cache(get_command)  # of all subcommands, which takes long


def invoke(
    *words: object, app: Typer = main.app, code: int | None = None, **options: Any
) -> Result:
    """Run a command to its end, which is to have a code; options as `CliRunner`."""
    command = make_tree(app)
    result = CliRunner().invoke(command, [str(word) for word in words], **options)
    assert code in (None, result.exit_code), result.output
    return result
