"""Mining and loss: share of a training step, and time and memory against a library.

Each figure of a batch size comes from a process of its own, so that its peak memory is
not that of another.

python -m benchmarks.mining_and_loss --encoder models/minilm
    --pairs corpus/sample/pairs.tsv
"""

import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import typer
from torch import Tensor
from torch.nn.functional import normalize
from wasabi import msg

from benchmarks.machine import machine_line
from training.data.shuffling import shuffled_batches
from training.data.tokenized_pairs import build_corpus
from training.losses import schedules  # noqa: F401 (registers)
from training.losses.miners import mine_hard_pairs
from training.losses.multi_similarity import multi_similarity_loss
from training.trainer.batches import collate_batch
from training.trainer.settings import make_settings, read_config
from training.trainer.step import find_precision, make_state, train_step


def random_vectors(rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Make a batch of pairs whose two names are alike, as in training.

    rows (int): Names.
    width (int): Columns.
    RETURNS (tuple[Tensor, Tensor]): Unit vectors with gradient, shape (rows, width),
        and labels, shape (rows,).
    """
    labels = torch.arange(rows // 2).repeat(2)
    centres = torch.randn(rows // 2, width)
    vectors = normalize(centres[labels] + torch.randn(rows, width), dim=1)
    return vectors.requires_grad_(), labels


def ours(vectors: Tensor, labels: Tensor) -> Tensor:
    """Mine and compute the loss as the project does."""
    return multi_similarity_loss(vectors, *mine_hard_pairs(vectors, labels))


def make_library() -> Callable[[Tensor, Tensor], Tensor]:
    """Mine and compute the loss as pytorch-metric-learning does."""
    from pytorch_metric_learning.losses import MultiSimilarityLoss
    from pytorch_metric_learning.miners import TripletMarginMiner

    miner = TripletMarginMiner(margin=0.2, type_of_triplets="all")
    loss = MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
    return lambda vectors, labels: loss(vectors, labels, miner(vectors, labels))


def measure_loss(
    library: bool, names: int, width: int, repeats: int, threads: int
) -> tuple[float, float]:
    """Time mining and loss with the backward pass, in this process.

    library (bool): The library's instead of ours.
    names (int): In the batch.
    width (int): Columns of the vectors.
    repeats (int): How often.
    threads (int): Of torch.
    RETURNS (tuple[float, float]): Median of the seconds, and peak memory in MB above
        what there was after a batch of 16 names.
    """
    torch.set_num_threads(threads)
    function = make_library() if library else ours
    torch.manual_seed(0)
    function(*random_vectors(16, width)).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    vectors, labels = random_vectors(names, width)
    seconds = []
    for _ in range(repeats + 1):
        vectors.grad = None
        started = time.perf_counter()
        function(vectors, labels).backward()
        seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return statistics.median(seconds[1:]), (peak - before) / 1024


def measure_step(
    encoder: str, pairs: Path, names: int, repeats: int, threads: int, precision: str
) -> float:
    """Time whole training steps, in this process.

    encoder (str): Folder or hub id.
    pairs (Path): pairs.tsv.
    names (int): In a batch.
    repeats (int): How many steps.
    threads (int): Of torch.
    precision (str): Of the encoder.
    RETURNS (float): Median of the seconds.
    """
    torch.set_num_threads(threads)
    overrides = {
        "encoder.base": encoder,
        "training.batch_size": names // 2,
        "training.chunks": max(names // 64, 1),
        "training.precision": precision,
    }
    settings = make_settings(read_config(None, overrides))
    tokenizer, parts = make_state(settings, "cpu", 0)
    with tempfile.TemporaryDirectory() as folder:
        corpus = build_corpus(
            pairs, Path(folder) / "corpus", tokenizer, max_length=25, lowercase=True
        )
        size, seconds = settings.training.batch_size, []
        for number in range(repeats + 1):
            batches = shuffled_batches(len(corpus), size=size, seed=0, epoch=number)
            batch = collate_batch(corpus, next(batches), settings)
            seconds.append(train_step(parts, batch, settings).seconds)
    return statistics.median(seconds[1:])


def main(
    encoder: str = typer.Option(..., help="Folder or hub id."),
    pairs: Path = typer.Option(..., help="pairs.tsv, of 1,024 pairs or more."),
    repeats: int = typer.Option(5, min=2, help="How often each is timed."),
    width: int = typer.Option(384, min=2, help="Columns of the vectors."),
    library: bool = typer.Option(True, help="Compare with pytorch-metric-learning."),
    threads: int = typer.Option(0, help="0 = torch's choice."),
) -> None:
    """encoder + pairs.tsv -> table"""
    msg.text(machine_line())
    threads = threads or torch.get_num_threads()
    precision = find_precision("cpu")
    rows: list[tuple[str, ...]] = []
    alone = multiprocessing.get_context("spawn")
    for names in (512, 1024, 2048):
        with alone.Pool(1, maxtasksperchild=1) as pool:
            step = pool.apply(
                measure_step, (encoder, pairs, names, repeats, threads, precision)
            )
        arguments = (names, width, repeats, threads)
        with alone.Pool(1, maxtasksperchild=1) as pool:
            own, memory = pool.apply(measure_loss, (False, *arguments))
        row = [
            f"{names:,}",
            f"{step:.2f} s",
            f"{own * 1000:.1f} ms",
            f"{own / step:.1%}",
        ]
        row.append(f"{memory:.0f} MB")
        if library:
            with alone.Pool(1, maxtasksperchild=1) as pool:
                theirs, peak = pool.apply(measure_loss, (True, *arguments))
            row += [f"{theirs * 1000:.0f} ms", f"{theirs / own:.1f}×", f"{peak:.0f} MB"]
        rows.append(tuple(row))
    header = ["Names", "A step", "Mining and loss", "Share", "Memory"]
    if library:
        header += ["The library", "as long", "Memory"]
    msg.table(rows, header=header, divider=True)
    msg.text(f"{precision}, {threads} threads, torch {torch.__version__}.")


if __name__ == "__main__":
    typer.run(main)
