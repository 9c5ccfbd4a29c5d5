"""A whole training run: from pairs.tsv to an encoder folder, with all its stops."""

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

from spacy_sapbert.encoder.huggingface import EncoderSettings, save_encoder
from training.errors import Errors, SapbertError
from spacy_sapbert.system.writing import (
    remove_folder,
    write_atomically,
    write_folder_atomically,
)
from training.data.batches import prefetch
from training.trainer.batch_plan import count_steps
from training.trainer.checkpoints import (
    Progress,
    read_best,
    read_checkpoint,
    read_random_state,
    write_checkpoint,
)
from training.trainer.config import flatten_config
from training.trainer.distributed import (
    ALONE,
    Ranks,
    any_rank,
    gather_states,
    share_number,
    wait_for_ranks,
)
from training.trainer.model_card import model_card, summarize
from training.trainer.settings import TrainingSettings, make_settings, scheduled_rate
from training.trainer.setup import (
    Parts,
    Source,
    collated_batches,
    digest_sources,
    make_parts,
    open_sources,
)
from training.trainer.step import Batch, random_state, set_random_state, train_step
from training.trainer.tracking import make_tracker
from training.trainer.validation import Validation, read_validation, validate

# what may differ when a run goes on
FREE_SETTINGS = ("training.checkpoint_every", "training.tracker")


@dataclass(slots=True)
class Run:
    """A run on its way.

    settings (TrainingSettings): The settings.
    tokenizer (PreTrainedTokenizerBase): Of the encoder.
    parts (Parts): Encoder, optimiser and scaler.
    ranks (Ranks): The processes that train together.
    total (int): Steps from beginning to end.
    checkpoint (Path): Where the run is kept while it lasts.
    fixed (dict[str, Any]): What may not differ when it goes on, plain JSON types.
    validation (Validation | None): What the encoder is tried on, in the first
        process; None elsewhere, and where none is asked for.
    progress (Progress): How far it is.
    log (list[dict[str, Any]]): Its steps.
    """

    settings: TrainingSettings
    tokenizer: Any
    parts: Parts
    ranks: Ranks
    total: int
    checkpoint: Path
    fixed: dict[str, Any]
    validation: Validation | None
    progress: Progress = field(default_factory=Progress)
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def device(self) -> Any:
        """Where the encoder is."""
        return self.parts.model.device

    @property
    def log_path(self) -> Path:
        """Where the steps are written down, one a line."""
        return self.checkpoint.with_name(f"{self.checkpoint.name}.log.jsonl")


def check_loss(loss: float, step: int, numbers: np.ndarray, path: Path) -> None:
    """Stop a run whose loss is no number, and say which lines it was at.

    loss (float): Of the step.
    step (int): From 0.
    numbers (np.ndarray): Its pairs; no name of them is shown. Shape: (pairs,).
    path (Path): The file that they are of.
    RAISES (SapbertError): If the loss is NaN or infinite.
    """
    if not np.isfinite(loss):
        lines = ", ".join(str(number + 1) for number in sorted(numbers.tolist()))
        raise SapbertError(
            Errors.E607.format(loss=loss, step=step + 1, lines=lines, path=path)
        )


def note_validation(progress: Progress, accuracy: float) -> None:
    """Remember a validation if it is the best so far.

    progress (Progress): How far the run is; changed in place.
    accuracy (float): Acc@1, 0 to 1.
    """
    progress.waited += 1
    if accuracy > progress.best_accuracy or not progress.best_step:
        progress.best_step, progress.best_accuracy = progress.step, accuracy
        progress.waited = 0


def resume_run(run: Run) -> None:
    """Put a run back to its last checkpoint, if there is one.

    run (Run): The run.
    RAISES (SapbertError): If the checkpoint belongs to another run.
    """
    saved = read_checkpoint(run.checkpoint, *run.parts, settings=run.fixed)
    if saved is None:
        return
    run.progress = saved
    set_random_state(read_random_state(run.checkpoint, run.ranks.own), run.device)
    if run.log_path.is_file():
        lines = run.log_path.read_text("utf8").splitlines()[: saved.step]
        run.log = [json.loads(line) for line in lines]


def save_run(run: Run) -> None:
    """Write a checkpoint; every process has to come here.

    run (Run): The run.
    """
    states = gather_states(random_state(run.device), run.ranks, run.device)
    if run.ranks.is_first:
        write_checkpoint(
            run.checkpoint,
            *run.parts,
            progress=run.progress,
            settings=run.fixed,
            random_states=states,
        )
    wait_for_ranks(run.ranks)


def take_step(run: Run, step: int, source: Source, batch: Batch) -> dict[str, Any]:
    """Train on a batch, and try the encoder if it is time.

    run (Run): The run.
    step (int): From 0.
    source (Source): The file that is trained on.
    batch (Batch): Its names.
    RETURNS (dict[str, Any]): What to log.
    RAISES (SapbertError): If the loss is no number.
    """
    rate = scheduled_rate(step, run.total, run.settings)
    for group in run.parts.optimizer.param_groups:
        group["lr"] = rate
    result = train_step(*run.parts, batch, run.settings, ranks=run.ranks)
    check_loss(result.loss, step, batch.numbers, source.path)
    run.progress.step = done = step + 1
    entry = {
        "step": done,
        "source": source.name,
        "learning_rate": rate,
        **asdict(result),
    }
    wanted = run.settings.validation
    if wanted.mentions and (done == run.total or done % wanted.every == 0):
        accuracy = 0.0
        if run.validation is not None:
            accuracy = validate(
                run.parts.model, run.tokenizer, run.validation, run.settings
            )
        entry["accuracy"] = share_number(accuracy, run.ranks, run.device)
        note_validation(run.progress, entry["accuracy"])
    return entry


