"""An encoder folder and names → vectors, without a knowledge base."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spacy_sapbert.encoder.huggingface import load_encoder, read_settings
from training.losses import miners as mining  # noqa: F401
from training.losses import multi_similarity as losses  # noqa: F401 (registers)
from training.losses import schedules  # noqa: F401
from training.trainer.config import read_config
from training.trainer.settings import TrainingSettings, make_settings
from training.trainer.validation import embed_texts


def open_settings(encoder: str) -> TrainingSettings:
    """Make the settings under which an encoder embeds names.

    encoder (str): Folder or hub id.
    RETURNS (TrainingSettings): As its folder says.
    """
    how = read_settings(Path(encoder))
    return make_settings(
        read_config(
            None,
            {
                "encoder.base": encoder,
                "encoder.pooling": how.pooling,
                "encoder.max_length": how.max_length,
                "encoder.lowercase": how.lowercase,
                "training.precision": "float32",
            },
        )
    )


def embed_names(encoder: str, names: Sequence[str]) -> np.ndarray:
    """Embed names as the encoder's folder says.

    encoder (str): Folder or hub id.
    names (Sequence[str]): The names.
    RETURNS (np.ndarray): Unit vectors in float32. Shape: (n, width).
    """
    settings = open_settings(encoder)
    tokenizer, model = load_encoder(encoder)
    texts = [name.lower() if settings.lowercase else name for name in names]
    vectors: np.ndarray = embed_texts(model, tokenizer, texts, settings).numpy()
    return vectors
