"""Adds the commands to spaCy's command line, as the `spacy_cli` entry point."""

from spacy.cli._util import app as spacy_app

from .main import app

spacy_app.add_typer(app, name="sapbert")
