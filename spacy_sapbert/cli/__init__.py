"""`spacy sapbert …`, or `spacy-sapbert …`: thin commands over functions."""

from . import (  # noqa: F401
    calibrate,
    concepts,
    explain,
    kb,
    link,
    local,
    regress,
    related,
    search,
)
from .app import app

__all__ = ["app"]
