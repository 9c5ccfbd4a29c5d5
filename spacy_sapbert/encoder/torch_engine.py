"""Runs an encoder in PyTorch, where spaCy runs: on the CPU or the GPU."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Errors, SapbertError
from .engine import NameTokenizer
from .huggingface import EncoderSettings, load_encoder, load_model
from .sealed_tokenizer import load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor


def open_engine(
    source: str | Path, settings: EncoderSettings, precision: str, *, trusted: bool
) -> "TorchEngine":
    """Load an encoder; see `engine.open_engine`.

    If the folder has an adapter, the encoder runs with it.

    SOURCE: spacy-transformers' TransformerModel: device, forward pass.
    """
    from spacy_transformers.data_classes import HFObjects
    from spacy_transformers.layers import TransformerModel
    from thinc.api import get_torch_default_device
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        if trusted:
            tokenizer, encoder = load_encoder(str(source))
            if not tokenizer.is_fast:
                raise SapbertError(Errors.E205.format(name=source))
            names = make_tokenizer(tokenizer, settings)
        else:
            encoder = load_model(str(source), trusted=False)
            names = load_tokenizer(Path(source), settings.max_length)
    finally:
        logging.set_verbosity(verbosity)
    transformer = TransformerModel(str(source), get_spans=list)
    encoder = encoder.to(get_torch_default_device())
    transformer.attrs["set_transformer"](transformer, HFObjects(None, encoder, None))
    return TorchEngine(transformer, names, precision)


def make_tokenizer(tokenizer: Any, settings: EncoderSettings) -> NameTokenizer:
    """Return the name tokenizer of a tokenizer of transformers, which it changes."""
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(settings.max_length)
    backend.no_padding()
    unknown = tokenizer.unk_token_id
    return NameTokenizer(
        backend,
        frozenset(tokenizer.all_special_ids),
        -1 if unknown is None else unknown,
        tokenizer.pad_token_id or 0,
    )


class TorchEngine:
    """See `Engine`; the forward pass is spacy-transformers'."""

    def __init__(
        self, transformer: Any, tokenizer: NameTokenizer, precision: str
    ) -> None:
        self.transformer = transformer
        self.tokenizer = tokenizer
        self.precision = precision
        self.width: int = transformer.get_dim("nO")
        config = transformer.transformer.config
        self.positions: int = getattr(config, "max_position_embeddings", 0)
        embeddings = transformer.transformer.get_input_embeddings()
        self.vocabulary: int = embeddings.num_embeddings

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor":
        """See `Engine.states`."""
        import torch
        from spacy_transformers.data_classes import WordpieceBatch

        batch = WordpieceBatch(
            strings=[[] for _ in ids],
            input_ids=ids,
            attention_mask=mask,
            lengths=mask.sum(axis=1).tolist(),
            token_type_ids=None,
        )
        kind = self.transformer.transformer.device.type
        fast = self.precision == "bf16"
        autocast = torch.autocast(kind, torch.bfloat16) if fast else nullcontext()
        with torch.inference_mode(), autocast:
            # The inner layer takes token ids; the outer one would tokenise again,
            # and truncate long names without their [SEP].
            states = self.transformer.layers[0].predict(batch).last_hidden_state
            found: Tensor = states.float()
            return found
