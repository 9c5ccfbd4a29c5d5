"""The app of all commands, and how it reports errors."""

from typing import Any

import typer
from typer.core import TyperGroup
from wasabi import msg

from ..errors import SapbertError

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells


class ErrorReportingGroup(TyperGroup):
    """Prints errors in one line and exits with 1, after Ctrl-C with 130."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SapbertError as error:
            msg.fail(str(error), exits=1)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="sapbert",
    cls=ErrorReportingGroup,
    help="Vocabularies, knowledge bases and linking with a self-aligned encoder.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
