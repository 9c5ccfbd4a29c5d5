"""pairs.tsv + base encoder → encoder/: self-alignment pretraining."""

import json
import shutil
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
import typer
from tqdm import tqdm
from wasabi import msg

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.files import file_digest, write_folder_atomically
from spacy_sapbert.hf import EncoderSettings, load_encoder, save_encoder
from training.batches import Pairs, read_pairs, shuffled_batches, tokenize_names
from training.checkpoints import read_checkpoint, saved_settings, write_checkpoint
from training.model_card import model_card
from training.settings import (
    TrainingSettings,
    check_settings,
    count_steps,
    scheduled_rate,
)
from training.steps import best_precision, train_step


def planned_batches(
    total: int, settings: TrainingSettings, *, done: int
) -> Iterator[Tuple[int, np.ndarray]]:
    """Give the batches of the run that are still to do.

    total (int): How many pairs there are.
    settings (TrainingSettings): Batch size, epochs, steps and seed.
    done (int): Steps that an earlier run did.
    YIELDS (Tuple[int, np.ndarray]): The step, from 0, and the numbers of its pairs.
    """
    step = 0
    for epoch in range(settings.epochs):
        batches = shuffled_batches(
            total, size=settings.batch_size, seed=settings.seed, epoch=epoch
        )
        for batch in batches:
            if settings.steps and step == settings.steps:
                return
            if step >= done:
                yield step, batch
            step += 1


def read_log(path: Path, done: int) -> List[Dict[str, Any]]:
    """Read what an earlier run logged, up to its last checkpoint.

    path (Path): The log, one step a line.
    done (int): Steps that the checkpoint holds.
    RETURNS (List[Dict[str, Any]]): The steps.
    """
    if not done or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf8").splitlines()[:done]]


