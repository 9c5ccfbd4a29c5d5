"""How good an encoder is in the middle of its training: Acc@1 on gold mentions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spacy_sapbert.evaluation.accuracy import Answer, Ranker
from spacy_sapbert.evaluation.gold_mentions import GoldMention, read_aliases
from spacy_sapbert.evaluation.rankers import Dictionary, best_answers, read_dictionary
from spacy_sapbert.evaluation.score_mentions import (
    EvaluationSettings,
    rank_mentions,
    score_mentions,
    select_mentions,
)
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.trainer.settings import TrainingSettings
from training.trainer.step import embed_chunk

NAMES_AT_ONCE = 256
SETTINGS = EvaluationSettings(ks=(1,))


class Validation(NamedTuple):
    """What an encoder is tried on.

    golds (list[GoldMention]): The mentions.
    dictionary (Dictionary): What they are linked to.
    aliases (dict[str, str]): Ids that another one stands for.
    """

    golds: list[GoldMention]
    dictionary: Dictionary
    aliases: dict[str, str]


def read_validation(settings: TrainingSettings) -> Validation | None:
    """Read what an encoder is tried on.

    settings (TrainingSettings): The files.
    RETURNS (Validation | None): None if there are no mentions.
    RAISES (SapbertError): If a file is not usable.
    """
    files = settings.validation
    if files.mentions is None or files.concepts is None:
        return None
    golds, _ = select_mentions(files.mentions, SETTINGS)
    aliases = read_aliases(files.aliases) if files.aliases else {}
    dictionary = read_dictionary(
        read_concepts(files.concepts), lowercase=settings.lowercase
    )
    return Validation(golds, dictionary, aliases)


@torch.no_grad()
def embed_texts(
    model: Any, tokenizer: Any, texts: Sequence[str], settings: TrainingSettings
) -> Tensor:
    """Embed names, sorted by length.

    model (PreTrainedModel): The encoder, in evaluation mode.
    tokenizer (PreTrainedTokenizerBase): Its tokenizer.
    texts (Sequence[str]): The names, cased as the encoder wants them.
    settings (TrainingSettings): How it is run.
    RETURNS (Tensor): Unit-length rows in float32. Shape: (n, width).
    """
    vectors: list[Tensor] = []
    order = np.argsort([len(text) for text in texts], kind="stable")
    for start in range(0, len(order), NAMES_AT_ONCE):
        chosen = [texts[number] for number in order[start : start + NAMES_AT_ONCE]]
        inputs = tokenizer(
            chosen,
            truncation=True,
            max_length=settings.max_length,
            padding=True,
            return_tensors="pt",
        ).to(model.device)
        pieces = model.get_input_embeddings()(inputs["input_ids"])
        mask = inputs["attention_mask"]
        vectors.append(embed_chunk(model, pieces, mask, settings))
    return torch.cat(vectors)[torch.from_numpy(np.argsort(order)).to(model.device)]


def make_encoder_search(
    model: Any,
    tokenizer: Any,
    validation: Validation,
    settings: TrainingSettings,
    *,
    k: int = 1,
) -> Ranker:
    """Make a linker of an encoder, without a knowledge base, with exact search.

    model (PreTrainedModel): The encoder, in evaluation mode.
    tokenizer (PreTrainedTokenizerBase): Its tokenizer.
    validation (Validation): The dictionary, cased as the encoder is.
    settings (TrainingSettings): How it is run.
    k (int): Concepts for each mention; more where they tie.
    RETURNS (Ranker): Gives cosines.
    """
    dictionary = validation.dictionary
    names = embed_texts(model, tokenizer, list(dictionary.names), settings)
    rows = np.arange(len(names))

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        # mentions and names are cased alike
        texts = [dictionary.fold(mention) for mention in mentions]
        vectors = embed_texts(model, tokenizer, texts, settings)
        cosines = (vectors @ names.T).cpu().numpy()  # (mentions, names)
        return [
            best_answers(rows, scores, dictionary, validation.aliases, k=k)
            for scores in cosines
        ]

    return rank


def validate(
    model: Any, tokenizer: Any, validation: Validation, settings: TrainingSettings
) -> float:
    """Link the gold mentions with the encoder as it is.

    model (PreTrainedModel): The encoder; in training mode before and after.
    tokenizer (PreTrainedTokenizerBase): Its tokenizer.
    validation (Validation): What it is tried on.
    settings (TrainingSettings): How it is run.
    RETURNS (float): Acc@1 by concepts, ties counted with their probability, 0 to 1.
    """
    model.eval()
    search = make_encoder_search(model, tokenizer, validation, settings)
    answers = rank_mentions(search, (gold.mention for gold in validation.golds))
    model.train()
    dictionary, aliases = validation.dictionary, validation.aliases
    judged = score_mentions(
        validation.golds, answers, dictionary.lookup, aliases, SETTINGS
    )
    return float(judged["accuracy"]["all"]["concepts"]["acc@1"]["expected"])
