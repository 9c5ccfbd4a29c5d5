"""`spacy sapbert kb …`: the app of the commands for knowledge bases."""

from collections.abc import Sequence

from ...errors import SapbertError
from ..app import PanelGroup, app, make_app
from ..options import parse_settings


class KbGroup(PanelGroup):
    """The commands of knowledge bases."""

    pages = dict.fromkeys(
        (
            *("build", "info", "show", "search", "verify"),
            *("add", "remove", "set", "export-onnx"),
            *("versions", "use", "gc", "diff", "dump", "package"),
        ),
        "knowledge_base",
    )


kb_app = make_app(
    name="kb",
    cls=KbGroup,
    help="Build, inspect, verify and package a knowledge base.",
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
