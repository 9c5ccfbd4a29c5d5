"""HTML by Jinja2 templates, which stand beside the modules that fill them."""

from base64 import b64encode
from functools import cache
from hashlib import sha256

from jinja2 import (
    ChoiceLoader,
    Environment,
    PackageLoader,
    StrictUndefined,
    pass_context,
)
from jinja2.runtime import Context
from markupsafe import Markup


@cache
def load_templates(package: str) -> Environment:
    """Return the templates of a package; they may use those of this one."""
    loaders = [PackageLoader(name, "") for name in (package, __package__)]
    templates = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals["read_file"] = read_file
    templates.filters["hash"] = hash_source
    return templates


@pass_context
def read_file(context: Context, name: str) -> Markup:
    """Return a style sheet or script beside the templates, to stand in the page."""
    loader = context.environment.loader
    assert loader is not None
    return Markup(loader.get_source(context.environment, name)[0])


def hash_source(text: str) -> Markup:
    """Return the source of an inline element for a Content-Security-Policy."""
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")
