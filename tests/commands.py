"""Commands, run in the process of the tests."""

import functools
from typing import Any

from typer import Typer, testing

from spacy_sapbert.cli import main

# Make the tree of all subcommands once, not at each call.
testing._get_command = functools.cache(testing._get_command)


def invoke(
    *words: object, app: Typer = main.app, code: int | None = None, **options: Any
) -> testing.Result:
    """Run a command to its end, which is to have a code; options as `CliRunner`."""
    result = testing.CliRunner().invoke(app, [str(word) for word in words], **options)
    assert code in (None, result.exit_code), result.output
    return result
