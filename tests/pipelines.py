"""Pipelines without and with a linker."""

from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

# without components, for tests that do not change it
NLP = spacy.blank("en")


def make_nlp(kb: Path | str | None, **config: Any) -> Language:
    """Make a pipeline of a linker alone."""
    nlp = spacy.blank("en")
    known = {} if kb is None else {"kb": str(kb)}
    nlp.add_pipe("sapbert_linker", config={**known, **config})
    return nlp
