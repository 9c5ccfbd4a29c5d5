"""`python -m spacy_sapbert`, the same as `spacy-sapbert`."""

from .cli import app

app(prog_name="spacy-sapbert")
