"""Annotated documents, with the ids that annotators gave to mentions."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import Errors, SapbertError
from ...linking.ranking import has_text
from ..edits.taught import TaughtDocument
from ..folder.records import TaughtFile

FEWEST_KNOWN = 0.05  # share of annotated ids that the knowledge base must have
MOST_LISTED = 10  # unknown ids in a report


class AnnotatedMention(NamedTuple):
    """A mention and the ids that are right for it.

    text (str): What the linker searches for: the long form of an abbreviation.
    parts (list[list[str]]): The ids of which one is right, for each part of a
        composite; empty = it has no concept.
    """

    text: str
    parts: list[list[str]]


class AnnotatedDocument(NamedTuple):
    """A document that people have annotated.

    source (str): Name of its file; "" = none.
    text (str): The text; may be empty.
    """

    source: str
    text: str
    mentions: list[AnnotatedMention]


@dataclass
class AnnotationCounts:
    """What was read.

    repeated (int): Documents that were taught before, or came twice.
    composites (int): Mentions of several concepts, which are not learned.
    without_concept (int): Mentions annotated with no concept.
    without_text (int): Mentions without a letter or digit.
    unknown (Counter[str]): Ids that the knowledge base lacks.
    """

    documents: int = 0
    mentions: int = 0
    repeated: int = 0
    composites: int = 0
    without_concept: int = 0
    without_text: int = 0
    unknown: Counter[str] = field(default_factory=Counter)


def document_digest(document: AnnotatedDocument) -> str:
    """Return 32 hexadecimal digits, equal for equal texts with equal annotations."""
    data = [document.text, sorted([m.text, m.parts] for m in document.mentions)]
    content = json.dumps(data, ensure_ascii=False).encode("utf8", "replace")
    return hashlib.sha256(content).hexdigest()[:32]


def resolve_documents(
    documents: Iterable[AnnotatedDocument],
    find: Callable[[str], str | None],
    taught: Sequence[TaughtDocument],
) -> tuple[list[TaughtDocument], AnnotationCounts]:
    """Find the concepts of annotated documents.

    find (Callable[[str], str | None]): Returns the concept with an id, if any.
    taught (Sequence[TaughtDocument]): Documents that were taught before.
    RETURNS (tuple[list[TaughtDocument], AnnotationCounts]): The new documents.
    RAISES (SapbertError): If there is no mention, or nearly all ids are unknown.
    """
    counts = AnnotationCounts()
    seen = {document.digest for document in taught}
    found: list[TaughtDocument] = []
    known = 0
    for document in documents:
        counts.documents += 1
        digest = document_digest(document)
        if digest in seen:
            counts.repeated += 1
            continue
        seen.add(digest)
        mentions: list[tuple[str, str]] = []
        for mention in document.mentions:
            counts.mentions += 1
            if not has_text(mention.text):
                counts.without_text += 1
            elif len(mention.parts) > 1:
                counts.composites += 1
            elif not mention.parts:
                counts.without_concept += 1
                mentions.append((mention.text, ""))
            elif cui := next(filter(None, map(find, mention.parts[0])), None):
                known += 1
                mentions.append((mention.text, cui))
            else:
                counts.unknown[mention.parts[0][0]] += 1
        if mentions:
            found.append(
                TaughtDocument(digest=digest, source=document.source, mentions=mentions)
            )
    unknown = sum(counts.unknown.values())
    if known < FEWEST_KNOWN * (known + unknown):
        example = next(iter(counts.unknown))[:40]
        raise SapbertError(Errors.E362.format(unknown=unknown, example=example))
    if not found and not counts.repeated:
        raise SapbertError(Errors.E363.format(documents=counts.documents))
    return found, counts


def describe_sources(documents: Iterable[TaughtDocument]) -> list[TaughtFile]:
    """Return the number of documents and mentions of each source."""
    files: dict[str, TaughtFile] = {}
    for document in documents:
        name = document.source
        file = files.setdefault(name, TaughtFile(source=name, documents=0, mentions=0))
        file.documents += 1
        file.mentions += len(document.mentions)
    return list(files.values())
