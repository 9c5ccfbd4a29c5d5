"""Speed and memory of training: mining and loss, many pairs."""

import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from torch import Tensor
from torch.nn.functional import normalize
from tqdm import tqdm
from wasabi import msg

from benchmarks.harness import (
    machine_line,
    make_app,
    measure_process,
    print_table,
    run_cli,
)
from benchmarks.read_rrf import WORDS
from spacy_sapbert.system.writing import write_atomically
from training.data.shuffling import shuffled_batches
from training.data.tokenized_pairs import build_corpus
from training.losses.miners import mine_hard_pairs
from training.losses.multi_similarity import multi_similarity_loss
from training.trainer.batches import collate_batch
from training.trainer.settings import make_settings, read_config
from training.trainer.step import (
    find_precision,
    make_state,
    train_step,
)

LONGEST = 25  # tokens
BATCHES = (512, 1024, 2048)  # names

Loss = Callable[[Tensor, Tensor], Tensor]  # vectors, labels → loss

app = make_app()


@app.callback()
def training() -> None:
    """Measure the speed and memory of training.

    Example: python -m benchmarks.training many-pairs --encoder models/minilm --out OUT
    """


def make_library_loss() -> Loss:
    """Return mining and loss as in pytorch-metric-learning."""
    from pytorch_metric_learning.losses import MultiSimilarityLoss
    from pytorch_metric_learning.miners import TripletMarginMiner

    miner = TripletMarginMiner(margin=0.2, type_of_triplets="all")
    loss = MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
    return lambda vectors, labels: loss(vectors, labels, miner(vectors, labels))


def own_loss(vectors: Tensor, labels: Tensor) -> Tensor:
    return multi_similarity_loss(vectors, *mine_hard_pairs(vectors, labels))


class Speed(NamedTuple):
    """Median seconds, and mean pairs and tokens, of a step."""

    seconds: float
    pairs: float
    tokens: float


