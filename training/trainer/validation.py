"""Accuracy of an encoder on gold mentions during training."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.evaluation.accuracy import Answer, combine_parts
from spacy_sapbert.evaluation.gold_mentions import (
    make_resolver,
    read_aliases,
)
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.formats.gold import GoldMention
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.dictionary import Dictionary, best_answers, read_dictionary
from training.trainer.embedding import embed_tokens
from training.trainer.settings import TrainingSettings

SETTINGS = EvaluationSettings(ks=(1,))
NAMES_PER_BATCH = 256


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
    dictionary = read_dictionary(
        read_concepts(files.concepts), lowercase=settings.encoder.how.lowercase
    )
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
    model: Any, tokenizer: Any, validation: Validation, settings: TrainingSettings
) -> float:
    """Compute Acc@1 by concepts on the gold mentions, with the expected tie order.

    The mentions are compared with all names, without a knowledge base. The encoder is
    in training mode before and after.
    """
    golds, dictionary, aliases = validation

    def embed(texts: Sequence[str]) -> Any:
        return embed_texts(
            model,
            tokenizer,
            texts,
            pooling=settings.encoder.how.pooling,
            max_length=settings.encoder.how.max_length,
            precision=settings.training.precision,
        )

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        # `fold` cases mentions like the names
        vectors = embed([dictionary.fold(mention) for mention in mentions])
        cosines = (vectors @ names.T).cpu().numpy()  # (mentions, names)
        return [
            best_answers(rows, scores, dictionary, aliases, k=1) for scores in cosines
        ]

    model.eval()
    names = embed(list(dictionary.names))
    rows = np.arange(len(names))
    answers = rank_mentions(rank, (gold.mention for gold in golds))
    model.train()
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
            return_tensors="pt",
        ).to(model.device)
        embeddings = model.get_input_embeddings()(inputs["input_ids"])
        mask = inputs["attention_mask"]
        vectors.append(
            embed_tokens(model, embeddings, mask, pooling=pooling, precision=precision)
        )
    return torch.cat(vectors)[torch.from_numpy(np.argsort(order)).to(model.device)]
