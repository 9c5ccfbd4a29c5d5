"""A training run: pairs.tsv → encoder folder, with checkpoints and validation."""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from confection import Config
from safetensors.torch import load_file

from spacy_sapbert.encoder.huggingface import ENCODER_FOLDER, save_encoder
from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.progress import show_progress
from spacy_sapbert.io.writing import (
    check_folder_output,
    check_kind,
    remove_folder,
    write_atomically,
    write_folder_atomically,
)
from training.data.dataset import DATASET_FOLDER
from training.encoders.sentence_transformers import write_modules
from training.trainer.batches import (
    count_steps,
    digest_sources,
    iter_batches,
    open_sources,
)
from training.trainer.checkpoints import (
    BEST_FILE,
    CHECKPOINT_FOLDER,
    Progress,
    can_resume,
    check_finite,
    read_checkpoint,
    write_checkpoint,
)
from training.trainer.distributed import (
    SINGLE,
    Ranks,
    any_rank,
    barrier,
    broadcast_value,
    gather_states,
)
from training.trainer.model_card import format_model_card, summarize
from training.trainer.settings import (
    RunPaths,
    complete_encoder,
    flatten_config,
    make_settings,
)
from training.trainer.step import make_state, train_step
from training.trainer.tracker import open_logger
from training.trainer.validation import read_validation, validate

# How settings begin that may differ when a run is resumed; those of the first tuple
# change what it writes.
CHANGING_SETTINGS = ("training.chunks", "training.steps", "validation.")
OTHER_SETTINGS = ("training.checkpoint_seconds", "training.logger")


