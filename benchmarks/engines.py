"""Speed of the encoder by engine, and of mining and loss in its training."""

import json
import multiprocessing
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import typer
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.harness import machine_line, print_table
from benchmarks.linking_side import peak_megabytes
from spacy_sapbert.encoder.encoder import Encoder, EncoderConfig
from spacy_sapbert.encoder.export import export_encoder
from spacy_sapbert.encoder.huggingface import (
    EncoderSettings,
    load_encoder,
    read_settings,
    save_encoder,
)
from spacy_sapbert.encoder.openvino_engine import FOLDER
from spacy_sapbert.evaluation.rankers import read_dictionary
from spacy_sapbert.system.terminal import msg
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.losses.miners import mine_hard_pairs
from training.losses.multi_similarity import multi_similarity_loss

OURS = ("torch float32", "torch bf16", "openvino float32", "openvino bf16")
PLAIN = "transformers float32"
PAUSE = 0.5  # seconds in which the threads of the engine before stop spinning
NAMES, WARM_UP, SINGLES = 2000, 64, 100  # in batches, before them, one by one
BATCHES = (512, 1024, 2048)  # names in a training step
WIDTH = 384  # of the vectors to mine
REPEATS = 5  # measurements after one that warms up; the median counts


class PlainEngine:
    """An encoder in transformers alone, as an `Engine`; the tokenizer is shared."""

    def __init__(self, folder: Path, original: Any) -> None:
        _, self.model = load_encoder(str(folder))
        self.tokenizer = original.tokenizer
        self.positions, self.vocabulary = original.positions, original.vocabulary

    def states(self, ids: np.ndarray, mask: np.ndarray) -> Tensor:
        inputs = torch.from_numpy(ids), torch.from_numpy(mask)
        output: Tensor = self.model(*inputs).last_hidden_state
        return output


def open_engines(
    encoder: str, settings: EncoderSettings, folder: Path
) -> dict[str, Encoder]:
    """Open an encoder in every engine; `folder` is for its exports."""
    (folder / FOLDER).mkdir()
    save_encoder(folder, *load_encoder(encoder), settings)
    export_encoder(folder, folder / FOLDER, settings)
    encoders: dict[str, Encoder] = {}
    for name in OURS:
        engine, precision = name.split()
        config = EncoderConfig(engine, precision=precision)
        encoders[name] = Encoder.open(folder, config, settings=settings)
    first = encoders[OURS[0]]
    encoders[PLAIN] = replace(first, engine=PlainEngine(folder, first.engine))
    return encoders


def time_names(encoder: Encoder, names: Sequence[str]) -> dict[str, Any]:
    """Return the seconds of `all` names and of `one` name, and all `vectors`."""
    token_ids, _ = encoder.tokenize(names)
    time.sleep(PAUSE)
    encoder.encode(token_ids[:WARM_UP])
    start = time.perf_counter()
    vectors = encoder.encode(token_ids)
    seconds = time.perf_counter() - start
    alone = []
    for one in token_ids[:SINGLES]:
        start = time.perf_counter()
        encoder.encode([one])
        alone.append(time.perf_counter() - start)
    return {"all": seconds, "one": statistics.median(alone), "vectors": vectors}


def measure_engines(
    encoder: str = typer.Argument(..., help="Folder or hub id."),
    concepts: Path = typer.Argument(..., help="concepts.jsonl with short names."),
    pooling: str | None = typer.Option(None, help="cls or mean. [as the folder]"),
) -> None:
    """encoder + concepts.jsonl -> table of engines

    All get the same token ids in the same batches and take turns. "transformers" is the
    plain forward pass, without spacy-transformers.

    Example: python -m benchmarks.speed engines models/minilm concepts.jsonl --pooling
    mean
    """
    settings = read_settings(Path(encoder))
    settings = replace(settings, pooling=pooling) if pooling else settings
    every = sorted(read_dictionary(read_concepts(concepts)).names)
    names = random.Random(0).sample(every, min(NAMES, len(every)))
    with TemporaryDirectory() as folder:
        encoders = open_engines(encoder, settings, Path(folder))
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in encoders}
        for _ in range(REPEATS + 1):
            for name, opened in encoders.items():
                runs[name].append(time_names(opened, names))
    rows: list[tuple[str, ...]] = []
    first = runs[OURS[0]]
    for name, measured in runs.items():
        base, seconds = (
            statistics.median(run["all"] for run in some[1:])
            for some in (first, measured)
        )
        one = 1000 * statistics.median(run["one"] for run in measured[1:])
        cosine = (measured[0]["vectors"] * first[0]["vectors"]).sum(axis=1).min()
        speed, ratio = f"{len(names) / seconds:,.0f}", f"{base / seconds:.2f}"
        rows.append((name, speed, ratio, f"{one:.2f} ms", f"{cosine:.5f}"))
    msg.text(machine_line())
    header = ("Engine", "Names/s", f"{OURS[0]} = 1", "One alone", "Least cosine")
    print_table(header, rows)
    msg.text(
        f"{len(names):,} of {len(every):,} names, {torch.get_num_threads()} threads"
    )


