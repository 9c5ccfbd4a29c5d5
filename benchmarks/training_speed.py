"""Pairs a second of a training, and the share of the machine's peak that it reaches.

The other side is a plain loop as one would write it: every name padded to 25
wordpieces, mined and compared by pytorch-metric-learning, everything else the same.

python -m benchmarks.training_speed corpus/pairs.tsv --encoder models/minilm --bert-base
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer
from torch.nn import functional
from wasabi import msg

from benchmarks.machine import describe_machine, machine_line
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    save_encoder,
)
from spacy_sapbert.encoder.pooling import POOLINGS
from spacy_sapbert.system.writing import write_json
from training.data.prefetch import prefetch
from training.data.shuffling import shuffled_batches
from training.data.tokenized_pairs import Corpus, build_corpus
from training.encoders.embedding import DTYPES, autocast
from training.losses import miners as mining  # noqa: F401
from training.losses import multi_similarity as losses  # noqa: F401 (registers)
from training.losses import schedules  # noqa: F401
from training.trainer.batches import Source, iter_batches, pad_names
from training.trainer.distributed import ALONE
from training.trainer.settings import TrainingSettings, make_settings, read_config
from training.trainer.step import (
    TrainingState,
    find_precision,
    make_state,
    train_step,
)

ALL_PAIRS = 11_800_000  # of UMLS 2020AA
LONGEST = 25
Step = Callable[[], tuple[int, int]]  # takes a step; names and wordpieces in it


def make_bert_base(folder: Path, tokenizer: Any) -> Path:
    """Write an encoder of BERT-BASE's shape with random weights: as fast as the real.

    folder (Path): Where.
    tokenizer (PreTrainedTokenizerBase): Any with at most 30,522 wordpieces.
    RETURNS (Path): The folder.
    """
    from transformers import BertConfig, BertModel

    folder.mkdir()
    save_encoder(folder, tokenizer, BertModel(BertConfig()), EncoderSettings())
    return folder


def measure_peak(device: str, precision: str, size: int) -> float:
    """Time a product of square matrices.

    device (str): "cpu" or "cuda".
    precision (str): "bf16", "fp16" or "float32".
    size (int): Rows and columns.
    RETURNS (float): Floating-point operations a second.
    """
    dtype = DTYPES.get(precision, torch.float32)
    one = torch.randn(size, size, device=device).to(dtype)
    other = torch.randn(size, size, device=device).to(dtype)
    best = float("inf")
    for _ in range(8):
        wait(device)
        started = time.perf_counter()
        for _ in range(4):
            one @ other
        wait(device)
        best = min(best, (time.perf_counter() - started) / 4)
    return float(2 * size**3 / best)


def wait(device: str) -> None:
    """Let the device finish what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def ours(parts: TrainingState, corpus: Corpus, settings: TrainingSettings) -> Step:
    """Train as the project does."""
    pin = parts.model.device.type == "cuda"
    sources = [Source("pairs", Path("pairs.tsv"), corpus)]
    batches = prefetch(iter_batches(sources, settings, done=0, ranks=ALONE, pin=pin))

    def step() -> tuple[int, int]:
        _, _, batch = next(batches)
        train_step(parts, batch, settings)
        wordpieces = sum(int(mask.sum()) for _, mask in batch.chunks)
        return len(batch.labels), wordpieces

    return step


def plain(parts: TrainingState, corpus: Corpus, settings: TrainingSettings) -> Step:
    """Train as a plain loop does: pad to 25, mine and compare with the library."""
    from pytorch_metric_learning.losses import MultiSimilarityLoss
    from pytorch_metric_learning.miners import TripletMarginMiner

    miner = TripletMarginMiner(margin=0.2, type_of_triplets="all")
    loss_function = MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
    model, optimizer, scaler = parts
    device = model.device

    def batches() -> Iterator[np.ndarray]:
        epoch = 0
        while True:
            yield from shuffled_batches(
                len(corpus), size=settings.training.batch_size, seed=0, epoch=epoch
            )
            epoch += 1

    numbers = batches()

    def step() -> tuple[int, int]:
        batch = next(numbers)
        names = corpus.ends[batch].T.reshape(-1)
        ids, mask = (
            torch.from_numpy(array).to(device)
            for array in pad_names(corpus, names, multiple_of=LONGEST)
        )
        labels = torch.from_numpy(np.tile(corpus.labels[batch], 2)).to(device)
        with autocast(device.type, settings.training.precision):
            states = model(input_ids=ids, attention_mask=mask).last_hidden_state
        vectors = POOLINGS[settings.encoder.pooling](states.float(), mask)
        vectors = functional.normalize(vectors, dim=1)
        loss = loss_function(vectors, labels, miner(vectors, labels))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return len(names), int(mask.sum())

    return step


