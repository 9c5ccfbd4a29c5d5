"""`spacy sapbert …`, or `spacy-sapbert …`: the app with all its commands."""

from . import (  # noqa: F401
    assemble,
    calibrate,
    concepts,
    convert,
    edit_kb,
    evaluate,
    explain,
    kb,
    kb_search,
    link,
    regress,
    teach,
)
from .app import app
from .linking import map  # noqa: A004, F401

__all__ = ["app"]
