"""Adapters: few trained weights inside an encoder whose own weights are frozen.

The adapter is the one of Pfeiffer with an invertible part: a bottleneck after each
feed-forward block, and a coupling block on the output of the embeddings. It has a
non-linearity, so it cannot be merged into the weights when it is saved, and linking
needs it too. Plain AutoModel reads the encoder without it.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import SapbertError, check_range

if TYPE_CHECKING:
    from torch import Tensor, nn

SETTINGS_FILE = "adapter.json"
WEIGHTS_FILE = "adapter.safetensors"
PREFIX = "sapbert_adapter."  # of its weights among those of the encoder
COUPLING_REDUCTION = 2


class SavedAdapter(BaseModel):
    """adapter.json.

    Attributes:
        base: Folder or hub id of the encoder; None = its weights are in the folder.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal[1]
    base: str | None
    reduction: Annotated[int, Field(ge=1)]


def make_adapter(model: Any, reduction: int) -> "nn.ModuleDict":
    """Build `layers`, a bottleneck each, and `coupling`, two nets, for an encoder.

    `reduction` is the width of the encoder divided by that of the bottlenecks.
    """
    from torch import nn

    config = model.config
    width = config.hidden_size
    check_range("reduction", reduction, 1, width)

    def net(inputs: int, inner: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(inputs, inner), nn.ReLU(), nn.Linear(inner, outputs)
        )

    inner = width // reduction
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


def place_adapter(model: Any, adapter: "nn.ModuleDict", reduction: int) -> None:
    """Freeze an encoder, and let hooks call an adapter in its forward pass."""
    model.requires_grad_(False)
    adapter.to(device=model.device, dtype=model.dtype).train(model.training)
    model.sapbert_adapter = adapter
    model.sapbert_adapter_reduction = reduction  # for `save_adapter`
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
    """Return whether a folder has one of the two files of an adapter."""
    return (folder / SETTINGS_FILE).exists() or (folder / WEIGHTS_FILE).exists()


def save_adapter(folder: Path, model: Any, *, base: str | None) -> None:
    """Write the adapter of an encoder, whose own weights are at `base`."""
    from safetensors.torch import save_file

    weights = model.sapbert_adapter.state_dict()
    save_file(weights, folder / WEIGHTS_FILE, {"format": "pt"})
    reduction = model.sapbert_adapter_reduction
    saved = SavedAdapter(format=1, base=base, reduction=reduction)
    (folder / SETTINGS_FILE).write_text(saved.model_dump_json(indent=2) + "\n", "utf8")


def read_adapter(folder: Path) -> SavedAdapter:
    path = folder / SETTINGS_FILE
    try:
        return SavedAdapter.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        reason = " ".join(str(error).split())
        raise SapbertError(
            "E203",
            f"{path}: Expected the description of an adapter, but: {reason}. Save or "
            "copy the adapter again, or update spacy-sapbert if a newer one made it.",
        ) from None


def attach_adapter(model: Any, folder: Path) -> None:
    """Add a saved adapter to the encoder that it was trained in."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    reduction = read_adapter(folder).reduction
    path = folder / WEIGHTS_FILE
    # No random initial weights: they come from the file.
    with torch.device("meta"):
        adapter = make_adapter(model, reduction)
    adapter.to_empty(device=model.device)
    try:
        adapter.load_state_dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise wrong_adapter(path=path, reason=f"{error}.") from error
    except RuntimeError as error:  # of torch: it names a hundred weights
        reason = "its weights have other names or shapes than this encoder needs."
        raise wrong_adapter(path=path, reason=reason) from error
    place_adapter(model, adapter, reduction)


def wrong_adapter(*, path: object, reason: object) -> SapbertError:
    return SapbertError(
        "E203",
        f"{path}: Expected the weights of an adapter, but: {reason} Copy the adapter "
        "again, or put it into the encoder that it was trained in.",
    )