def train(
    pairs_path: Path,
    output: Path,
    settings: TrainingSettings,
    *,
    checkpoint: Path,
    checkpoint_every: int = 500,
    fresh: bool = False,
    device: str = "cpu",
    progress: bool = True,
    stop: Optional[Event] = None,
) -> Optional[Dict[str, Any]]:
    """Train an encoder on synonym pairs.

    pairs_path (Path): pairs.tsv.
    output (Path): The encoder folder to write; one that is there is replaced.
    settings (TrainingSettings): What decides the result.
    checkpoint (Path): Where the run is kept while it lasts; a run that was stopped
        goes on from there.
    checkpoint_every (int): Steps between two checkpoints.
    fresh (bool): Start anew even if there is a checkpoint.
    device (str): "cpu" or "cuda".
    progress (bool): Show a bar.
    stop (Optional[Event]): Once set, the run ends after its step, with a checkpoint.
    RETURNS (Optional[Dict[str, Any]]): Counts, losses and seconds; None if stopped.
    RAISES (SapbertError): If pairs, base, checkpoint or settings are not usable, or
        the loss is no number.
    SOURCE: Liu et al. (2021), §3 and §4.1.
    """
    check_settings(settings)
    pairs = read_pairs(pairs_path, lowercase=settings.lowercase)
    tokenizer, model = load_encoder(settings.base)
    tokens = tokenize_names(tokenizer, pairs.names, max_length=settings.max_length)
    torch.manual_seed(settings.seed)
    model.to(device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    run = {**asdict(settings), "pairs_sha256": file_digest(pairs_path)}
    done = 0
    if not fresh:
        done = read_checkpoint(checkpoint, model, optimizer, settings=run) or 0
    total = count_steps(len(pairs), settings)
    log_path = checkpoint.with_name(f"{checkpoint.name}.log.jsonl")
    log = read_log(log_path, done)
    started = time.monotonic()
    bar = tqdm(
        planned_batches(len(pairs), settings, done=done),
        total=total,
        initial=done,
        unit=" steps",
        disable=not progress,
    )
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with open(log_path, "w", encoding="utf8") as log_file:
        log_file.writelines(json.dumps(entry) + "\n" for entry in log)
        for step, batch in bar:
            rate = scheduled_rate(step, total, settings)
            for group in optimizer.param_groups:
                group["lr"] = rate
            result = train_step(model, optimizer, tokens, pairs, batch, settings)
            if not np.isfinite(result.loss):
                lines = ", ".join(str(number + 1) for number in sorted(batch))
                raise SapbertError(
                    Errors.E607.format(loss=result.loss, step=step + 1, lines=lines)
                )
            log.append({"step": step + 1, "learning_rate": rate, **asdict(result)})
            log_file.write(json.dumps(log[-1]) + "\n")
            speed = result.pairs / result.seconds
            bar.set_postfix_str(
                f"loss {result.loss:.4f}, mined {result.mined:.0%}, {speed:.0f} pairs/s"
            )
            stopping = stop is not None and stop.is_set()
            if stopping or ((step + 1) % checkpoint_every == 0 and step + 1 < total):
                log_file.flush()
                write_checkpoint(
                    checkpoint, model, optimizer, step=step + 1, settings=run
                )
            if stopping:
                bar.close()
                return None
    bar.close()
    summary = summarize(log, pairs, seconds=time.monotonic() - started)
    with write_folder_atomically(output) as part:
        encoder = EncoderSettings(
            settings.pooling, settings.max_length, settings.lowercase
        )
        save_encoder(part, tokenizer, model.to("cpu").eval(), encoder)
        (part / "README.md").write_text(model_card(run, summary), "utf8")
        shutil.copy(log_path, part / "training.jsonl")
    shutil.rmtree(checkpoint, ignore_errors=True)
    log_path.unlink()
    return summary


def summarize(
    log: List[Dict[str, Any]], pairs: Pairs, *, seconds: float
) -> Dict[str, Any]:
    """Say what a run did, for the table and the model card.

    log (List[Dict[str, Any]]): Its steps.
    pairs (Pairs): All pairs.
    seconds (float): Of this process; an earlier one that was stopped is not in it.
    RETURNS (Dict[str, Any]): Counts, and the means over the first and the last tenth.
    """
    tenth = max(len(log) // 10, 1)

    def mean(part: List[Dict[str, Any]], key: str) -> float:
        return round(float(np.mean([entry[key] for entry in part])), 4)

    return {
        "steps": len(log),
        "pairs": len(pairs),
        "names": len(pairs.names),
        "concepts": int(pairs.labels.max()) + 1,
        "first_loss": mean(log[:tenth], "loss"),
        "last_loss": mean(log[-tenth:], "loss"),
        "first_mined": mean(log[:tenth], "mined"),
        "last_mined": mean(log[-tenth:], "mined"),
        "pairs_per_second": round(
            sum(entry["pairs"] for entry in log)
            / sum(entry["seconds"] for entry in log),
            1,
        ),
        "seconds": round(seconds, 1),
    }


def main(
    pairs_path: Path = typer.Argument(..., metavar="PAIRS", help="pairs.tsv"),
    output: Path = typer.Argument(..., metavar="ENCODER", help="Folder to write."),
    base: str = typer.Option(..., help="Encoder to start from: folder or hub id."),
    pooling: str = typer.Option("cls", help="cls or mean."),
    max_length: int = typer.Option(25, min=3, help="Wordpieces: 15 20 [25] 30."),
    lowercase: bool = typer.Option(True, help="Lower-case all names, now and later."),
    batch_size: int = typer.Option(256, min=2, help="Pairs: 64 128 [256] 512."),
    epochs: int = typer.Option(1, min=1, help="How often each pair is seen."),
    steps: int = typer.Option(0, min=0, help="Stop after so many steps; 0 = all."),
    learning_rate: float = typer.Option(2e-5, help="1e-4 [2e-5] 5e-5 1e-5 1e-6."),
    schedule: str = typer.Option("constant", help="constant, or linear down to 0."),
    weight_decay: float = typer.Option(0.01, help="Of AdamW."),
    margin: float = typer.Option(0.2, help="Of the miner: 0.05 0.1 [0.2] 0.3."),
    loss: str = typer.Option("paper", help="Multi-Similarity: paper or released."),
    chunks: int = typer.Option(4, min=1, help="Parts of a batch; less memory."),
    precision: str = typer.Option("auto", help="auto, bf16 or float32."),
    seed: int = typer.Option(0, help="Of the order of the pairs and of dropout."),
    device: str = typer.Option("auto", help="auto, cpu or cuda."),
    threads: int = typer.Option(0, min=0, help="CPU threads; 0 = torch's choice."),
    checkpoint: Optional[Path] = typer.Option(None, help="[ENCODER-checkpoint]"),
    checkpoint_every: int = typer.Option(500, min=1, help="Steps between two."),
    fresh: bool = typer.Option(False, "--fresh", help="Do not go on from one."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but errors."),
) -> None:
    """pairs.tsv + base encoder -> encoder folder

    The values in brackets are the paper's choice among those that it tried. A run that
    was stopped goes on when the same command is given again.

    Example: python -m training.train_encoder corpus/pairs.tsv models/encoder
    --base microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    checkpoint = checkpoint or output.with_name(f"{output.name}-checkpoint")
    if precision == "auto":
        # A run goes on in the precision that it was begun in.
        begun = {} if fresh else saved_settings(checkpoint)
        precision = begun.get("precision") or best_precision(device)
    if threads:
        torch.set_num_threads(threads)
    settings = TrainingSettings(
        base=base,
        pooling=pooling,
        max_length=max_length,
        lowercase=lowercase,
        batch_size=batch_size,
        epochs=epochs,
        steps=steps,
        learning_rate=learning_rate,
        schedule=schedule,
        weight_decay=weight_decay,
        margin=margin,
        loss=loss,
        chunks=chunks,
        precision=precision,
        seed=seed,
    )
    stop = Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        summary = train(
            pairs_path,
            output,
            settings,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            fresh=fresh,
            device=device,
            progress=sys.stderr.isatty() and not quiet,
            stop=stop,
        )
    except SapbertError as error:
        msg.fail(str(error), exits=1)
    if summary is None:
        msg.warn("Stopped and saved. Give the same command again to go on.", exits=130)
    elif not quiet:
        msg.table([(key.replace("_", " "), value) for key, value in summary.items()])
        msg.good(f"Wrote {output}")


if __name__ == "__main__":
    typer.run(main)
