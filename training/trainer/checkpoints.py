"""Checkpoints: the state of a training run, written atomically."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4
from warnings import warn

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from spacy_sapbert.encoder.safety import NOT_FINITE, find_bad_weight
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.writing import FolderKind, link_file, write_folder_atomically
from training.trainer.distributed import Ranks
from training.trainer.step import TrainingState

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

    Attributes:
        step: Steps done; the order of the batches follows from seed and step.
        best_step: Step of the best validation; 0 = none yet.
        best_accuracy: Its Acc@1, 0 to 1.
        waited: Number of validations since one was better than all before.
        checkpoint_bytes: Of all checkpoints so far, without their small `state.json`
            and without files that a checkpoint has in common with the one before.
        run: Id of the run, for loggers.
    """

    step: int = 0
    best_step: int = 0
    best_accuracy: float = 0.0
    waited: int = 0
    checkpoint_bytes: int = 0
    run: str = field(default_factory=lambda: uuid4().hex[:8])

    def record_validation(self, accuracy: float) -> None:
        """Update the best validation.

        The last of equal ones counts, which has seen more pairs; so a validation that
        shows no difference keeps the weights of the end. It does not end the patience.
        """
        is_better = accuracy > self.best_accuracy or not self.best_step
        self.waited = 0 if is_better else self.waited + 1
        if is_better or accuracy == self.best_accuracy:
            self.best_step, self.best_accuracy = self.step, accuracy


def check_finite(model: torch.nn.Module, step: int) -> None:
    """Check that a step, from 1, left finite weights.

    Its loss was finite, but its gradient may not have been. The next step would find a
    loss of NaN, and a checkpoint or an encoder of these weights would be of no use.
    """
    bad = find_bad_weight(model)
    if bad and bad[1] == NOT_FINITE:
        raise SapbertError(
            "E607",
            f"Expected finite weights after step {step}, but {bad[0]} is not finite. "
            "The last checkpoint is kept. Lower "
            "`--training.optimizer.learning_rate`, or repeat the command to resume "
            "there.",
        )


def write_checkpoint(
    folder: Path,
    state: TrainingState,
    progress: Progress,
    *,
    best: dict[str, Tensor] | None,
    settings: dict[str, Any],
    random_states: list[Tensor],
) -> None:
    """Replace the folder by weights, optimiser, scaler, random states and position.

    Args:
        progress: Its `checkpoint_bytes` are increased by what is written.
        best: The weights of the best validation, if there was one since the last
            checkpoint; else this one links to those of the last.
        settings: The settings of the run, plain JSON types.
        random_states: One for each rank, uint8.
    """
    moments = {
        f"{number}.{name}": tensor
        for number, entry in state.optimizer.state_dict()["state"].items()
        for name, tensor in entry.items()
    }
    with write_folder_atomically(folder, CHECKPOINT_FOLDER) as part:
        save_file(dict(state.model.state_dict()), part / "model.safetensors")
        save_file(moments, part / "optimizer.safetensors")
        states = {str(rank): each for rank, each in enumerate(random_states)}
        save_file(states, part / "random.safetensors")
        if best is not None:
            save_file(best, part / BEST_FILE)
        elif progress.best_step:
            link_file(folder / BEST_FILE, part / BEST_FILE)
        files = [path.stat() for path in part.iterdir()]
        progress.checkpoint_bytes += sum(f.st_size for f in files if f.st_nlink == 1)
        data = {
            "progress": asdict(progress),
            "settings": settings,
            "scaler": state.scaler.state_dict(),
        }
        (part / STATE_FILE).write_text(json.dumps(data, indent=2) + "\n", "utf8")


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings of the run of a checkpoint; empty without a checkpoint."""
    path = folder / STATE_FILE
    return (
        dict(json.loads(path.read_text("utf8"))["settings"]) if path.is_file() else {}
    )


def can_resume(
    folder: Path, settings: dict[str, Any], free: tuple[str, ...], *, force: bool
) -> bool:
    """Return whether a folder has a checkpoint of the run with these settings.

    Args:
        free: How settings begin that may be others, with a warning.
        force: Ignore a checkpoint of other settings, with a warning.

    Raises:
        SapbertError: The checkpoint is of other settings.
    """
    if not (folder / STATE_FILE).is_file():
        return False
    saved = read_settings(folder)
    keys = sorted(saved.keys() | settings.keys())
    differing = [key for key in keys if saved.get(key) != settings.get(key)]
    fixed = [key for key in differing if not key.startswith(free)]
    if fixed and not force:
        raise SapbertError(
            "E560",
            f"Expected the checkpoint in {folder} to belong to this run, but it was "
            f"made with another {', '.join(fixed)}. Pass the same settings to "
            "continue. To start again, remove the checkpoint or pass `--force`.",
        )
    if differing:
        then = "starts at its first step and replaces the checkpoint"
        if not fixed:
            then = (
                "continues with it; its weights may differ in the last bits from those "
                "of an unbroken run"
            )
        warn(
            f"[W625] Expected the settings of the checkpoint in {folder}, but got "
            f"another {', '.join(fixed or differing)}. The run {then}.",
            stacklevel=2,
        )
    return not fixed


def read_checkpoint(folder: Path, state: TrainingState, ranks: Ranks) -> Progress:
    """Restore weights, optimiser, scaler and random state, and return the position."""
    model, _, optimizer, scaler = state
    saved = json.loads((folder / STATE_FILE).read_text("utf8"))
    model.load_state_dict(load_file(folder / "model.safetensors"))
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in load_file(folder / "optimizer.safetensors").items():
        number, name = key.split(".", 1)
        moments.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    if saved["scaler"]:
        scaler.load_state_dict(saved["scaler"])
    states = load_file(folder / "random.safetensors")
    (torch.cuda if ranks.is_gpu else torch).set_rng_state(states[str(ranks.rank)])
    return Progress(**saved["progress"])
