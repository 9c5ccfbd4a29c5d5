"""New adapters, and what is trained of an encoder that has one."""

from typing import Any

import torch
from torch import nn

from spacy_sapbert.encoder.adapters import make_adapter, place_adapter
from spacy_sapbert.errors import SapbertError, check_range

INITIAL_DEVIATION = 0.02
# They normalise the sum of the feed-forward block and its input.
ARCHITECTURES = ("bert", "camembert", "electra", "mpnet", "roberta", "xlm-roberta")


def add_adapter(model: Any, reduction: int) -> nn.ModuleDict:
    """Freeze an encoder and add a new adapter, which at first hardly changes it.

    The adapter, which is returned, becomes the attribute `sapbert_adapter` of the
    encoder. `reduction` is the width of the encoder divided by that of the bottlenecks:
    for BERT-BASE, 1 trains 13 % of the parameters, 16 trains 1 %.
    SOURCE: Pfeiffer et al. (2020), MAD-X; initial weights as BERT's.
    """
    kind = model.config.model_type
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise SapbertError(
            "E209",
            f"Expected an encoder of the architecture {known} for an adapter, but got "
            f"{kind}. Choose another base, or train all of its weights.",
        )
    if hasattr(model, "sapbert_adapter"):
        raise SapbertError(
            "E209",
            "Expected an encoder without an adapter, but it has one. Load the "
            "encoder that the adapter was trained in.",
        )
    width = model.config.hidden_size
    check_range("reduction", reduction, 1, width)
    with torch.device(model.device):
        adapter = make_adapter(model, width // reduction)
    for module in adapter.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
            nn.init.zeros_(module.bias)
    place_adapter(model, adapter)
    return adapter


def trainable_parameters(model: Any) -> list[nn.Parameter]:
    """Return the parameters of an encoder that are not frozen."""
    return [weights for weights in model.parameters() if weights.requires_grad]
