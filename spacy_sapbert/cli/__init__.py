"""`spacy sapbert …`, or `spacy-sapbert …`: thin commands over functions."""

from . import calibrate, concepts, explain, kb, link, local, regress, search  # noqa: F401
from .app import app

__all__ = ["app"]
