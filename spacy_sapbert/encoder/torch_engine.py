"""Runs an encoder of transformers in PyTorch, on the CPU or the GPU."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.plugins import require_torch
from .device import choose_device, memory_checked
from .huggingface import EncoderSettings, load_model
from .tokenizer import NameTokenizer, load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from .encoder import EncoderConfig


def open_engine(
    folder: Path, settings: EncoderSettings, config: "EncoderConfig"
) -> "TorchEngine":
    """Load an encoder, with its adapter if it has one; see `Encoder.open`."""
    require_torch(
        ", or `spacy sapbert kb export-onnx` on the knowledge base where they are "
        "installed"
    )
    model = load_model(folder)
    tokenizer = load_tokenizer(folder, settings.max_length)
    with memory_checked():
        model = model.to(choose_device(config.device))
    return TorchEngine(model, tokenizer, config.precision)


class TorchEngine:
    """See `Engine`. It runs on the device of its model."""

    pads, threads, names = True, 1, sys.maxsize

    def __init__(self, model: Any, tokenizer: NameTokenizer, precision: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.precision = precision
        self.positions: int = getattr(model.config, "max_position_embeddings", 0)
        self.vocabulary: int = model.get_input_embeddings().num_embeddings

    def states(self, ids: np.ndarray, mask: np.ndarray) -> "Tensor":
        """See `Engine.states`."""
        import torch

        device = self.model.device
        inputs = {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(mask).to(device),
        }
        fast = self.precision == "bf16"
        autocast = (
            torch.autocast(device.type, torch.bfloat16) if fast else nullcontext()
        )
        with memory_checked(), torch.inference_mode(), autocast:
            states: Tensor = self.model(**inputs).last_hidden_state.float()
            return states
