"""A training run: pairs.tsv → encoder folder, with checkpoints and validation."""

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from confection import Config
from tqdm import tqdm

from spacy_sapbert.encoder.huggingface import ENCODER_FOLDER, save_encoder
from spacy_sapbert.system.writing import (
    check_folder_output,
    check_kind,
    remove_folder,
    write_atomically,
    write_folder_atomically,
)
from training.data.prefetch import prefetch
from training.data.tokenized_pairs import CORPUS_FOLDER
from training.errors import Errors, SapbertError
from training.trainer.batches import (
    Batch,
    Source,
    corpus_folders,
    count_steps,
    digest_sources,
    iter_batches,
    open_sources,
)
from training.trainer.checkpoints import (
    CHECKPOINT_FOLDER,
    Progress,
    can_resume,
    check_finite,
    read_best,
    read_checkpoint,
    read_random_state,
    write_checkpoint,
)
from training.trainer.distributed import (
    ALONE,
    Ranks,
    any_rank,
    gather_states,
    share_number,
    wait_for_ranks,
)
from training.trainer.model_card import format_model_card, summarize
from training.trainer.settings import (
    TrainingSettings,
    complete_encoder,
    flatten_config,
    make_settings,
)
from training.trainer.step import (
    TrainingState,
    make_state,
    random_state,
    set_random_state,
    train_step,
)
from training.trainer.tracking import make_tracker
from training.trainer.validation import Validation, read_validation, validate

# settings that may differ when a run is resumed
FREE_SETTINGS = (
    "training.checkpoint_every",
    "training.checkpoint_seconds",
    "training.tracker",
)


@dataclass(slots=True)
class Run:
    """A run in progress.

    total (int): Steps from start to end.
    checkpoint (Path): Folder of the last checkpoint.
    fixed (dict[str, Any]): Settings that must be the same when the run is resumed.
    validation (Validation | None): Mentions to link, in the first process; None in the
        others, and if there is no validation.
    progress (Progress): Steps done and best validation.
    log (list[dict[str, Any]]): One entry for each step, as in training.jsonl.
    saved (float): Time of the last checkpoint, in seconds.
    """

    settings: TrainingSettings
    tokenizer: Any
    state: TrainingState
    ranks: Ranks
    total: int
    checkpoint: Path
    fixed: dict[str, Any]
    validation: Validation | None
    progress: Progress = field(default_factory=Progress)
    log: list[dict[str, Any]] = field(default_factory=list)
    saved: float = field(default_factory=time.monotonic)

    @property
    def device(self) -> Any:
        return self.state.model.device

    @property
    def log_path(self) -> Path:
        return self.checkpoint.with_name(f"{self.checkpoint.name}.log.jsonl")

    @property
    def is_finished(self) -> bool:
        patience = self.settings.validation.patience
        return self.progress.step == self.total or 0 < patience <= self.progress.waited


def train(
    pairs_path: Path,
    output: Path,
    config: Config,
    *,
    checkpoint: Path,
    corpus_folder: Path,
    force: bool = False,
    device: str = "cpu",
    ranks: Ranks = ALONE,
    progress_bar: bool = True,
    stop: Event | None = None,
) -> dict[str, Any] | None:
    """Train an encoder on synonym pairs, and on the other files of the config.

    output (Path): The encoder folder to write.
    config (Config): From `read_config`, with a precision that is not "auto".
    checkpoint (Path): Folder of checkpoints; a stopped run is resumed from there.
    corpus_folder (Path): Folder of the tokenised names; see `corpus_folders`.
    force (bool): An encoder, or a stopped run of other settings, may be replaced.
    stop (Event | None): If set, the run ends after the current step, with a checkpoint.
    RETURNS (dict[str, Any] | None): Counts, losses and seconds; None if stopped.
    RAISES (SapbertError): If a file or setting is not usable, or the loss or a weight
        is not finite.
    SOURCE: Liu et al. (2021), §3 and §4.1.
    """
    check_folder_output(output, ENCODER_FOLDER, force=force)
    check_kind(checkpoint, CHECKPOINT_FOLDER)
    for folder in corpus_folders(corpus_folder).values():
        check_kind(folder, CORPUS_FOLDER)
    config = complete_encoder(config, quiet=not ranks.is_first)
    settings = make_settings(config)
    validation = read_validation(settings) if ranks.is_first else None
    tokenizer, state = make_state(settings, device, ranks.own)
    sources = open_sources(
        pairs_path, corpus_folder, tokenizer, settings, ranks, progress_bar
    )
    made_of = {**dict(flatten_config(config)), **digest_sources(sources, settings)}
    fixed = {key: value for key, value in made_of.items() if key not in FREE_SETTINGS}
    fixed["processes"] = ranks.size
    total = count_steps([source.lines for source in sources], settings)
    run = Run(settings, tokenizer, state, ranks, total, checkpoint, fixed, validation)
    if can_resume(checkpoint, fixed, force=force):
        resume_run(run)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    tracker = settings.training.tracker if ranks.is_first else None
    track = make_tracker(tracker, output.with_name(f"{output.name}-tracking"), made_of)
    started = time.monotonic()
    done, pin = run.progress.step, device == "cuda"
    batches = prefetch(iter_batches(sources, settings, done=done, ranks=ranks, pin=pin))
    bar = tqdm(
        batches, total=total, initial=done, unit=" steps", disable=not progress_bar
    )
    try:
        run_steps(run, bar, track, stop or Event())
    finally:
        bar.close()
        batches.close()
    if not run.is_finished:
        return None
    # Only the first process writes them; it removes the checkpoint then.
    if run.progress.best_step and ranks.is_first:
        read_best(checkpoint, state.model)
    check_finite(state.model, run.progress.step)
    seconds = time.monotonic() - started
    corpora = {source.name: source.corpus for source in sources}
    summary = summarize(run.log, corpora, state.model, run.progress, seconds=seconds)
    if ranks.is_first:
        write_encoder(output, run, config, summary)
        remove_folder(checkpoint)
        run.log_path.unlink()
    return summary


