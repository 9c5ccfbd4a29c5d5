"""BioSyn's preprocessing of the names of a vocabulary and of annotated mentions."""

import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import replace

from spacy_sapbert.formats.gold import GoldDocument, GoldMention
from spacy_sapbert.linking.schwartz_hearst import find_long_forms
from spacy_sapbert.vocabularies.concepts import Concept, change_names
from training.corpora.mention_text import expand_abbreviations, split_composite
from training.data.dictionary import read_dictionary

BETWEEN_WORDS = re.compile(rf"[\s{re.escape(string.punctuation)}]+")
Parts = list[list[str]]


def preprocess_name(name: str) -> str:
    """Return a name or mention in lower case, with blanks for ASCII punctuation."""
    return " ".join(filter(None, BETWEEN_WORDS.split(name.lower())))


def preprocess_concepts(concepts: Iterable[Concept]) -> Iterator[Concept]:
    """Yield each concept that has names left, with distinct names in order."""
    for concept in concepts:
        changed = replace(concept)
        change_names(changed, [*map(preprocess_name, concept.aliases)])
        if changed.aliases:
            yield changed


class KnownConcepts:
    """Looks up the ids and preprocessed names of a dictionary."""

    def __init__(self, concepts: Iterable[Concept]) -> None:
        self.dictionary = read_dictionary(preprocess_concepts(concepts))

    def by_id(self, cui: str) -> str | None:
        """Return the concept of an id or a retired id."""
        return self.dictionary.lookup(cui)

    def by_name(self, name: str) -> list[str]:
        """Return the concepts with a name."""
        row = self.dictionary.names.get(preprocess_name(name))
        return [] if row is None else self.dictionary.cuis[row]


def order_parts(names: list[str], parts: Parts, known: KnownConcepts) -> Parts:
    """Return the ids of each part of a composite, which may have another order.

    A name of a concept gets the ids of that concept; the other names get the remaining
    ids in order.
    """
    left = list(parts)
    found: list[list[str] | None] = []
    for name in names:
        named = known.by_name(name)
        own = (part for part in left if any(known.by_id(c) in named for c in part))
        found.append(next(own, None))
        if found[-1] is not None:
            left.remove(found[-1])
    return [left.pop(0) if part is None else part for part in found]


def split_span(span: GoldMention, known: KnownConcepts) -> list[GoldMention]:
    """Split a composite if it has as many parts as concepts.

    Each part is a mention with the offsets of the whole.
    """
    if len(span.parts) < 2:
        return [span]
    names = split_composite(span.mention, len(span.parts))
    if len(names) == 1:
        return [span]
    parts = order_parts(names, span.parts, known)
    return [
        span._replace(mention=name, parts=[part])
        for name, part in zip(names, parts, strict=True)
    ]


def preprocess_documents(
    documents: Iterable[GoldDocument], known: KnownConcepts
) -> Iterator[GoldDocument]:
    """Preprocess the mentions of a corpus; their offsets stay those of the text.

    Mentions of punctuation only and mentions without an id of the dictionary are
    dropped.

    Source:
        Sung et al. (2020).
    """
    for document in documents:
        long_forms = find_long_forms(document.text)
        spans: list[GoldMention] = []
        for span in document.mentions:
            mention = expand_abbreviations(span.mention, long_forms)
            parts = split_span(span._replace(mention=mention), known)
            spans += [
                part._replace(mention=preprocess_name(part.mention)) for part in parts
            ]
        kept = [
            span
            for span in spans
            if span.mention
            and span.parts
            and all(any(map(known.by_id, part)) for part in span.parts)
        ]
        yield document._replace(mentions=kept)
