"""`python -m spacy_sapbert`, the same as `spacy-sapbert`; project.yml types it."""

import os
import sys

from .cli.main import app
from .io.system import drop_quotes

if os.name == "nt":
    sys.argv = drop_quotes(sys.argv)
app(prog_name="spacy-sapbert")