def random_vectors(rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Return random unit vectors, two near each other for each label, and labels."""
    labels = torch.arange(rows // 2).repeat(2)
    centres = torch.randn(rows // 2, width)
    vectors = normalize(centres[labels] + torch.randn(rows, width), dim=1)
    return vectors.requires_grad_(), labels


def measure_loss(
    library: bool, names: int, width: int, repeats: int, threads: int
) -> tuple[float, float]:
    """Time mining and loss with the backward pass, in this process.

    RETURNS (tuple[float, float]): Median of the seconds, and peak memory in MB above
        that of a batch of 16 names.
    """
    torch.set_num_threads(threads)
    function = make_library_loss() if library else own_loss
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
    encoder: str, pairs: Path, names: int, repeats: int, threads: int
) -> float:
    """Return the median seconds of whole training steps, in this process."""
    torch.set_num_threads(threads)
    overrides = {
        "encoder.base": encoder,
        "training.batch_size": names // 2,
        "training.chunks": max(names // 64, 1),
        "training.precision": find_precision("cpu"),
    }
    settings = make_settings(read_config(None, overrides))
    tokenizer, state = make_state(settings, "cpu", 0)
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = build_corpus(
            pairs,
            Path(folder) / "corpus",
            tokenizer,
            max_length=LONGEST,
            lowercase=True,
        )
        for epoch in range(repeats + 1):
            batches = shuffled_batches(
                len(corpus), size=names // 2, seed=0, epoch=epoch
            )
            batch = collate_batch(corpus, next(batches), settings)
            seconds.append(train_step(state, batch, settings).seconds)
    return statistics.median(seconds[1:])


def run_alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process, so that its peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.apply(function, arguments)


@app.command("mining")
def measure_mining(
    encoder: str = typer.Option(..., help="Folder or hub id."),
    pairs: Path = typer.Option(..., help="pairs.tsv, of 1,024 pairs or more."),
    repeats: int = typer.Option(5, min=2, help="How often each is timed."),
    width: int = typer.Option(384, min=2, help="Columns of the vectors."),
    threads: int = typer.Option(0, help="0 = torch's choice."),
) -> None:
    """encoder + pairs.tsv -> share of mining and loss in a training step

    Example: python -m benchmarks.training mining --encoder models/minilm --pairs
    corpus/sample/pairs.tsv
    """
    threads = threads or torch.get_num_threads()
    rows: list[tuple[str, ...]] = []
    for names in BATCHES:
        step = run_alone(measure_step, encoder, pairs, names, repeats, threads)
        own, library = (
            run_alone(measure_loss, library, names, width, repeats, threads)
            for library in (False, True)
        )
        ours = (f"{own[0] * 1000:.1f} ms", f"{own[0] / step:.1%}", f"{own[1]:.0f} MB")
        ratio = f"{library[0] / own[0]:.1f}×"
        theirs = (f"{library[0] * 1000:.0f} ms", ratio, f"{library[1]:.0f} MB")
        rows.append((f"{names:,}", f"{step:.2f} s", *ours, *theirs))
    msg.text(machine_line())
    header = ("Names", "A step", "Mining and loss", "Share", "Memory")
    print_table((*header, "The library", "as long", "Memory"), rows)
    msg.text(f"{find_precision('cpu')}, {threads} threads, torch {torch.__version__}.")


def make_lines(pairs: int, seed: int) -> Iterator[str]:
    """Yield lines of pairs.tsv with random names, one to fifty for each concept."""
    chance = random.Random(seed)
    words = WORDS.split()
    done, concept = 0, 0
    while done < pairs:
        concept += 1
        names = [
            f"{' '.join(chance.choices(words, k=chance.randint(1, 6)))} {concept}"
            for _ in range(chance.choice((2, 2, 2, 3, 3, 4, 6, 11)))
        ]
        for place, name in enumerate(names):
            for other in names[place + 1 :]:
                if name != other and done < pairs:
                    yield f"C{concept:07}\t{name}\t{other}\n"
                    done += 1


@app.command("many-pairs")
def measure_many_pairs(
    encoder: Path = typer.Option(..., help="Folder of the encoder to train."),
    out: Path = typer.Option(..., help="Folder for pairs and encoders."),
    pairs: int = typer.Option(12_000_000, min=1000, help="Number of pairs."),
    steps: int = typer.Option(200, min=1, help="Steps of training."),
    batch_size: int = typer.Option(64, min=2, help="Pairs in a step."),
    seed: int = typer.Option(0, help="Seed of the names."),
) -> None:
    """encoder -> table of pairs, seconds and peak memory

    Trains on random pairs, on a tenth of them and on all: the memory must not grow.

    Example: python -m benchmarks.training many-pairs --encoder models/minilm --out OUT
    """
    out.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, ...]] = []
    for count in (pairs // 10, pairs):
        path, target = out / f"pairs-{count}.tsv", out / f"encoder-{count}"
        if not path.is_file():
            with write_atomically(path) as file:
                for line in tqdm(make_lines(count, seed), total=count, disable=None):
                    file.write(line.encode("utf8"))
        command = ["-m", "training", "train", str(path), str(target), "--quiet"]
        command += ["--encoder.base", str(encoder), "--fresh"]
        command += ["--training.batch_size", str(batch_size)]
        size = f"{path.stat().st_size / 1e6:,.0f} MB"
        for number in (1, steps):
            seconds, peak = measure_process([*command, "--training.steps", str(number)])
            result = (f"{number:,}", f"{seconds:.0f} s", f"{peak:,.0f} MB")
            rows.append((f"{count:,}", size, *result))
    msg.text(machine_line())
    header = ("Pairs", "File", "Steps", "Time, with tokenising", "Peak memory")
    print_table(header, rows)
    msg.text(f"{batch_size} pairs a step, encoder {encoder.name}.")


if __name__ == "__main__":
    run_cli(app)
