"""What both sides of `benchmarks.linking` take: documents, dictionary, settings."""

import json
import random
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.tokens import Doc, Span

from benchmarks.option_judging import GOLD, read_golds
from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.gold_mentions import GoldMention
from spacy_sapbert.formats.registry import read_docs
from spacy_sapbert.system.writing import write_atomically
from spacy_sapbert.vocabularies.concepts import Concept


class Corpus(NamedTuple):
    """Documents whose entities are gold mentions.

    docs (list[Doc]): The documents.
    golds (list[list[GoldMention]]): What the entities of each mean.
    mentions (int): How many the corpus has, those included that are no entities since
        they are inside of tokens or of other mentions.
    """

    docs: list[Doc]
    golds: list[list[GoldMention]]
    mentions: int


def read_corpus(
    path: Path,
    *,
    format: str = "pubtator",
    labels: Sequence[str] = (),
    prefix: str = "",
    limit: int = 0,
) -> Corpus:
    """Read annotated documents.

    path (Path): The file.
    format (str): A key of `formats.READERS`.
    labels (Sequence[str]): Mentions of other types are left out; none = all are taken.
    prefix (str): Put before ids without a colon.
    limit (int): First documents; 0 = all.
    RETURNS (Corpus): Those documents that have entities.
    RAISES (SapbertError): If the file is not usable, no mention with an id is left, or
        there is no second document: the first one only warms up.
    """
    with warnings.catch_warnings():  # `Corpus.mentions` tells of it
        warnings.simplefilter("ignore", UserWarning)
        read = [d for _, d in read_docs(path, spacy.blank("en"), format=format)]
    docs: list[Doc] = []
    golds: list[list[GoldMention]] = []
    mentions = 0
    for doc in read[: limit or None]:
        wanted = [s for s in doc.spans[GOLD] if not labels or s.label_ in labels]
        mentions += len(wanted)
        doc.set_ents([ent for ent in doc.ents if not labels or ent.label_ in labels])
        meant = {
            span_key(span): gold
            for span, gold in zip(doc.spans[GOLD], read_golds(doc, prefix), strict=True)
        }
        if doc.ents:
            docs.append(doc)
            golds.append([meant[span_key(ent)] for ent in doc.ents])
    if not any(gold.parts for own in golds for gold in own):
        raise SapbertError(Errors.E708.format(path=path, mentions=mentions))
    if len(docs) < 2:
        raise SapbertError(Errors.E734.format(path=path))
    return Corpus(docs, golds, mentions)


def span_key(span: Span) -> Any:
    """Return what tells a mention from the others of its document."""
    return span.start, span.end, span.label_


def describe_doc(tokens: Any, entities: Iterable[Span]) -> dict[str, Any]:
    """Write a document down; see `linking_measure.make_docs`.

    tokens (Doc | Span): All of it.
    entities (Iterable[Span]): Those of its entities that count.
    RETURNS (dict[str, Any]): Plain JSON types.
    """
    first = tokens[0].i
    return {
        "words": [token.text for token in tokens],
        "spaces": [bool(token.whitespace_) for token in tokens],
        "entities": [[e.start - first, e.end - first, e.label_] for e in entities],
    }


def choose_singles(docs: Sequence[Doc], count: int, seed: int = 0) -> list[Any]:
    """Draw mentions, each a document of its own.

    docs (Sequence[Doc]): Where they are from.
    count (int): Of distinct texts, as far as there are so many.
    seed (int): Another one draws others.
    RETURNS (list[Any]): From `describe_doc`.
    """
    distinct = {ent.text: ent for doc in docs for ent in doc.ents}
    drawn = random.Random(seed).sample(list(distinct), min(count, len(distinct)))
    return [describe_doc(distinct[text], [distinct[text]]) for text in drawn]


def write_entities(path: Path, concepts: Iterable[Concept]) -> None:
    """Write concepts as scispaCy reads a knowledge base.

    path (Path): The file: JSONL of its `Entity`.
    concepts (Iterable[Concept]): The concepts.
    SOURCE: scispacy.linking_utils.Entity.
    """
    with write_atomically(path) as file:
        for concept in concepts:
            entity = {
                "concept_id": concept.cui,
                "canonical_name": concept.name,
                "aliases": concept.aliases[1:],
                "types": concept.types,
                "definition": concept.definition,
            }
            file.write(json.dumps(entity, ensure_ascii=False).encode() + b"\n")


def parse_config(values: Sequence[str]) -> dict[str, Any]:
    """Read settings of the linker from the command line.

    values (Sequence[str]): Each `KEY=VALUE`; dots in the key lead into sections, as in
        `encoder.precision=bf16`. What is no JSON is a text.
    RETURNS (dict[str, Any]): For `nlp.add_pipe(…, config=…)`.
    RAISES (SapbertError): If one has another form, or a key is a section too.
    """
    config: dict[str, Any] = {}
    for value in values:
        key, equals, text = value.partition("=")
        *sections, name = key.split(".")
        place: Any = config
        for section in sections:
            place = place.setdefault(section, {}) if isinstance(place, dict) else None
        fine = isinstance(place, dict) and not isinstance(place.get(name), dict)
        if not equals or not name or not fine:
            raise SapbertError(Errors.E732.format(setting="--config", value=value))
        try:
            place[name] = json.loads(text)
        except ValueError:
            place[name] = text
    return config
