"""Annotated mentions that a knowledge base has learned from: taught.jsonl."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import SapbertError
from ...io.reading import read_lines
from ...io.writing import write_atomically
from ...linking.ranking import has_text
from ...linking.text import name_form
from ...vocabularies.concepts import ANNOTATED, Concept, clean_name

Text = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class TaughtDocument(BaseModel):
    """The mentions of one annotated document. Its text and their places are not kept.

    Attributes:
        digest: Of its text; of its id and source if it has no text. What is taught with
            an equal digest later replaces it.
        note: Of its text; of its id alone if it has no text. Documents with an equal
            one are in one fold, since two annotators may have read the same note.
        source: Name of the file, or "" for Docs.
        mentions: Texts that the linker searches for (the long forms of abbreviations),
            each with its concept; "" = it has none.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    digest: Digest
    note: Digest
    source: str
    mentions: list[tuple[Text, str]]


def write_taught(path: Path, documents: Iterable[TaughtDocument]) -> None:
    """Write taught.jsonl, one document a line."""
    with write_atomically(path) as file:
        for document in documents:
            line = json.dumps(document.model_dump(), ensure_ascii=False)
            file.write(line.encode("utf8", "replace") + b"\n")


def read_taught(path: Path) -> Iterator[TaughtDocument]:
    """Read taught.jsonl; the error of a bad line has its number."""
    for number, line in read_lines(path):
        try:
            yield TaughtDocument.model_validate_json(line)
        except ValidationError:
            raise SapbertError(
                "E361",
                f"Expected an annotated document in {path}, line {number}, but got "
                "something else. Run `spacy sapbert kb discard-edits`.",
            ) from None


def count_mentions(documents: Iterable[TaughtDocument]) -> Counter[tuple[str, str]]:
    """Count how often each normalised text was annotated with each concept."""
    return Counter(
        (name_form(text), cui)
        for document in documents
        for text, cui in document.mentions
    )


def taught_concepts(documents: Iterable[TaughtDocument]) -> dict[str, Concept]:
    """Return the annotated mentions as names of their concepts, by id.

    Of mentions that differ in case or blanks only, the first is the name.
    """
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for document in documents:
        for text, cui in document.mentions:
            if cui and has_text(text):
                names[cui].setdefault(name_form(text), clean_name(text))
    return {
        cui: Concept(cui, [*forms.values()], sources={ANNOTATED: [*range(len(forms))]})
        for cui, forms in names.items()
    }
