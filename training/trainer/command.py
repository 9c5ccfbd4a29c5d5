"""The command `train`: pairs.tsv + base encoder → encoder folder."""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import typer
from transformers.utils import logging

from spacy_sapbert.encoder.device import choose_device
from spacy_sapbert.encoder.huggingface import ENCODER_FOLDER
from spacy_sapbert.io.progress import format_count, format_time
from spacy_sapbert.io.reading import check_file
from spacy_sapbert.io.terminal import msg
from spacy_sapbert.io.writing import check_folder_output
from training.data.options import Quiet
from training.trainer.checkpoints import read_settings
from training.trainer.distributed import broadcast_value, start_ranks, stop_ranks
from training.trainer.run import train
from training.trainer.settings import RunPaths, parse_overrides, read_config
from training.trainer.step import find_precision

STOPPED = 128  # plus the signal: exit code of a stopped process, as in shells


def receive_signals() -> list[int]:
    """Return a list that gets each Ctrl-C and SIGTERM from here on.

    A second Ctrl-C raises KeyboardInterrupt; a second SIGTERM does nothing, because
    Slurm sends one to each process, and torchrun another one. It may come while the
    first is received: here is nothing that waits for a lock, as `Event.set` would.
    """
    received: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    return received


def train_command(
    context: typer.Context,
    pairs_path: Path = typer.Argument(..., metavar="PAIRS", help="pairs.tsv"),
    output: Path = typer.Argument(..., metavar="ENCODER", help="Folder to write."),
    config_path: Path | None = typer.Option(
        None, "--config", help="Settings that differ from training/configs/default.cfg."
    ),
    device: str = typer.Option("auto", help="auto, cpu, cuda, or a GPU, cuda:1."),
    force: bool = typer.Option(
        False, "--force", help="Replace an encoder, or a stopped run of other settings."
    ),
    quiet: Quiet = False,
) -> None:
    """Train an encoder on pairs of names.

    The default settings are those of the paper, in training/configs/default.cfg.
    Each can be changed: --training.optimizer.learning_rate 5e-5. To resume a stopped
    run, repeat the command; `--force` resumes it, too. Under torchrun all processes
    train together.

    Example: python -m training train corpus/pairs.tsv models/encoder
    --encoder.base models/minilm

    Example: torchrun --nproc-per-node 4 -m training train corpus/pairs.tsv
    models/encoder --training.batch_size 1024
    """
    check_folder_output(output, ENCODER_FOLDER, force=force)
    check_file(pairs_path)  # before the encoder is loaded, maybe from the hub
    received = receive_signals()
    device = choose_device(device)
    paths = RunPaths(pairs_path, output)
    if quiet or not sys.stderr.isatty():
        logging.disable_progress_bar()  # of transformers 5, for the weights
    config = read_config(config_path, parse_overrides(context.args))
    ranks = start_ranks(device)
    if config["training"]["precision"] == "auto":
        # A resumed run keeps its precision.
        saved = read_settings(paths.checkpoint)
        precision = saved.get("training.precision") or find_precision(ranks.device)
        config["training"]["precision"] = broadcast_value(precision, ranks)
    summary = train(
        paths,
        config,
        force=force,
        ranks=ranks,
        progress_bar=ranks.is_first and not quiet,
        is_stopped=lambda: bool(received),
    )
    if summary is not None and ranks.is_first:
        for folder in paths.datasets.values():
            shutil.rmtree(folder, ignore_errors=True)
    stop_ranks(ranks)
    # of a process that another one stopped, too
    stopped = STOPPED + (received[0] if received else signal.SIGINT)
    if not ranks.is_first:
        # A normal exit of Python once failed with SIGABRT, because threads of the
        # exchange were still running.
        os._exit(stopped if summary is None else 0)
    if summary is None:
        msg.warn("Stopped and saved. Repeat the same command to resume.")
        raise typer.Exit(stopped)
    if not quiet:
        loss = f"loss {summary['first_loss']:.3f} to {summary['last_loss']:.3f}"
        done = f"{format_count(summary['steps'], 'step')}, {loss}"
        if "best_accuracy" in summary:
            done += f", best Acc@1 {summary['best_accuracy']}"
        msg.good(f"Wrote {output}: {done}, {format_time(summary['seconds'])}")
