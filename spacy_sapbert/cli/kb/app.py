"""`spacy sapbert kb …`: the app of the commands for knowledge bases."""

from ...errors import SapbertError
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
            raise wrong_setting(setting=option, value=value)
        settings[name] = int(number)
    return settings


def wrong_setting(*, setting: object, value: object) -> SapbertError:
    return SapbertError(
        "E331",
        f"Expected {setting} as NAME=NUMBER, but got {value!r}. Write it like "
        "`ef=200` or `threshold=0.5`.",
    )
