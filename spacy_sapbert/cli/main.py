"""`spacy sapbert …`, or `spacy-sapbert …`: the app with all its commands."""

from .app import app  # first: it sets the environment that torch is imported with

# isort: split
from . import (  # noqa: F401
    assemble,
    calibrate,
    concepts,
    convert,
    evaluate,
    explain,
    info,
    link,
    regress,
    stop_names,
    teach,
)
from .kb import build, edit, inspect, search, versions  # noqa: F401
from .linking import map, mcp, serve  # noqa: A004, F401

__all__ = ["app"]
