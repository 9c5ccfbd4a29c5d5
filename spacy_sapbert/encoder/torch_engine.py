"""Runs an encoder in PyTorch, where spaCy runs: on the CPU or the GPU."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .huggingface import EncoderSettings, load_encoder, load_model
from .tokenizer import NameTokenizer, load_tokenizer, make_tokenizer, no_fast_tokenizer

if TYPE_CHECKING:
    from torch import Tensor


def open_engine(
    source: str | Path, settings: EncoderSettings, precision: str, *, trusted: bool
) -> "TorchEngine":
    """Load an encoder, with its adapter if it has one; see `Encoder.open`."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        if trusted:
            tokenizer, model = load_encoder(str(source))
            if not tokenizer.is_fast:
                raise no_fast_tokenizer(name=source)
            names = make_tokenizer(
                tokenizer.backend_tokenizer,
                tokenizer.all_special_ids,
                tokenizer.pad_token_id,
                settings.max_length,
            )
        else:
            model = load_model(str(source), trusted=False)
            names = load_tokenizer(Path(source), settings.max_length)
    finally:
        logging.set_verbosity(verbosity)
    return TorchEngine(model, names, precision)


class TorchEngine:
    """See `Engine`; device and forward pass are those of spacy-transformers."""

    def __init__(self, model: Any, tokenizer: NameTokenizer, precision: str) -> None:
        from spacy_transformers.data_classes import HFObjects
        from spacy_transformers.layers import TransformerModel
        from thinc.api import get_torch_default_device

        self.model = model.to(get_torch_default_device())
        transformer = TransformerModel(model.name_or_path, get_spans=list)
        transformer.attrs["set_transformer"](
            transformer, HFObjects(None, self.model, None)
        )
        # This layer takes token ids; the outer one would tokenise again, and truncate
        # long names without their [SEP].
        self.layer = transformer.layers[0]
        self.tokenizer = tokenizer
        self.precision = precision
        self.positions: int = getattr(model.config, "max_position_embeddings", 0)
        self.vocabulary: int = model.get_input_embeddings().num_embeddings

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
        fast = self.precision == "bf16"
        kind = self.model.device.type
        autocast = torch.autocast(kind, torch.bfloat16) if fast else nullcontext()
        with torch.inference_mode(), autocast:
            states: Tensor = self.layer.predict(batch).last_hidden_state.float()
            return states