def run_steps(run: Run, bar: Any, track: Any, stop: Event) -> bool:
    """Take the steps that are still to do, and write checkpoints.

    run (Run): The run.
    bar (tqdm): Gives steps, sources and batches, and shows how far they are.
    track (Tracker): Takes what is logged.
    stop (Event): Ends the run after its step.
    RETURNS (bool): Whether the run came to its end.
    """
    patience = run.settings.validation.patience
    if 0 < patience <= run.progress.waited:  # it was killed before the encoder was out
        return True
    place = run.log_path if run.ranks.is_first else Path(os.devnull)
    if run.ranks.is_first:  # whole or not at all: it is needed if this run stops too
        with write_atomically(place) as log:
            log.writelines(json.dumps(e).encode() + b"\n" for e in run.log)
    with open(place, "a", encoding="utf8", buffering=1) as file:
        for step, source, batch in bar:
            entry = take_step(run, step, source, batch)
            run.log.append(entry)
            file.write(json.dumps(entry) + "\n")
            track(entry)
            speed = entry["pairs"] / entry["seconds"]
            bar.set_postfix_str(
                f"loss {entry['loss']:.4f}, mined {entry['mined']:.0%}, "
                f"{speed:.0f} pairs/s"
            )
            done = run.progress.step
            ended = done == run.total or 0 < patience <= run.progress.waited
            stopping = any_rank(stop.is_set(), run.ranks, run.device) and not ended
            due = done % run.settings.checkpoint_every == 0 and not ended
            if stopping or due or "accuracy" in entry:
                save_run(run)
            if ended or stopping:
                return ended
    return True


def train(
    pairs_path: Path,
    output: Path,
    config: Config,
    *,
    checkpoint: Path,
    corpus_folder: Path,
    fresh: bool = False,
    device: str = "cpu",
    ranks: Ranks = ALONE,
    progress_bar: bool = True,
    stop: Event | None = None,
) -> dict[str, Any] | None:
    """Train an encoder on synonym pairs, and on what else the config names.

    pairs_path (Path): pairs.tsv.
    output (Path): The encoder folder to write; one that is there is replaced.
    config (Config): From `read_config`, with a precision that is not "auto".
    checkpoint (Path): Where the run is kept while it lasts; a run that was stopped
        goes on from there.
    corpus_folder (Path): Where the tokenised names are kept; see `corpus_folders`.
    fresh (bool): Start anew even if there is a checkpoint.
    device (str): "cpu" or "cuda".
    ranks (Ranks): The processes that train together.
    progress_bar (bool): Show a bar.
    stop (Event | None): Once set, the run ends after its step, with a checkpoint.
    RETURNS (dict[str, Any] | None): Counts, losses and seconds; None if stopped.
    RAISES (SapbertError): If pairs, base, checkpoint or settings are not usable, or
        the loss is no number.
    SOURCE: Liu et al. (2021), §3 and §4.1.
    """
    settings = make_settings(config)
    validation = read_validation(settings) if ranks.is_first else None
    tokenizer, parts = make_parts(settings, device, ranks.own)
    sources = open_sources(
        pairs_path, corpus_folder, tokenizer, settings, ranks, progress_bar
    )
    made_of = {**dict(flatten_config(config)), **digest_sources(sources, settings)}
    fixed = {key: value for key, value in made_of.items() if key not in FREE_SETTINGS}
    fixed["processes"] = ranks.size
    total = count_steps([source.lines for source in sources], settings)
    run = Run(settings, tokenizer, parts, ranks, total, checkpoint, fixed, validation)
    if not fresh:
        resume_run(run)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    tracker = settings.tracker if ranks.is_first else None
    track = make_tracker(tracker, output.with_name(f"{output.name}-tracking"), made_of)
    started = time.monotonic()
    done, pin = run.progress.step, device == "cuda"
    batches = prefetch(
        collated_batches(sources, settings, done=done, ranks=ranks, pin=pin)
    )
    bar = tqdm(
        batches, total=total, initial=done, unit=" steps", disable=not progress_bar
    )
    try:
        ended = run_steps(run, bar, track, stop or Event())
    finally:
        bar.close()
        batches.close()
    if not ended:
        return None
    if run.progress.best_step:
        read_best(checkpoint, parts.model)
    seconds = time.monotonic() - started
    corpora = {source.name: source.corpus for source in sources}
    summary = summarize(run.log, corpora, parts.model, run.progress, seconds=seconds)
    if ranks.is_first:
        how = EncoderSettings(settings.pooling, settings.max_length, settings.lowercase)
        with write_folder_atomically(output) as part:
            model = parts.model.to("cpu").eval()
            base = settings.base if settings.adapter_only else None
            save_encoder(part, tokenizer, model, how, adapter_base=base)
            (part / "training.cfg").write_text(config.to_str() + "\n", "utf8")
            (part / "README.md").write_text(model_card(fixed, summary), "utf8")
            shutil.copy(run.log_path, part / "training.jsonl")
        remove_folder(checkpoint)
        run.log_path.unlink()
    return summary
