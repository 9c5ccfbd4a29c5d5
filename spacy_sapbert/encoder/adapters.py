"""Adapters: few trained weights inside an encoder whose own weights are frozen.

The adapter is the one of Pfeiffer with an invertible part: a bottleneck after each
feed-forward block, and a coupling block on the output of the embeddings. It has a
non-linearity, so it cannot be merged into the weights when it is saved, and linking
needs it too. Plain AutoModel reads the encoder without it.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SapbertError

if TYPE_CHECKING:
    from torch import Tensor, nn

WEIGHTS_FILE = "adapter.safetensors"
PREFIX = "sapbert_adapter."  # of its weights among those of the encoder
FIRST = "layers.0.0.weight"  # (width of the bottlenecks, width)
COUPLING_REDUCTION = 2


def make_adapter(model: Any, inner: int) -> "nn.ModuleDict":
    """Build `layers`, a bottleneck each, and `coupling`, two nets, for an encoder.

    `inner` is the width of the bottlenecks.
    """
    from torch import nn

    config = model.config
    width = config.hidden_size

    def net(inputs: int, inner: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(inputs, inner), nn.ReLU(), nn.Linear(inner, outputs)
        )

    layers = [net(width, inner, width) for _ in model.encoder.layer]
    # ELECTRA's embeddings are narrower than its layers.
    embedded = getattr(config, "embedding_size", width)
    left = embedded // 2
    right = embedded - left
    coupling = [
        net(right, right // COUPLING_REDUCTION, left),
        net(left, left // COUPLING_REDUCTION, right),
    ]
    return nn.ModuleDict(
        {"layers": nn.ModuleList(layers), "coupling": nn.ModuleList(coupling)}
    )


def place_adapter(model: Any, adapter: "nn.ModuleDict") -> None:
    """Freeze an encoder, and let hooks call an adapter in its forward pass."""
    model.requires_grad_(False)
    adapter.to(device=model.device, dtype=model.dtype).train(model.training)
    model.sapbert_adapter = adapter
    nets: Any = adapter["coupling"]
    bottlenecks: Any = adapter["layers"]
    model.embeddings.register_forward_hook(partial(run_coupling, nets))
    for layer, bottleneck in zip(model.encoder.layer, bottlenecks, strict=True):
        norm = layer.output.LayerNorm
        norm.register_forward_hook(partial(run_bottleneck, bottleneck))


def run_bottleneck(
    bottleneck: "nn.Module", norm: "nn.Module", args: tuple[Any, ...], normed: "Tensor"
) -> "Tensor":
    """Run a bottleneck and the norm again, as a hook: Pfeiffer et al. (2021).

    Its input is the normed states, its residual the states before the norm (`args`).
    """
    # `forward`, since calling the module would run this hook again.
    return norm.forward(args[0] + bottleneck(normed))


def run_coupling(
    nets: "nn.ModuleList", embeddings: "nn.Module", args: Any, states: "Tensor"
) -> "Tensor":
    """Run the additive coupling of Dinh et al. (2015), as a hook on the embeddings.

    The nets lead from the right half of the states, of shape (n, length, width), to the
    left one, and back.
    """
    import torch

    half = states.shape[-1] // 2
    left = states[..., :half] + nets[0](states[..., half:])
    right = states[..., half:] + nets[1](left)
    return torch.cat((left, right), dim=-1)


def has_adapter(folder: Path) -> bool:
    return (folder / WEIGHTS_FILE).exists()


def save_adapter(folder: Path, model: Any) -> None:
    """Write the adapter of an encoder, beside its own weights."""
    from safetensors.torch import save_file

    weights = model.sapbert_adapter.state_dict()
    save_file(weights, folder / WEIGHTS_FILE, {"format": "pt"})


def attach_adapter(model: Any, folder: Path) -> None:
    """Add a saved adapter to the encoder that it was trained in."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / WEIGHTS_FILE
    try:
        weights = load_file(path)
        inner = len(weights[FIRST])
        # No random initial weights: they come from the file.
        with torch.device("meta"):
            adapter = make_adapter(model, inner)
        adapter.to_empty(device=model.device)
        adapter.load_state_dict(weights)
    except (OSError, SafetensorError) as error:
        raise wrong_adapter(path, f"{error}.") from error
    except (KeyError, RuntimeError, TypeError) as error:  # torch names a hundred
        reason = "its weights have other names or shapes than this encoder needs."
        raise wrong_adapter(path, reason) from error
    place_adapter(model, adapter)


def wrong_adapter(path: Path, reason: str) -> SapbertError:
    return SapbertError(
        "E203",
        f"{path}: Expected the weights of an adapter, but: {reason} Copy the adapter "
        "again, or put it into the encoder that it was trained in.",
    )
