"""Trackers of a run besides training.jsonl: TensorBoard, Weights & Biases."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacy_sapbert.errors import SapbertError

Track = Callable[[dict[str, Any]], None]  # gets each entry of training.jsonl


@contextmanager
def open_tracker(
    name: str | None, folder: Path, settings: dict[str, Any], *, step: int
) -> Iterator[Track]:
    """Open "tensorboard", "wandb", or no tracker, after so many steps of the run.

    The folder has the files of TensorBoard, or those by which W&B resumes a run.
    """
    try:
        if name == "tensorboard":
            from torch.utils.tensorboard import SummaryWriter
        elif name == "wandb":
            import wandb
    except ImportError as error:
        raise SapbertError(
            "E521",
            f"Expected the tracker {name!r} to be installed, but it is not: {error}. "
            f"Run `pip install {name}`, or set `training.tracker` to null.",
        ) from None
    if name is None:
        yield lambda entry: None
    elif name == "tensorboard":
        # The steps after the last checkpoint come again.
        with SummaryWriter(str(folder), purge_step=step + 1) as writer:
            text = "\n".join(f"{key}: {value}" for key, value in settings.items())
            writer.add_text("settings", text)

            def track(entry: dict[str, Any]) -> None:
                for key, value in entry.items():
                    if key not in ("step", "source"):
                        writer.add_scalar(key, value, entry["step"])
                writer.flush()

            yield track
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with wandb.init(
            project="spacy-sapbert",
            name=folder.name.removesuffix("-tracking"),
            config=settings,
            dir=str(folder),
            resume="auto" if step else None,
        ) as run:
            yield lambda entry: run.log(entry, step=entry["step"])
