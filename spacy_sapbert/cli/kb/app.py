"""`spacy sapbert kb …`: the app of the commands for knowledge bases."""

from ...errors import Errors, SapbertError
from ..app import app, make_app

kb_app = make_app(
    name="kb", help="Build, inspect, verify and package a knowledge base."
)
app.add_typer(kb_app)


def parse_settings(values: list[str], option: str = "--setting") -> dict[str, int]:
    """Parse `NAME=NUMBER` settings of the index backend.

    Args:
        option: How they are given, for the error.
    """
    settings: dict[str, int] = {}
    for value in values:
        name, equals, number = value.partition("=")
        if not equals or not number.isdecimal():
            raise SapbertError(Errors.E320.format(setting=option, value=value))
        settings[name] = int(number)
    return settings
