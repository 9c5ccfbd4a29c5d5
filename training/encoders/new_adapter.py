"""New adapters, and what is trained of an encoder that has one."""

from typing import Any

import torch
from torch import nn

from spacy_sapbert.encoder.adapters import make_adapter, place_adapter

INITIAL_DEVIATION = 0.02


def add_adapter(model: Any, reduction: int) -> nn.ModuleDict:
    """Freeze an encoder and add a new adapter, which at first hardly changes it.

    The adapter becomes the attribute `sapbert_adapter` of the encoder.

    Returns:
        The adapter, with the weights that are trained.

    Raises:
        SapbertError: The encoder is of another architecture or narrower than the
            reduction, or has an adapter.

    Source:
        Pfeiffer et al. (2020), MAD-X; initial weights as BERT's.
    """
    with torch.device(model.device):
        adapter = make_adapter(model, reduction)
    for module in adapter.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
            nn.init.zeros_(module.bias)
    place_adapter(model, adapter, reduction)
    return adapter


def trainable_parameters(model: Any) -> list[nn.Parameter]:
    """Return the parameters of an encoder that are not frozen."""
    return [weights for weights in model.parameters() if weights.requires_grad]


def count_trainable(model: Any) -> int:
    """Return the number of trained values, for the model card."""
    return sum(weights.numel() for weights in trainable_parameters(model))
