"""Annotated documents, settings of the linker, and the accuracy of its links."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sapbert.evaluation.accuracy import (
    SCORE_DIGITS,
    combine_parts,
    score_ranking,
)
from spacy_sapbert.evaluation.gold_mentions import (
    Resolve,
)
from spacy_sapbert.evaluation.score_mentions import no_gold_mentions
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.formats.gold_docs import read_docs

GOLD = "gold"  # the span group of gold mentions

Answers = Sequence[Sequence[tuple[str, float]]]  # ids and scores for each mention


class Corpus(NamedTuple):
    """Documents, the gold mention of each of their entities, and all mentions."""

    docs: list[Doc]
    golds: list[GoldMention]
    mentions: int  # also those inside of tokens or of others, which are no entities


def parse_config(values: Sequence[str]) -> dict[str, Any]:
    """Parse settings of the linker: `encoder.precision=bf16`, JSON or a text."""
    config: dict[str, Any] = {}
    for value in values:
        key, _, text = value.partition("=")
        try:
            config[key] = json.loads(text)
        except ValueError:
            config[key] = text
    nested: dict[str, Any] = spacy.util.dot_to_dict(config)
    return nested


def read_gold_docs(
    path: Path, nlp: Language, *, prefix: str = "", limit: int = 0
) -> Iterator[tuple[Doc, list[GoldMention]]]:
    """Yield annotated documents in PubTator's format, and their gold mentions.

    The mentions of a Doc are in the span group `GOLD`, in this order, and in its
    entities without those inside of others or of tokens.
    """
    with warnings.catch_warnings():  # of mentions that are no entities
        warnings.simplefilter("ignore", UserWarning)
        read = [d for _, d in read_docs(path, nlp, format="pubtator", spans_key=GOLD)]
    for doc in read[: limit or None]:
        group = doc.spans[GOLD]
        golds = []
        for span, ids in zip(group, group.attrs["ids"], strict=True):
            parts = [[c if ":" in c else prefix + c for c in part] for part in ids]
            golds.append(GoldMention(-1, -1, "", span.text, parts, 0))
        yield doc, golds


def read_corpus(
    path: Path, *, labels: Sequence[str] = (), prefix: str = "", limit: int = 0
) -> Corpus:
    """Read the annotated documents that have entities; no `labels` = all."""
    corpus, mentions = Corpus([], [], 0), 0
    nlp = spacy.blank("en")
    for doc, golds in read_gold_docs(path, nlp, prefix=prefix, limit=limit):
        spans = list(doc.spans[GOLD])
        mentions += sum(not labels or span.label_ in labels for span in spans)
        doc.set_ents([ent for ent in doc.ents if not labels or ent.label_ in labels])
        places = [(span.start, span.end, span.label_) for span in spans]
        by_place = dict(zip(places, golds, strict=True))
        if doc.ents:
            corpus.docs.append(doc)
            corpus.golds.extend(by_place[e.start, e.end, e.label_] for e in doc.ents)
    if not any(gold.parts for gold in corpus.golds):
        raise no_gold_mentions(path=path, mentions=mentions)
    return corpus._replace(mentions=mentions)


def score_links(
    golds: Sequence[GoldMention],
    answers: Answers,
    resolve: Resolve,
    aliases: dict[str, str],
) -> dict[str, float]:
    """Compute the accuracy of a side by concepts, of the mentions with an id."""
    strict, first, covered = [], [], []
    for gold, found in zip(golds, answers, strict=True):
        if gold.parts:
            parts = combine_parts(resolve(gold), "parts")
            ranking = [
                (round(score, SCORE_DIGITS), aliases.get(cui, cui))
                for cui, score in found
            ]
            strict.append(score_ranking(ranking, parts, 1)[-1])
            first.append(score_ranking(ranking[:1], parts, 1)[-1])
            covered.append(all(parts))
    return {
        "strict": float(np.mean(strict)),
        "answered": float(np.mean(first)),
        "linked": float(np.mean([bool(found) for found in answers])),
        "coverage": float(np.mean(covered)),
        "judged": len(strict),
    }
