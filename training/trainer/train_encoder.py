"""pairs.tsv + base encoder → encoder/: self-alignment pretraining."""

import os
import shutil
import signal
import sys
from pathlib import Path
from threading import Event

import torch
import typer
from transformers.utils import logging
from wasabi import msg

from training.errors import SapbertError
from training.losses import miners as mining  # noqa: F401
from training.losses import multi_similarity as losses  # noqa: F401 (registers)
from training.losses import other_losses, schedules  # noqa: F401
from training.trainer.checkpoints import saved_settings
from training.trainer.config import parse_overrides, read_config
from training.trainer.distributed import share_number, start_ranks, stop_ranks
from training.trainer.run import train
from training.trainer.settings import PRECISIONS
from training.trainer.setup import corpus_folders
from training.trainer.step import best_precision

app = typer.Typer(add_completion=False)


def ask_to_stop(stop: Event) -> None:
    """Let a run end after its step, or at once when it is asked again.

    stop (Event): Is set.
    RAISES (KeyboardInterrupt): If it was set before.
    """
    if stop.is_set():
        raise KeyboardInterrupt
    stop.set()


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def main(
    context: typer.Context,
    pairs_path: Path = typer.Argument(..., metavar="PAIRS", help="pairs.tsv"),
    output: Path = typer.Argument(..., metavar="ENCODER", help="Folder to write."),
    config_path: Path | None = typer.Option(
        None, "--config", help="What differs from training/configs/default.cfg."
    ),
    device: str = typer.Option("auto", help="auto, cpu or cuda."),
    threads: int = typer.Option(0, min=0, help="CPU threads; 0 = torch's choice."),
    checkpoint: Path | None = typer.Option(None, help="[ENCODER-checkpoint]"),
    corpus: Path | None = typer.Option(
        None, help="Keep the tokenised names here, for other runs too."
    ),
    fresh: bool = typer.Option(False, "--fresh", help="Do not go on from one."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """pairs.tsv + base encoder -> encoder folder

    Every setting of training/configs/default.cfg, which are those of the paper, can
    be changed: --training.optimizer.learning_rate 5e-5. A run that was stopped goes on
    when the same command is given again. Under torchrun all processes train together.

    Example: python -m training.trainer.train_encoder corpus/pairs.tsv models/encoder
    --encoder.base models/minilm --encoder.pooling mean

    Example: torchrun --nproc-per-node 4 -m training.trainer.train_encoder corpus/pairs.tsv
    models/encoder --training.batch_size 1024
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    checkpoint = checkpoint or output.with_name(f"{output.name}-checkpoint")
    corpus_folder = corpus or output.with_name(f"{output.name}-corpus")
    if threads:
        torch.set_num_threads(threads)
    progress_bar = sys.stderr.isatty() and not quiet
    if not progress_bar:
        logging.disable_progress_bar()  # newer releases show one for the weights
    ranks = start_ranks(device)
    stop = Event()
    signal.signal(signal.SIGINT, lambda *_: ask_to_stop(stop))
    try:
        config = read_config(config_path, parse_overrides(context.args))
        if config["training"]["precision"] == "auto":
            # A run goes on in the precision that it was begun in.
            begun = {} if fresh else saved_settings(checkpoint)
            precision = begun.get("training.precision") or best_precision(device)
            number = share_number(PRECISIONS.index(precision), ranks, device)
            config["training"]["precision"] = PRECISIONS[int(number)]
        summary = train(
            pairs_path,
            output,
            config,
            checkpoint=checkpoint,
            corpus_folder=corpus_folder,
            fresh=fresh,
            device=device,
            ranks=ranks,
            progress_bar=progress_bar and ranks.is_first,
            stop=stop,
        )
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    stop_ranks(ranks)
    if not ranks.is_first:
        # It has nothing left to write or tell. Ending by itself, Python was once seen
        # to be torn down together with threads that the exchange had left (SIGABRT).
        os._exit(130 if summary is None else 0)
    if summary is None:
        msg.warn("Stopped and saved. Give the same command again to go on.")
        raise typer.Exit(130)
    if ranks.is_first:
        if corpus is None:
            for folder in corpus_folders(corpus_folder).values():
                shutil.rmtree(folder, ignore_errors=True)
        if not quiet:
            msg.table([(key.replace("_", " "), v) for key, v in summary.items()])
            msg.good(f"Wrote {output}")


if __name__ == "__main__":
    app()
