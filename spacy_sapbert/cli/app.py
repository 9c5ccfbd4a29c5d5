"""The command that all the others hang on, and how it tells errors."""

from typing import Any

import typer
from typer.core import TyperGroup
from wasabi import msg

from ..errors import SapbertError

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it


class TellingGroup(TyperGroup):
    """Tells an error of ours in one line and exits with 1, without a traceback.

    Ctrl-C exits with 130.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SapbertError as error:
            msg.fail(str(error), exits=1)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="sapbert",
    cls=TellingGroup,
    help="Vocabularies, knowledge bases and linking with a self-aligned encoder.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
