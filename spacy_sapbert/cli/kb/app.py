"""`spacy sapbert kb …`: the app of the commands for knowledge bases."""

from collections.abc import Sequence

from ...errors import SapbertError
from ..app import app, make_app
from ..options import parse_settings

kb_app = make_app(
    name="kb", help="Build, inspect, verify and package a knowledge base."
)
app.add_typer(kb_app)


def parse_numbers(given: Sequence[str]) -> dict[str, int]:
    """Parse the settings of an index, whole numbers like `ef=200`."""
    settings = parse_settings(given)
    for name, value in settings.items():
        if type(value) is not int or value < 0:
            raise SapbertError(
                "E331",
                f"Expected the setting {name} as a whole number, but got {value!r}. "
                f"Write it like `{name}=200`; only `threshold` may be a fraction.",
            )
    return settings
