"""`python -m spacy_sapbert`, the same as `spacy-sapbert`."""

from .cli.main import app

app(prog_name="spacy-sapbert")
