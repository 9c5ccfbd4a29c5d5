"""Pipelines without and with a linker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

# without components, for tests that do not change it
NLP = spacy.blank("en")


def make_nlp(kb: Path | str | None, **config: Any) -> Language:
    """Make a pipeline of a linker alone."""
    nlp = spacy.blank("en")
    known = {} if kb is None else {"kb": str(kb)}
    nlp.add_pipe("sapbert_linker", config={**known, **config})
    return nlp


def mark_words(*words: str, ids: Mapping[int, str] | None = None) -> Doc:
    """Make a Doc of words, each an entity; or those at some places, with ids."""
    doc = Doc(NLP.vocab, words=words)
    found = dict.fromkeys(range(len(words)), "") if ids is None else ids
    doc.ents = [Span(doc, n, n + 1, "X", kb_id=id) for n, id in found.items()]
    return doc