def library_loss(vectors: Tensor, labels: Tensor) -> Tensor:
    """Mine and compute the loss as in pytorch-metric-learning."""
    from pytorch_metric_learning.losses import MultiSimilarityLoss
    from pytorch_metric_learning.miners import TripletMarginMiner

    miner = TripletMarginMiner(margin=0.2, type_of_triplets="all")
    loss = MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
    result: Tensor = loss(vectors, labels, miner(vectors, labels))
    return result


def own_loss(vectors: Tensor, labels: Tensor) -> Tensor:
    return multi_similarity_loss(vectors, *mine_hard_pairs(vectors, labels))


def random_vectors(rows: int) -> tuple[Tensor, Tensor]:
    """Return random unit vectors, two near each other for each label, and labels."""
    labels = torch.arange(rows // 2).repeat(2)
    centres = torch.randn(rows // 2, WIDTH)
    vectors = normalize(centres[labels] + torch.randn(rows, WIDTH), dim=1)
    return vectors.requires_grad_(), labels


def measure_loss(
    loss: Callable[[Tensor, Tensor], Tensor], names: int
) -> tuple[float, float]:
    """Time mining and loss with the backward pass, in this process.

    RETURNS (tuple[float, float]): Median of the seconds, and peak memory in MB above
        that of a batch of 16 names.
    """
    torch.manual_seed(0)
    loss(*random_vectors(16)).backward()
    before = peak_megabytes()
    vectors, labels = random_vectors(names)
    seconds = []
    for _ in range(REPEATS + 1):
        vectors.grad = None
        started = time.perf_counter()
        loss(vectors, labels).backward()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:]), peak_megabytes() - before


def measure_step(encoder: str, pairs: Path, names: int) -> float:
    """Return the median seconds of whole training steps."""
    with TemporaryDirectory() as folder:
        output = Path(folder) / "encoder"
        command = ["-m", "training", "train", str(pairs), str(output), "--quiet"]
        command += ["--encoder.base", encoder, "--training.steps", str(REPEATS + 1)]
        command += ["--training.batch_size", str(names // 2)]
        command += ["--training.chunks", str(max(names // 64, 1))]
        subprocess.run([sys.executable, *command], check=True)
        log = (output / "training.jsonl").read_text("utf8").splitlines()
    return statistics.median(json.loads(line)["seconds"] for line in log[1:])


def measure_mining(
    encoder: str = typer.Option(..., help="Folder or hub id."),
    pairs: Path = typer.Option(..., help="pairs.tsv."),
) -> None:
    """encoder + pairs.tsv -> share of mining and loss in a training step

    Example: python -m benchmarks.speed mining --encoder models/minilm --pairs
    corpus/sample/pairs.tsv
    """
    rows: list[tuple[str, ...]] = []
    # Each measurement has its own process, and so its own peak memory.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for names in BATCHES:
            step = measure_step(encoder, pairs, names)
            own = pool.apply(measure_loss, (own_loss, names))
            library = pool.apply(measure_loss, (library_loss, names))
            share = f"{own[0] / step:.1%}"
            ours = (f"{own[0] * 1000:.1f} ms", share, f"{own[1]:.0f} MB")
            ratio = f"{library[0] / own[0]:.1f}×"
            theirs = (f"{library[0] * 1000:.0f} ms", ratio, f"{library[1]:.0f} MB")
            rows.append((f"{names:,}", f"{step:.2f} s", *ours, *theirs))
    msg.text(machine_line())
    header = ("Names", "A step", "Mining and loss", "Share", "Memory")
    print_table((*header, "The library", "as long", "Memory"), rows)
