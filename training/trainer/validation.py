"""Accuracy of an encoder on gold mentions during training."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import Answer, combine_parts, trim_answers
from spacy_sapbert.evaluation.gold_mentions import make_resolver, read_aliases
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.linking.candidates import SORT_DIGITS
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.dictionary import Dictionary, read_dictionary
from training.data.sample import sample_concepts
from training.trainer.distributed import SINGLE, Ranks, gather_vectors
from training.trainer.embedding import autocast
from training.trainer.settings import TrainingSettings

SETTINGS = EvaluationSettings(ks=(1,))
NAMES_PER_BATCH = 256
NAMES_PER_BLOCK = 16_384
MENTIONS_PER_BLOCK = 1_024
# Names of a mention that are kept; more that tie with the first do not count.
NEAREST = 128


class Validation(NamedTuple):
    """Gold mentions, and the dictionary that they are linked to."""

    golds: list[GoldMention]
    dictionary: Dictionary
    aliases: dict[str, str]


def read_validation(settings: TrainingSettings) -> Validation | None:
    """Read the files of the section `validation`; None if no mentions are set.

    Raises:
        SapbertError: No mention has a concept of the dictionary: all accuracies would
            be zero, and none the best.
    """
    files = settings.validation
    if files.mentions is None or files.concepts is None:
        return None
    golds, _ = select_mentions(files.mentions, SETTINGS)
    aliases = read_aliases(files.aliases) if files.aliases else {}
    concepts = sample_concepts(
        read_concepts(files.concepts), golds, aliases, files.sample
    )
    dictionary = read_dictionary(concepts, lowercase=settings.encoder.how.lowercase)
    resolve = make_resolver(dictionary.lookup, aliases)
    if not any(all(combine_parts(resolve(g), SETTINGS.composite)) for g in golds):
        raise SapbertError(
            "E106",
            f"Expected gold mentions in {files.mentions} with concepts of "
            f"{files.concepts}, but none of {len(golds):,} has one that is there. "
            "Correct `validation.concepts`, write ids as it has them, without a "
            "prefix such as `MESH:`, or name `validation.aliases`.",
        )
    return Validation(golds, dictionary, aliases)


def validate(
    model: Any,
    tokenizer: Any,
    validation: Validation,
    settings: TrainingSettings,
    ranks: Ranks = SINGLE,
) -> float:
    """Compute Acc@1 by concepts on the gold mentions, with the expected tie order.

    Each rank compares the mentions with its share of the names, without a knowledge
    base, and the result is that of all names. Memory has the cosines of
    `MENTIONS_PER_BLOCK` mentions and `NAMES_PER_BLOCK` names. The encoder is in
    training mode before and after.
    """
    golds, dictionary, aliases = validation
    texts = list(dict.fromkeys(gold.mention for gold in golds))
    names = list(dictionary.names)[ranks.rank :: ranks.world_size]
    embed = partial(
        embed_texts,
        model,
        tokenizer,
        pooling=settings.encoder.how.pooling,
        max_length=settings.encoder.how.max_length,
        precision=settings.training.precision,
    )
    model.eval()
    # `fold` cases mentions like the names
    mentions = embed([dictionary.fold(text) for text in texts])
    scores = mentions.new_full((len(texts), NEAREST), -torch.inf)
    rows = torch.zeros_like(scores, dtype=torch.int64)
    for start in range(0, len(names), NAMES_PER_BLOCK):
        block = embed(names[start : start + NAMES_PER_BLOCK])
        numbers = (torch.arange(len(block)) + start) * ranks.world_size + ranks.rank
        for first in range(0, len(texts), MENTIONS_PER_BLOCK):
            part = slice(first, first + MENTIONS_PER_BLOCK)
            cosines = torch.cat((scores[part], mentions[part] @ block.T), dim=1)
            own = numbers.to(rows.device).expand(len(cosines), -1)
            known = torch.cat((rows[part], own), dim=1)
            scores[part], places = cosines.topk(NEAREST, dim=1)
            rows[part] = known.gather(1, places)
    model.train()
    sizes = [len(texts)] * ranks.world_size
    # (mentions, NEAREST of each rank)
    scores, rows = (
        torch.cat(gather_vectors(each, sizes, ranks).split(sizes), dim=1).cpu()
        for each in (scores, rows)
    )
    answers = {}
    for text, score, row in zip(texts, scores, rows, strict=True):
        found = score.isfinite()
        own_rows: list[int] = row[found].tolist()
        some = [
            Answer(number, aliases.get(cui, cui), round(cosine, SORT_DIGITS))
            for number, cosine in zip(own_rows, score[found].tolist(), strict=True)
            for cui in dictionary.cuis[number]
        ]
        some.sort(key=lambda answer: -answer.score)
        answers[text] = trim_answers(some, 1)
    scored = score_mentions(golds, answers, dictionary.lookup, aliases, SETTINGS)
    return float(scored["accuracy"]["all"]["concepts"]["acc@1"]["expected"])


@torch.no_grad()
def embed_texts(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    pooling: str,
    max_length: int,
    precision: str = "float32",
) -> Tensor:
    """Compute the vectors of texts, in batches of similar length.

    Args:
        model: The encoder, in evaluation mode.
        texts: Lower-cased if the encoder needs it.

    Returns:
        Unit-length rows in float32. Shape: (n, width).
    """
    vectors: list[Tensor] = []
    order = np.argsort([len(text) for text in texts], kind="stable")
    for start in range(0, len(order), NAMES_PER_BATCH):
        inputs = tokenizer(
            [texts[number] for number in order[start : start + NAMES_PER_BATCH]],
            truncation=True,
            max_length=max_length,
            padding=True,
            return_token_type_ids=False,
            return_tensors="pt",
        ).to(model.device)
        with autocast(model.device.type, precision):
            states = model(**inputs).last_hidden_state.float()
        pooled = POOLINGS[pooling](states, inputs["attention_mask"])
        vectors.append(functional.normalize(pooled, dim=1))
    return torch.cat(vectors)[torch.from_numpy(np.argsort(order)).to(model.device)]
