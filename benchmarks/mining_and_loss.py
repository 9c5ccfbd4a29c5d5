"""Mining and loss: share of a training step, and time against pytorch-metric-learning.

python -m benchmarks.mining_and_loss --encoder models/minilm
    --pairs corpus/sample/pairs.tsv
"""

import statistics
import time
from pathlib import Path
from typing import Callable, List, Tuple

import torch
import typer
from torch import Tensor
from torch.nn.functional import normalize
from wasabi import msg

from benchmarks.machine import machine_line
from spacy_sapbert.hf import load_encoder
from training.batches import read_pairs, shuffled_batches, tokenize_names
from training.losses import multi_similarity_loss
from training.mining import mine_hard_pairs
from training.settings import TrainingSettings
from training.steps import best_precision, train_step


def random_vectors(rows: int, width: int) -> Tuple[Tensor, Tensor]:
    """Make a batch of pairs whose two names are alike, as in training.

    rows (int): Names.
    width (int): Columns.
    RETURNS (Tuple[Tensor, Tensor]): Unit vectors with gradient, shape (rows, width),
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


def seconds_of(
    function: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, labels: Tensor
) -> float:
    """Time one loss with its backward pass."""
    vectors.grad = None
    started = time.perf_counter()
    function(vectors, labels).backward()
    return time.perf_counter() - started


def main(
    encoder: str = typer.Option(..., help="Folder or hub id."),
    pairs: Path = typer.Option(..., help="pairs.tsv"),
    repeats: int = typer.Option(5, min=2, help="How often each is timed."),
    library: bool = typer.Option(True, help="Compare with pytorch-metric-learning."),
    threads: int = typer.Option(0, help="0 = torch's choice."),
) -> None:
    """encoder + pairs.tsv -> table"""
    if threads:
        torch.set_num_threads(threads)
    msg.text(machine_line())
    tokenizer, model = load_encoder(encoder)
    model.train()
    data = read_pairs(pairs)
    tokens = tokenize_names(tokenizer, data.names, max_length=25)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    precision = best_precision("cpu")
    settings = TrainingSettings(base=encoder, chunks=8, precision=precision)
    batches = shuffled_batches(len(data), size=256, seed=0, epoch=0)
    steps = [
        train_step(model, optimizer, tokens, data, batch, settings).seconds
        for batch, _ in zip(batches, range(repeats + 1), strict=False)
    ]
    step = statistics.median(steps[1:])
    rows: List[Tuple[str, ...]] = []
    theirs = make_library() if library else None
    for names in (512, 1024, 2048):
        vectors, labels = random_vectors(names, model.config.hidden_size)
        seconds_of(ours, vectors, labels)
        mine, other = [], []
        for _ in range(repeats):
            mine.append(seconds_of(ours, vectors, labels))
            if theirs is not None:
                other.append(seconds_of(theirs, vectors, labels))
        own = statistics.median(mine)
        share = f"{own / step:.1%}" if names == 512 else "–"
        ratio = f"{statistics.median(other) / own:.1f}×" if other else "–"
        rows.append((str(names), f"{own * 1000:.1f} ms", share, ratio))
    header = ("Names", "Mining, loss, backward", "Share of a step", "The library takes")
    msg.table(rows, header=header, divider=True)
    msg.text(
        f"A step of 256 pairs: {step:.2f} s, {precision}, {torch.get_num_threads()} "
        f"threads, torch {torch.__version__}."
    )


if __name__ == "__main__":
    typer.run(main)
