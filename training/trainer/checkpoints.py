"""Checkpoints: the state of a training run, written atomically."""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from warnings import warn

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spacy_sapbert.encoder.safety import NOT_FINITE, find_bad_weight
from spacy_sapbert.system.writing import FolderKind, write_folder_atomically
from training.errors import Errors, SapbertError, Warnings

BEST_FILE = "best.safetensors"
STATE_FILE = "state.json"
CHECKPOINT_FILES = (
    STATE_FILE,
    BEST_FILE,
    "model.safetensors",
    "optimizer.safetensors",
    "random.safetensors",
)
CHECKPOINT_FOLDER = FolderKind(
    "a checkpoint", STATE_FILE, CHECKPOINT_FILES.__contains__
)


@dataclass(slots=True)
class Progress:
    """The position of a run.

    step (int): Steps done; the order of the batches follows from seed and step.
    best_step (int): Step of the best validation; 0 = none yet.
    best_accuracy (float): Its Acc@1, 0 to 1.
    waited (int): Number of validations since one was better than all before.
    """

    step: int = 0
    best_step: int = 0
    best_accuracy: float = 0.0
    waited: int = 0


def check_finite(model: torch.nn.Module, step: int) -> None:
    """Check that a step left finite weights.

    Its loss was finite, but its gradient may not have been. The next step would find a
    loss of NaN, and a checkpoint or an encoder of these weights would be of no use.

    step (int): Number of the step, from 1.
    RAISES (SapbertError): If a weight is not finite.
    """
    bad = find_bad_weight(model)
    if bad and bad[1] == NOT_FINITE:
        raise SapbertError(Errors.E623.format(weight=bad[0], step=step))


def write_checkpoint(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    *,
    progress: Progress,
    settings: dict[str, Any],
    random_states: list[Tensor],
) -> None:
    """Write weights, optimiser, scaler, random states and position.

    The weights of the best validation are written with the checkpoint of its step; the
    later checkpoints link to them.

    folder (Path): Replaced as a whole.
    settings (dict[str, Any]): The settings of the run, plain JSON types.
    random_states (list[Tensor]): States of the random generators of dropout, one for
        each process, uint8.
    """
    state = optimizer.state_dict()["state"]
    moments = {
        f"{number}.{name}": tensor
        for number, entry in state.items()
        for name, tensor in entry.items()
    }
    with write_folder_atomically(folder, CHECKPOINT_FOLDER) as part:
        save_file(dict(model.state_dict()), part / "model.safetensors")
        save_file(moments, part / "optimizer.safetensors")
        states = {str(rank): each for rank, each in enumerate(random_states)}
        save_file(states, part / "random.safetensors")
        if progress.best_step == progress.step and progress.step:
            link_file(part / "model.safetensors", part / BEST_FILE)
        elif progress.best_step:
            link_file(folder / BEST_FILE, part / BEST_FILE)
        data = {
            "progress": asdict(progress),
            "settings": settings,
            "scaler": scaler.state_dict(),
        }
        text = json.dumps(data, indent=2)
        (part / STATE_FILE).write_text(text + "\n", "utf8")


def link_file(source: Path, target: Path) -> None:
    """Make a hard link of a file that never changes, or copy it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of the run of a checkpoint; empty without a checkpoint."""
    path = folder / STATE_FILE
    data = json.loads(path.read_text("utf8")) if path.is_file() else {"settings": {}}
    return dict(data["settings"])


def can_resume(folder: Path, settings: dict[str, Any], *, force: bool) -> bool:
    """Return whether a folder has a checkpoint of a run.

    settings (dict[str, Any]): The settings of the run.
    force (bool): Ignore a checkpoint of other settings, with a warning.
    RAISES (SapbertError): If the checkpoint is of other settings.
    """
    path = folder / STATE_FILE
    if not path.is_file():
        return False
    data = json.loads(path.read_text("utf8"))
    saved = data["settings"]
    keys = sorted(saved.keys() | settings.keys())
    differing = [key for key in keys if saved.get(key) != settings.get(key)]
    if "progress" in data and not differing:
        return True
    names = {"path": folder, "settings": ", ".join(differing) or "format"}
    if not force:
        raise SapbertError(Errors.E606.format(**names))
    warn(Warnings.W625.format(**names), stacklevel=2)
    return False


def read_checkpoint(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
) -> Progress:
    """Restore weights, optimiser and scaler, and return the position.

    folder (Path): A checkpoint of this run: see `can_resume`.
    model (torch.nn.Module): The encoder, already on its device.
    """
    saved = json.loads((folder / STATE_FILE).read_text("utf8"))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in load_file(folder / "optimizer.safetensors").items():
        number, name = key.split(".", 1)
        moments.setdefault(int(number), {})[name] = tensor
    state = optimizer.state_dict()
    optimizer.load_state_dict({**state, "state": moments})
    if saved["scaler"]:
        scaler.load_state_dict(saved["scaler"])
    return Progress(**saved["progress"])


def read_random_state(folder: Path, rank: int) -> Tensor:
    """Read the random state of a process, uint8."""
    return load_file(folder / "random.safetensors")[str(rank)]


def read_best(folder: Path, model: torch.nn.Module) -> None:
    """Restore the weights of the best validation from the last checkpoint."""
    model.load_state_dict(load_file(folder / BEST_FILE))
