"""What a training run needs to go on where it stopped, written all or nothing."""

import json
from pathlib import Path
from typing import Any, Dict, Optional

import torch
from safetensors.torch import load_file, save_file

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.files import write_folder_atomically


def random_states() -> Dict[str, torch.Tensor]:
    """Take the state of every random generator that dropout draws from."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def write_checkpoint(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    step: int,
    settings: Dict[str, Any],
) -> None:
    """Save weights, optimiser, random states and position.

    folder (Path): Replaced as a whole.
    model (torch.nn.Module): The encoder.
    optimizer (torch.optim.Optimizer): Its optimiser.
    step (int): Steps done; the order of the batches follows from seed and step.
    settings (Dict[str, Any]): What the run was started with, plain JSON types.
    """
    state = optimizer.state_dict()["state"]
    moments = {
        f"{number}.{name}": tensor
        for number, entry in state.items()
        for name, tensor in entry.items()
    }
    with write_folder_atomically(folder) as part:
        save_file(dict(model.state_dict()), part / "model.safetensors")
        save_file(moments, part / "optimizer.safetensors")
        save_file(random_states(), part / "random.safetensors")
        text = json.dumps({"step": step, "settings": settings}, indent=2)
        (part / "state.json").write_text(text + "\n", "utf8")


def saved_settings(folder: Path) -> Dict[str, Any]:
    """Read what the run of a checkpoint was started with.

    folder (Path): The checkpoint.
    RETURNS (Dict[str, Any]): Its settings; none without a checkpoint.
    """
    path = folder / "state.json"
    return (
        dict(json.loads(path.read_text("utf8"))["settings"]) if path.is_file() else {}
    )


def read_checkpoint(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    settings: Dict[str, Any],
) -> Optional[int]:
    """Put a run back to where its checkpoint was written, if there is one.

    folder (Path): The checkpoint.
    model (torch.nn.Module): The encoder, already on its device.
    optimizer (torch.optim.Optimizer): Its optimiser.
    settings (Dict[str, Any]): Of this run; they must equal those of the checkpoint.
    RETURNS (Optional[int]): Steps done; None without a checkpoint.
    RAISES (SapbertError): If the checkpoint belongs to another run.
    """
    path = folder / "state.json"
    if not path.is_file():
        return None
    saved = json.loads(path.read_text("utf8"))
    differing = sorted(
        key
        for key in saved["settings"].keys() | settings.keys()
        if saved["settings"].get(key) != settings.get(key)
    )
    if differing:
        raise SapbertError(
            Errors.E606.format(path=folder, settings=", ".join(differing))
        )
    model.load_state_dict(load_file(folder / "model.safetensors"))
    moments: Dict[int, Dict[str, torch.Tensor]] = {}
    for key, tensor in load_file(folder / "optimizer.safetensors").items():
        number, name = key.split(".", 1)
        moments.setdefault(int(number), {})[name] = tensor
    state = optimizer.state_dict()
    optimizer.load_state_dict({**state, "state": moments})
    states = load_file(folder / "random.safetensors")
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
    return int(saved["step"])
