"""Annotated documents and the settings of a linker, as benchmarks read them."""

import json
import random
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.tokens import Doc, Span

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import SCORE_DIGITS, Answer
from spacy_sapbert.evaluation.gold_mentions import GoldMention, Lookup
from spacy_sapbert.evaluation.score_mentions import EvaluationSettings, score_mentions
from spacy_sapbert.formats.registry import read_docs
from training.corpora.registry import change_prefix

GOLD = "gold"  # the span group of the mentions


class Corpus(NamedTuple):
    """Documents whose entities are gold mentions.

    golds (list[list[GoldMention]]): Of each entity of each document.
    mentions (int): All mentions, also those inside of tokens or of other mentions,
        which are no entities.
    """

    docs: list[Doc]
    golds: list[list[GoldMention]]
    mentions: int


def read_golds(doc: Doc, prefix: str) -> list[GoldMention]:
    """Return the gold mentions of a Doc in the order of its span group."""
    group = doc.spans[GOLD]
    return [
        GoldMention(
            0,
            "",
            span.text,
            [[change_prefix(c, prefix=prefix, drop_prefix="") for c in p] for p in ids],
        )
        for span, ids in zip(group, group.attrs["ids"], strict=True)
    ]


def read_corpus(
    path: Path,
    *,
    format: str = "pubtator",
    labels: Sequence[str] = (),
    prefix: str = "",
    limit: int = 0,
) -> Corpus:
    """Read the annotated documents that have entities.

    labels (Sequence[str]): Labels of the mentions to use; none = all.
    prefix (str): Added to ids without a colon.
    limit (int): First documents; 0 = all.
    RAISES (SapbertError): If no mention with an id is left, or there is no second
        document: the first one only warms up.
    """
    with warnings.catch_warnings():  # `Corpus.mentions` counts what is no entity
        warnings.simplefilter("ignore", UserWarning)
        read = [d for _, d in read_docs(path, spacy.blank("en"), format=format)]

    def key(span: Span) -> Any:
        return span.start, span.end, span.label_

    docs: list[Doc] = []
    golds: list[list[GoldMention]] = []
    mentions = 0
    for doc in read[: limit or None]:
        mentions += sum(not labels or s.label_ in labels for s in doc.spans[GOLD])
        doc.set_ents([ent for ent in doc.ents if not labels or ent.label_ in labels])
        by_key = {
            key(span): gold
            for span, gold in zip(doc.spans[GOLD], read_golds(doc, prefix), strict=True)
        }
        if doc.ents:
            docs.append(doc)
            golds.append([by_key[key(ent)] for ent in doc.ents])
    if not any(gold.parts for own in golds for gold in own):
        raise SapbertError(Errors.E708.format(path=path, mentions=mentions))
    if len(docs) < 2:
        raise SapbertError(Errors.E734.format(path=path))
    return Corpus(docs, golds, mentions)


def describe_doc(tokens: Any, entities: Iterable[Span]) -> dict[str, Any]:
    """Return tokens and entities of a Doc or Span as JSON can hold them."""
    first = tokens[0].i
    return {
        "words": [token.text for token in tokens],
        "spaces": [bool(token.whitespace_) for token in tokens],
        "entities": [[e.start - first, e.end - first, e.label_] for e in entities],
    }


def choose_singles(docs: Sequence[Doc], count: int, seed: int = 0) -> list[Any]:
    """Return random mentions with distinct texts, each as a document of its own."""
    distinct = {ent.text: ent for doc in docs for ent in doc.ents}
    texts = random.Random(seed).sample(list(distinct), min(count, len(distinct)))
    return [describe_doc(distinct[text], [distinct[text]]) for text in texts]


def parse_config(values: Sequence[str]) -> dict[str, Any]:
    """Parse settings of the linker.

    values (Sequence[str]): Each `KEY=VALUE`, like `encoder.precision=bf16`, with JSON
        or a text as the value.
    RAISES (SapbertError): If one has another form, or a key is a section too.
    """
    config: dict[str, Any] = {}
    for value in values:
        key, equals, text = value.partition("=")
        *sections, name = key.split(".")
        place: Any = config
        for section in sections:
            place = place.setdefault(section, {}) if isinstance(place, dict) else None
        valid = isinstance(place, dict) and not isinstance(place.get(name), dict)
        if not equals or not name or not valid:
            raise SapbertError(Errors.E732.format(setting="--config", value=value))
        try:
            place[name] = json.loads(text)
        except ValueError:
            place[name] = text
    return config


def rank_answers(
    found: Sequence[tuple[str, float]], aliases: dict[str, str], *, ties: bool
) -> list[Answer]:
    """Return answers with their rank as the score, as both sides score differently.

    ties (bool): Equal scores get one rank; else the order counts.
    """
    answers: list[Answer] = []
    rank, last = 0, None
    for place, (cui, score) in enumerate(found):
        rounded = round(score, SCORE_DIGITS)
        rank += not ties or rounded != last
        last = rounded
        answers.append(Answer(place, aliases.get(cui, cui), -float(rank)))
    return answers


def score_links(
    corpus: Corpus,
    answers: Sequence[Sequence[Any]],
    lookup: Lookup,
    aliases: dict[str, str],
) -> dict[str, Any]:
    """Compute the accuracy of a side by concepts.

    answers (Sequence[Sequence[Any]]): To each entity of each document.
    """
    # Keyed by number, because the answers to one text may differ between documents.
    every = [gold for doc in corpus.golds for gold in doc]
    golds = [gold._replace(mention=str(n)) for n, gold in enumerate(every)]
    flat = [found for doc in answers for found in doc]
    settings = EvaluationSettings(ks=(1, 5))
    strict, first = (
        score_mentions(
            [gold for gold in golds if gold.parts],
            {
                gold.mention: rank_answers(found, aliases, ties=ties)
                for gold, found in zip(golds, flat, strict=True)
            },
            lookup,
            aliases,
            settings,
        )
        for ties in (True, False)
    )
    return {
        "strict": strict["accuracy"]["all"]["concepts"]["acc@1"]["strict"],
        "answered": first["accuracy"]["all"]["concepts"]["acc@1"]["strict"],
        "linked": float(np.mean([bool(found) for found in flat])),
        "coverage": strict["coverage"],
        "judged": strict["judged"],
    }
