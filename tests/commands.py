"""Commands, run in the process of the tests."""

from functools import cache
from typing import Any

from click.testing import CliRunner, Result
from spacy.util import registry
from typer import Typer
from typer.main import get_command

from spacy_sapbert.cli import main


@cache
def make_tree(app: Typer) -> Any:
    """Build the command with all subcommands, which takes long."""
    registry.cli.get_all()  # as spaCy finds those of packages: by their entry points
    return get_command(app)


def invoke(
    *words: object, app: Typer = main.app, code: int | None = None, **options: Any
) -> Result:
    """Run a command to its end, which is to have a code; options as `CliRunner`."""
    command = make_tree(app)
    result = CliRunner().invoke(command, [str(word) for word in words], **options)
    assert code in (None, result.exit_code), result.output
    return result
