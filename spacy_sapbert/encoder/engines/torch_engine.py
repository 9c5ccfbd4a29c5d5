"""Runs an encoder in PyTorch, where spaCy runs: on the CPU or the GPU."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Errors, SapbertError
from ..adapters import attach_adapter, has_adapter
from ..huggingface import EncoderSettings, check_encoder_name, find_base, find_tokenizer
from .registry import NameTokenizer

if TYPE_CHECKING:
    from torch import Tensor


def open_engine(
    source: str | Path, settings: EncoderSettings, precision: str
) -> "TorchEngine":
    """Load an encoder; see `engines.open_engine`.

    If the folder has an adapter, the encoder runs with it.

    SOURCE: spacy-transformers' TransformerModel: tokenizer, device, forward pass.
    """
    from spacy_transformers.layers import TransformerModel
    from transformers import AutoTokenizer
    from transformers.utils import logging

    folder = Path(source)
    check_encoder_name(str(source))
    base, tokens = find_base(str(source)), find_tokenizer(str(source))
    transformer = TransformerModel(
        base,
        get_spans=list,
        tokenizer_config={"trust_remote_code": False},
        transformer_config={"trust_remote_code": False},
    )
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        transformer.initialize()
        tokenizer = transformer.tokenizer
        if tokens != base:
            # TransformerModel loads both from one place.
            tokenizer = AutoTokenizer.from_pretrained(tokens, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise SapbertError(Errors.E203.format(name=source, reason=reason)) from error
    finally:
        logging.set_verbosity(verbosity)
    if not tokenizer.is_fast:
        raise SapbertError(Errors.E205.format(name=source))
    if has_adapter(folder):
        attach_adapter(transformer.transformer, folder)
    return TorchEngine(transformer, make_tokenizer(tokenizer, settings), precision)


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
        with torch.autocast(kind, torch.bfloat16) if fast else nullcontext():
            # The inner layer takes token ids; the outer one would tokenise again,
            # and truncate long names without their [SEP].
            states = self.transformer.layers[0].predict(batch).last_hidden_state
        found: Tensor = states.float()
        return found
