"""`spacy sapbert …`, or `spacy-sapbert …`: the app with all its commands."""

from .app import app  # first: it sets the environment that torch is imported with

# isort: split
from . import (  # noqa: A004, F401
    assemble,
    calibrate,
    concepts,
    convert,
    diff,
    evaluate,
    explain,
    fetch_encoder,
    info,
    link,
    map,
    mcp,
    regress,
    serve,
    stop_names,
    teach,
    update,
    verify,
)
from .kb import build, edit, search, show, versions  # noqa: F401
from .kb import info as kb_info  # noqa: F401

__all__ = ["app"]
