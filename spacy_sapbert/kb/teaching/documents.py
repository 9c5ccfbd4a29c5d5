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
    id (str): Its id in the file, which tells documents without a text apart.
    """

    source: str
    text: str
    mentions: list[AnnotatedMention]
    id: str = ""


@dataclass
class AnnotationCounts:
    """What was read.

    repeated (int): Documents that came twice, or were taught before with the same
        annotations.
    replaced (int): Documents that were taught before with other annotations, which no
        longer count.
    composites (int): Mentions of several concepts, which are not learned.
    without_concept (int): Mentions annotated with no concept.
    without_text (int): Mentions without a letter or digit.
    unknown (Counter[str]): Ids that the knowledge base lacks.
    """

    documents: int = 0
    mentions: int = 0
    repeated: int = 0
    replaced: int = 0
    composites: int = 0
    without_concept: int = 0
    without_text: int = 0
    unknown: Counter[str] = field(default_factory=Counter)


def hash_values(*values: str) -> str:
    """Return 32 hexadecimal digits, equal for equal values."""
    content = json.dumps(values, ensure_ascii=False).encode("utf8", "replace")
    return hashlib.sha256(content).hexdigest()[:32]


def describe_document(
    document: AnnotatedDocument, mentions: list[tuple[str, str]]
) -> TaughtDocument:
    """Return what a knowledge base keeps of a document; see `TaughtDocument`."""
    known_by = ("text", document.text) if document.text else ("id", document.id)
    own = known_by if document.text else (*known_by, document.source)
    return TaughtDocument(
        digest=hash_values(*own),
        note=hash_values(*known_by),
        source=document.source,
        mentions=mentions,
    )


def resolve_documents(
    documents: Iterable[AnnotatedDocument],
    find: Callable[[str], str | None],
    taught: Sequence[TaughtDocument],
) -> tuple[list[TaughtDocument], AnnotationCounts]:
    """Find the concepts of annotated documents, and replace older annotations of them.

    Documents of the same text, e.g. of two annotators, all count. Together they replace
    what was taught of this text before.

    find (Callable[[str], str | None]): Returns the concept with an id, if any.
    taught (Sequence[TaughtDocument]): Documents that were taught before.
    RETURNS (tuple[list[TaughtDocument], AnnotationCounts]): All documents that count
        now, in an order that does not depend on when they were taught.
    RAISES (SapbertError): If there is no mention, or nearly all ids are unknown.
    """
    counts = AnnotationCounts()
    found: dict[str, list[TaughtDocument]] = {}  # by digest
    known = 0
    for document in documents:
        counts.documents += 1
        mentions: list[tuple[str, str]] = []
        for mention in document.mentions:
            counts.mentions += 1
            if not has_text(mention.text):
                counts.without_text += 1
            elif len(mention.parts) > 1:
                counts.composites += 1
            elif not any(mention.parts):
                counts.without_concept += 1
                mentions.append((mention.text, ""))
            elif cui := next(filter(None, map(find, mention.parts[0])), None):
                known += 1
                mentions.append((mention.text, cui))
            else:
                counts.unknown[mention.parts[0][0]] += 1
        described = describe_document(document, mentions)
        same = found.setdefault(described.digest, [])
        if any(one.mentions == mentions for one in same):
            counts.repeated += 1
        else:
            same.append(described)
    unknown = sum(counts.unknown.values())
    if known < FEWEST_KNOWN * (known + unknown):
        example = next(iter(counts.unknown))[:40]
        raise SapbertError(Errors.E362.format(unknown=unknown, example=example))
    if not any(one.mentions for same in found.values() for one in same):
        raise SapbertError(Errors.E363.format(documents=counts.documents))
    before: dict[str, list[TaughtDocument]] = {}
    for one in taught:
        before.setdefault(one.digest, []).append(one)
    for digest in before.keys() & found.keys():
        if sort_documents(before[digest]) == sort_documents(found[digest]):
            counts.repeated += len(found[digest])
        else:
            counts.replaced += 1
    together = (before | found).values()
    return sort_documents(one for same in together for one in same), counts


def sort_documents(documents: Iterable[TaughtDocument]) -> list[TaughtDocument]:
    """Return the documents that have mentions, in an order of their content alone."""
    usable = (one for one in documents if one.mentions)
    return sorted(usable, key=lambda one: (one.digest, one.mentions, one.source))


def describe_sources(documents: Iterable[TaughtDocument]) -> list[TaughtFile]:
    """Return the number of documents and mentions of each source."""
    files: dict[str, TaughtFile] = {}
    for document in documents:
        name = document.source
        file = files.setdefault(name, TaughtFile(source=name, documents=0, mentions=0))
        file.documents += 1
        file.mentions += len(document.mentions)
    return list(files.values())
