"""`spacy sapbert …`, or `spacy-sapbert …`: the app with all its commands."""

from . import (  # noqa: F401
    concepts,
    edit_kb,
    kb,
    kb_related,
    kb_search,
    link,
)
from .app import app

__all__ = ["app"]
