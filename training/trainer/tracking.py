"""Trackers of a run besides training.jsonl: TensorBoard, Weights & Biases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from training.errors import Errors, SapbertError

Tracker = Callable[[dict[str, Any]], None]  # one line of training.jsonl


def make_tracker(name: str | None, folder: Path, settings: dict[str, Any]) -> Tracker:
    """Build a tracker, which is called with each entry of the log.

    name (str | None): "tensorboard", "wandb", or None for no tracker.
    folder (Path): Folder for TensorBoard's files.
    """
    if name is None:
        return lambda entry: None
    makers = {"tensorboard": make_tensorboard, "wandb": make_wandb}
    try:
        return makers[name](folder, settings)
    except ImportError as error:
        raise SapbertError(
            Errors.E618.format(tracker=name, reason=error, package=name)
        ) from None


def make_tensorboard(folder: Path, settings: dict[str, Any]) -> Tracker:
    """Build a tracker that writes TensorBoard's event files."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))
    writer.add_text("settings", "\n".join(f"{k}: {v}" for k, v in settings.items()))

    def track(entry: dict[str, Any]) -> None:
        for key, value in entry.items():
            if key != "step":
                writer.add_scalar(key, value, entry["step"])
        writer.flush()

    return track


def make_wandb(folder: Path, settings: dict[str, Any]) -> Tracker:
    """Build a tracker that sends the log to Weights & Biases."""
    import wandb

    run = wandb.init(config=settings, dir=str(folder.parent))
    return lambda entry: run.log(entry, step=entry["step"])
