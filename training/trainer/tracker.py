"""What a run sends to TensorBoard or Weights & Biases, if its config asks for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.plugins import require
from training.losses.functions import Logger, LogStep, registry


@contextmanager
def open_logger(logger: Logger | None, *run: Any) -> Iterator[LogStep]:
    """Yield what takes the entries of a run; see `Logger` for its arguments."""
    log_step, finalize = logger(*run) if logger is not None else (bool, bool)
    try:
        yield log_step
    finally:
        finalize()


@registry.loggers("spacy-sapbert.Tracker.v1")
def make_tracker(to: Literal["tensorboard", "wandb"] = "tensorboard") -> Logger:
    """Build a logger for TensorBoard or Weights & Biases."""
    if to == "wandb":
        return partial(open_wandb, require("wandb", to))
    return partial(open_tensorboard, require("torch.utils.tensorboard", to))


def open_tensorboard(
    library: Any, folder: Path, run: str, settings: dict[str, Any]
) -> tuple[LogStep, Callable[[], Any]]:
    # what was written before a stop comes again, and is hidden
    writer = library.SummaryWriter(folder, purge_step=0)
    lines = [f"- {key}: `{value}`" for key, value in settings.items()]
    writer.add_text("settings", "\n".join(lines))

    def log_step(entry: dict[str, Any]) -> None:
        for name, value in list_numbers(entry).items():
            writer.add_scalar(name, value, entry["step"])

    return log_step, writer.close


def open_wandb(
    wandb: Any, folder: Path, run: str, settings: dict[str, Any]
) -> tuple[LogStep, Callable[[], Any]]:
    folder.mkdir(parents=True, exist_ok=True)  # or it takes a temporary folder
    # neither code nor what stands on the terminal
    own = {"console": "off", "disable_git": True, "disable_code": True}
    resumed = {"id": run, "resume": "allow", "allow_val_change": True}
    try:
        opened = wandb.init(dir=folder, config=settings, settings=own, **resumed)
    except (wandb.Error, ValueError) as error:  # of its server, of its variables
        raise SapbertError(
            "E634",
            f"Expected Weights & Biases to take this run, but got: {error} Correct it, "
            "or set the variable WANDB_MODE to offline.",
        ) from None

    def log_step(entry: dict[str, Any]) -> None:
        if entry["step"] >= opened.starting_step:  # it has those before
            opened.log(list_numbers(entry), step=entry["step"], commit=True)

    return log_step, opened.finish


def list_numbers(entry: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of an entry of training.jsonl, and its pairs a second.

    Loss and mined share differ between the sources of a run, so each has its own.
    """
    numbers = {key: entry[key] for key in entry if key not in ("step", "source")}
    for name in ("loss", "mined"):
        numbers[f"{name}/{entry['source']}"] = numbers.pop(name)
    return numbers | {"pairs_per_second": entry["pairs"] / max(entry["seconds"], 1e-9)}