def train(
    paths: RunPaths,
    config: Config,
    *,
    force: bool = False,
    ranks: Ranks = SINGLE,
    progress_bar: bool = True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Train an encoder on synonym pairs, and on the other files of the config.

    Args:
        paths: A run that was stopped is resumed from its checkpoint.
        config: From `read_config`, with a precision that is not "auto".
        force: An encoder, or a stopped run of other settings, may be replaced.
        is_stopped: Asked after each step; if so, the run ends with a checkpoint.

    Returns:
        Counts, losses and seconds; None if stopped.

    Raises:
        SapbertError: A file or setting is not usable, or the loss or a weight is not
            finite.

    Source:
        Liu et al. (2021), §3 and §4.1.
    """
    check_folder_output(paths.encoder, ENCODER_FOLDER, force=force)
    check_kind(paths.checkpoint, CHECKPOINT_FOLDER)
    for folder in paths.datasets.values():
        check_kind(folder, DATASET_FOLDER)

    # Settings, encoder and data
    config = complete_encoder(config, quiet=not ranks.is_first)
    settings = make_settings(config)
    section = settings.training
    validation = read_validation(settings)
    tokenizer, state = make_state(settings, ranks)
    sources = open_sources(paths, tokenizer, settings, ranks, progress=progress_bar)
    total = count_steps([source.lines for source in sources], settings)

    # The checkpoint of the same settings, files and number of ranks
    made_of = {**flatten_config(config), **digest_sources(sources, settings)}
    identity = {
        key: made_of[key] for key in made_of if not key.startswith(OTHER_SETTINGS)
    }
    identity["processes"] = ranks.world_size
    progress, log = Progress(), list[dict[str, Any]]()
    best: dict[str, torch.Tensor] | None = None  # that no checkpoint has yet
    if can_resume(paths.checkpoint, identity, CHANGING_SETTINGS, force=force):
        progress = read_checkpoint(paths.checkpoint, state, ranks)
        log = read_log(paths.log, progress.step)
    paths.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    if not progress.step:  # another run's checkpoint does not fit to the new log
        barrier(ranks)
        if ranks.is_first:
            remove_folder(paths.checkpoint)
    if ranks.is_first:  # atomically, because a later run needs it
        with write_atomically(paths.log) as file:
            file.writelines(json.dumps(entry).encode() + b"\n" for entry in log)

    def is_finished() -> bool:
        patience = settings.validation.patience
        return progress.step == total or 0 < patience <= progress.waited

    def save() -> None:
        nonlocal best
        check_finite(state.model, progress.step)
        own = (torch.cuda if ranks.is_gpu else torch).get_rng_state()  # of dropout
        states = gather_states(own, ranks)
        if ranks.is_first:
            write_checkpoint(
                paths.checkpoint,
                state,
                progress,
                best=best,
                settings=identity,
                random_states=states,
            )
        best = None
        barrier(ranks)

    batches = iter_batches(
        sources,
        settings,
        done=progress.step,
        ranks=ranks,
        several=state.embedder.layout is not None,
    )
    bar = show_progress(
        total=total, initial=progress.step, unit="steps", quiet=not progress_bar
    )
    started = saved = time.monotonic()
    stopping = False
    own_log = paths.log if ranks.is_first else os.devnull
    logger = section.logger if ranks.is_first else None
    with (
        closing(batches),
        bar,
        open(own_log, "a", buffering=1) as log_file,
        open_logger(logger, paths.beside("tracker"), progress.run, identity) as track,
    ):
        for entry in log:
            track(entry)
        while not (stopping or is_finished()):
            step, source, batch = next(batches)
            rate = settings.learning_rate(step, total)
            for group in state.optimizer.param_groups:
                group["lr"] = rate
            result = train_step(state, batch, settings, ranks=ranks)
            if not np.isfinite(result.loss):  # name lines, never the names on them
                lines = ", ".join(str(line + 1) for line in sorted(batch.lines))
                raise SapbertError(
                    "E607",
                    f"Expected a finite loss, but got {result.loss} at step "
                    f"{step + 1}; its pairs are lines {lines} of {source.path}. The "
                    "last checkpoint is kept. Lower "
                    "`--training.optimizer.learning_rate`, or repeat the command to "
                    "resume there.",
                )
            progress.step = step + 1
            entry = {"step": progress.step, "source": source.name}
            entry |= {"learning_rate": rate, **asdict(result)}
            entry["checkpoint_bytes"] = progress.checkpoint_bytes

            every = settings.validation.every
            if validation is not None and (
                progress.step == total or progress.step % every == 0
            ):
                accuracy = validate(state.model, tokenizer, validation, settings, ranks)
                accuracy = broadcast_value(accuracy, ranks)
                entry["accuracy"] = accuracy
                progress.record_validation(accuracy)
                if progress.best_step == progress.step and ranks.is_first:
                    weights = state.model.state_dict()
                    best = {key: weights[key].to("cpu", copy=True) for key in weights}

            log.append(entry)
            log_file.write(json.dumps(entry) + "\n")
            track(entry)
            bar.set_postfix_str(
                f"loss {result.loss:.4f}, mined {result.mined:.0%}, "
                f"{result.pairs / result.seconds:.0f} pairs/s",
                refresh=False,  # or each step would be a line in a log
            )
            bar.update()

            stopping, is_late = any_rank(
                [is_stopped(), time.monotonic() - saved >= section.checkpoint_seconds],
                ranks,
            )
            if (stopping or is_late) and not is_finished():
                if ranks.is_first:
                    os.fsync(log_file.fileno())  # the checkpoint relies on it
                save()
                saved = time.monotonic()
    if not is_finished():
        return None

    # The encoder, with the best weights. Rank 0 writes it and removes the checkpoint.
    if progress.best_step and ranks.is_first:
        state.model.load_state_dict(best or load_file(paths.checkpoint / BEST_FILE))
    check_finite(state.model, progress.step)
    datasets = {source.name: source.dataset for source in sources}
    seconds = time.monotonic() - started
    summary = summarize(log, datasets, state.model, progress, seconds=seconds)
    if ranks.is_first:
        with write_folder_atomically(paths.encoder, ENCODER_FOLDER) as part:
            encoder = settings.encoder
            model = state.model.to("cpu").eval()
            save_encoder(part, tokenizer, model, encoder.how)
            if not summary["adapters"]:  # which only this project runs
                write_modules(part, encoder.how, model.config.hidden_size)
            (part / "training.cfg").write_text(config.to_str() + "\n", "utf8")
            card = format_model_card(identity, summary)
            (part / "README.md").write_text(card, "utf8")
            shutil.copy(paths.log, part / "training.jsonl")
        remove_folder(paths.checkpoint)
        paths.log.unlink()
    return summary


def read_log(path: Path, steps: int) -> list[dict[str, Any]]:
    """Read the entries of the first steps, or those that are left of them."""
    lines = path.read_text("utf8").splitlines() if path.is_file() else []
    entries = map(json.loads, lines[:steps])
    return [entry for entry in entries if entry["step"] <= steps]