def measure(step: Step, device: str, *, steps: int, warm: int) -> dict[str, float]:
    """Time steps.

    step (Step): Takes one.
    device (str): "cpu" or "cuda".
    steps (int): How many are timed.
    warm (int): How many are not, before them.
    RETURNS (dict[str, float]): Median seconds, pairs and wordpieces of a step.
    """
    seconds, names, wordpieces = [], [], []
    for number in range(warm + steps):
        wait(device)
        started = time.perf_counter()
        counts = step()
        wait(device)
        if number >= warm:
            seconds.append(time.perf_counter() - started)
            names.append(counts[0])
            wordpieces.append(counts[1])
    return {
        "seconds": statistics.median(seconds),
        "pairs": statistics.mean(names) / 2,
        "wordpieces": statistics.mean(wordpieces),
    }


def measure_encoder(
    corpus: Corpus,
    overrides: dict[str, Any],
    device: str,
    *,
    steps: int,
    warm: int,
) -> dict[str, Any]:
    """Train an encoder in both ways.

    corpus (Corpus): The pairs.
    overrides (dict[str, Any]): Settings by their dotted names.
    device (str): "cpu" or "cuda".
    steps (int): How many are timed.
    warm (int): How many are not, before them.
    RETURNS (dict[str, Any]): What `measure` says of ours and of the plain loop, and
        how many weights the encoder has besides its table of wordpieces.
    """
    found: dict[str, Any] = {}
    for kind, maker in (("ours", ours), ("plain", plain)):
        compiled = overrides["training.compile"] and kind == "ours"
        settings = make_settings(
            read_config(None, {**overrides, "training.compile": compiled})
        )
        _, parts = make_state(settings, device, 0)
        found[kind] = measure(
            maker(parts, corpus, settings), device, steps=steps, warm=warm
        )
        table = parts.model.get_input_embeddings().weight
        found["weights"] = parts.model.num_parameters() - table.numel()
        del parts, table
        if device == "cuda":
            torch.cuda.empty_cache()
    return found


def render_row(name: str, names: int, found: dict[str, Any], peak: float) -> tuple:
    """Turn what was measured into a row of the table.

    name (str): Of the encoder.
    names (int): In a batch.
    found (dict[str, Any]): From `measure_encoder`.
    peak (float): Floating-point operations a second.
    RETURNS (Tuple): Texts.
    """
    mine, theirs = found["ours"], found["plain"]
    speed = mine["pairs"] / mine["seconds"]
    # two operations a weight forward and four backward, of true wordpieces alone
    work = 6 * found["weights"] * mine["wordpieces"] / mine["seconds"]
    return (
        name,
        f"{names:,}",
        f"{speed:,.0f}",
        f"{work / peak:.0%}",
        f"{theirs['pairs'] / theirs['seconds']:,.0f}",
        f"{theirs['seconds'] / mine['seconds']:.1f}×",
        f"{ALL_PAIRS / speed / 3600:.1f} h",
    )


def main(
    pairs: Path = typer.Argument(..., help="pairs.tsv"),
    encoder: list[str] = typer.Option(..., help="Folder or hub id; may be repeated."),
    bert_base: bool = typer.Option(False, "--bert-base", help="Its shape, too."),
    names: list[int] = typer.Option([512, 2048], help="In a batch; may be repeated."),
    steps: int = typer.Option(20, min=2, help="Timed, of each."),
    warm: int = typer.Option(5, min=1, help="Not timed, before them."),
    chunks: int = typer.Option(4, min=1, help="Of ours."),
    compile_encoder: bool = typer.Option(False, "--compile", help="Ours."),
    device: str = typer.Option("auto", help="auto, cpu or cuda."),
    matrix: int = typer.Option(0, min=0, help="Of the peak; 0 = 8192, 1024 on a CPU."),
    output: Path | None = typer.Option(None, help="JSON file to write."),
) -> None:
    """pairs.tsv + encoders -> table"""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    precision = find_precision(device)
    size = matrix or (8192 if device == "cuda" else 1024)
    peak = measure_peak(device, precision, size)
    rows: list[tuple] = []
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        tokenizer, _ = load_encoder(encoder[0])
        sources = list(encoder)
        if bert_base:
            sources.append(str(make_bert_base(Path(folder) / "bert-base", tokenizer)))
        corpus = build_corpus(
            pairs, Path(folder) / "corpus", tokenizer, max_length=25, lowercase=True
        )
        for source in sources:
            for count in names:
                overrides = {
                    "encoder.base": source,
                    "training.batch_size": count // 2,
                    "training.chunks": chunks,
                    "training.precision": precision,
                    "training.compile": compile_encoder,
                    "training.epochs": 1000,
                }
                found = measure_encoder(
                    corpus, overrides, device, steps=steps, warm=warm
                )
                results.append({"encoder": source, "names": count, **found})
                rows.append(render_row(Path(source).name, count, found, peak))
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    msg.text(machine_line())
    msg.text(f"{where}, {precision}, torch {torch.__version__}")
    msg.text(f"Peak {peak / 1e12:.2f} TFLOP/s, measured on a product of matrices.")
    hours = f"{ALL_PAIRS / 1e6:.1f} M pairs"
    header = ("Encoder", "Names", "Pairs/s", "Of peak", "Plain", "Ratio", hours)
    msg.table(rows, header=header, divider=True)
    if output:
        data = {"machine": describe_machine(), "device": where, "peak": peak}
        write_json(output, {**data, "results": results})


if __name__ == "__main__":
    typer.run(main)
