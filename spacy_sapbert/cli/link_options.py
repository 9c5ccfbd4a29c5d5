"""Options of linking in commands; the others by `--setting NAME=VALUE`.

Limits stand in `LinkOptions` alone, which refuses what is out of them.
"""

import json
from collections.abc import Sequence
from typing import Any

import typer

from ..errors import SapbertError
from .concepts import split_values

K = typer.Option(
    None,
    "-k",
    "--k",
    help="Candidates for a mention. [as the linker: 10]",
)
THRESHOLD = typer.Option(
    None,
    help="Minimum score of a link. [as the linker, the kb]",
)
CODES = typer.Option(
    None, help="Vocabularies whose codes are written: SNOMEDCT_US,ICD10CM. [all]"
)
SETTING = typer.Option(
    [],
    metavar="NAME=VALUE",
    help="Another option of linking, see docs/linker.md: k=5. May be repeated.",
)


def parse_settings(given: Sequence[str]) -> dict[str, Any]:
    """Parse settings like `k=5`; a value is JSON, or else a text."""
    settings: dict[str, Any] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not name or not equals or not value:
            raise SapbertError(
                "E331",
                "Expected `--setting` as NAME=VALUE, but got something else. Write "
                "it like `--setting k=5`; a value is a text, or JSON.",
            )
        try:
            settings[name] = json.loads(value)
        except (ValueError, RecursionError):  # or lists in each other without end
            settings[name] = value
    return settings


def gather_options(
    setting: Sequence[str] = (), codes: str | None = None, **given: Any
) -> dict[str, Any]:
    """Return the options of linking that a command was given.

    Args:
        setting: See `parse_settings`; each replaces what is given otherwise.
        codes: Comma-separated.
        given: Other options by name; None = not given.
    """
    given["codes"] = split_values(codes)
    options = {name: value for name, value in given.items() if value is not None}
    return options | parse_settings(setting)
