"""Names → unit vectors, with the encoder of a folder or of a run."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spacy_sapbert.encoder.huggingface import load_encoder, read_settings
from spacy_sapbert.encoder.pooling import POOLINGS

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
NAMES_PER_BATCH = 256


def autocast(device: str, precision: str) -> AbstractContextManager[Any]:
    """Return the context for a forward pass in "bf16", "fp16" or "float32"."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device, dtype=DTYPES[precision])


def embed_tokens(
    model: Any, embeddings: Tensor, mask: Tensor, *, pooling: str, precision: str
) -> Tensor:
    """Compute the vectors of padded names.

    Args:
        embeddings: Input embeddings of the tokens. Shape: (n, length, width).
        mask: 1 for a token, 0 for padding. Shape: (n, length).

    Returns:
        Unit-length rows in float32. Shape: (n, width).
    """
    with autocast(model.device.type, precision):
        states = model(inputs_embeds=embeddings, attention_mask=mask).last_hidden_state
    pooled = POOLINGS[pooling](states.float(), mask)
    return functional.normalize(pooled, dim=1)


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


def embed_names(encoder: str, names: Sequence[str]) -> np.ndarray:
    """Return the unit vectors of names with an encoder, a folder or hub id, float32."""
    how = read_settings(Path(encoder))
    tokenizer, model = load_encoder(encoder)
    texts = [name.lower() if how.lowercase else name for name in names]
    vectors = embed_texts(
        model, tokenizer, texts, pooling=how.pooling, max_length=how.max_length
    )
    array: np.ndarray = vectors.numpy()
    return array