def run_steps(run: Run, bar: Any, track: Any, stop: Event) -> None:
    """Run the remaining steps, and write the log and the checkpoints.

    bar (tqdm): Yields steps, sources and batches.
    stop (Event): If set, the run ends after the current step.
    """
    if run.is_finished:  # stopped after the last step, before the encoder was written
        return
    log_path = run.log_path if run.ranks.is_first else Path(os.devnull)
    if not run.progress.step:  # another run's checkpoint does not fit to the new log
        wait_for_ranks(run.ranks)
        if run.ranks.is_first:
            remove_folder(run.checkpoint)
    if run.ranks.is_first:  # atomically, because a later run needs it
        with write_atomically(log_path) as log:
            log.writelines(json.dumps(e).encode() + b"\n" for e in run.log)
    training = run.settings.training
    with open(log_path, "a", encoding="utf8", buffering=1) as file:
        for step, source, batch in bar:
            entry = run_step(run, step, source, batch)
            run.log.append(entry)
            file.write(json.dumps(entry) + "\n")
            track(entry)
            speed = entry["pairs"] / entry["seconds"]
            bar.set_postfix_str(
                f"loss {entry['loss']:.4f}, mined {entry['mined']:.0%}, "
                f"{speed:.0f} pairs/s"
            )
            late = time.monotonic() - run.saved >= training.checkpoint_seconds
            stopping, late = any_rank([stop.is_set(), late], run.ranks, run.device)
            due = run.progress.step % training.checkpoint_every == 0
            if "accuracy" in entry or (
                (stopping or due or late) and not run.is_finished
            ):
                save_run(run)
            if run.is_finished or stopping:
                return


def run_step(run: Run, step: int, source: Source, batch: Batch) -> dict[str, Any]:
    """Train on a batch, validate if it is due, and return the entry for the log.

    step (int): From 0.
    RAISES (SapbertError): If the loss is not finite.
    """
    rate = run.settings.learning_rate(step, run.total)
    for group in run.state.optimizer.param_groups:
        group["lr"] = rate
    result = train_step(run.state, batch, run.settings, ranks=run.ranks)
    if not np.isfinite(result.loss):  # name lines, never the names on them
        lines = ", ".join(str(number + 1) for number in sorted(batch.numbers.tolist()))
        raise SapbertError(
            Errors.E607.format(
                loss=result.loss, step=step + 1, lines=lines, path=source.path
            )
        )
    run.progress.step = done = step + 1
    entry: dict[str, Any] = {"step": done, "source": source.name, "learning_rate": rate}
    entry.update(asdict(result))
    section = run.settings.validation
    if section.mentions and (done == run.total or done % section.every == 0):
        accuracy = 0.0
        if run.validation is not None:
            accuracy = validate(
                run.state.model, run.tokenizer, run.validation, run.settings
            )
        entry["accuracy"] = share_number(accuracy, run.ranks, run.device)
        record_validation(run.progress, entry["accuracy"])
    return entry


def record_validation(progress: Progress, accuracy: float) -> None:
    """Update the best validation.

    The last of equal ones counts, which has seen more pairs; so a validation that shows
    no difference keeps the weights of the end. It does not end the patience.
    """
    is_better = accuracy > progress.best_accuracy or not progress.best_step
    progress.waited = 0 if is_better else progress.waited + 1
    if is_better or accuracy == progress.best_accuracy:
        progress.best_step, progress.best_accuracy = progress.step, accuracy


def resume_run(run: Run) -> None:
    """Restore a run from its last checkpoint."""
    run.progress = read_checkpoint(run.checkpoint, *run.state)
    set_random_state(read_random_state(run.checkpoint, run.ranks.own), run.device)
    if run.log_path.is_file():
        lines = run.log_path.read_text("utf8").splitlines()[: run.progress.step]
        run.log = [json.loads(line) for line in lines]


def save_run(run: Run) -> None:
    """Write a checkpoint; every process has to call this.

    RAISES (SapbertError): If the weights are not finite.
    """
    check_finite(run.state.model, run.progress.step)
    states = gather_states(random_state(run.device), run.ranks, run.device)
    if run.ranks.is_first:
        write_checkpoint(
            run.checkpoint,
            *run.state,
            progress=run.progress,
            settings=run.fixed,
            random_states=states,
        )
    wait_for_ranks(run.ranks)
    run.saved = time.monotonic()


def write_encoder(
    output: Path, run: Run, config: Config, summary: dict[str, Any]
) -> None:
    """Write the encoder folder, with its config, log and model card."""
    section = run.settings.encoder
    base = section.base if section.adapter_only else None
    with write_folder_atomically(output, ENCODER_FOLDER) as part:
        model = run.state.model.to("cpu").eval()
        save_encoder(part, run.tokenizer, model, section.how, adapter_base=base)
        (part / "training.cfg").write_text(config.to_str() + "\n", "utf8")
        card = format_model_card(run.fixed, summary)
        (part / "README.md").write_text(card, "utf8")
        shutil.copy(run.log_path, part / "training.jsonl")
