"""One training step: embed a batch, mine it, and update the weights."""

import sys
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from tqdm import tqdm

from spacy_sapbert.encoder.huggingface import load_encoder
from spacy_sapbert.errors import SapbertError
from training.data.hierarchy import THRESHOLDS
from training.encoders.new_adapter import add_adapter, trainable_parameters
from training.losses.sapbert import hierarchical_loss
from training.trainer.batches import Batch
from training.trainer.distributed import SINGLE, Ranks, gather_vectors, sum_gradients
from training.trainer.embedding import NameEmbedder
from training.trainer.settings import TrainingSettings


class TrainingState(NamedTuple):
    """What a step changes: the encoder, its optimiser, and the scaler of fp16."""

    model: Any
    embedder: NameEmbedder
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler


@dataclass(slots=True)
class StepResult:
    """The log of one step.

    Attributes:
        loss: NaN and infinity included.
        mined: Share of all the batch's positives that the miner kept, 0 to 1.
        pairs: Lines of the batch.
        seconds: Duration of the step; on a GPU, which is not waited for at its end,
            with the backward pass of the step before instead of its own.
    """

    loss: float
    mined: float
    pairs: int
    seconds: float


def make_state(settings: TrainingSettings, ranks: Ranks) -> tuple[Any, TrainingState]:
    """Load the encoder and make its optimiser; return tokenizer and state."""
    encoder, training = settings.encoder, settings.training
    tokenizer, model = load_encoder(encoder.base)
    torch.manual_seed(training.seed)  # the same new weights in all ranks
    if encoder.adapter_reduction:
        add_adapter(model, encoder.adapter_reduction)
    torch.manual_seed(training.seed + ranks.rank)  # dropout differs
    model.to(ranks.device).train()
    optimizer = torch.optim.AdamW(
        trainable_parameters(model),
        lr=training.optimizer.learning_rate,
        weight_decay=training.optimizer.weight_decay,
        fused=True,
    )
    scaler = torch.amp.GradScaler(ranks.device, enabled=training.precision == "fp16")
    embedder = NameEmbedder(model, settings, ranks)
    return tokenizer, TrainingState(model, embedder, optimizer, scaler)


def train_step(
    state: TrainingState,
    batch: Batch,
    settings: TrainingSettings,
    *,
    ranks: Ranks = SINGLE,
) -> StepResult:
    """Embed and mine a batch, and update the weights once.

    Args:
        state: The encoder is in training mode.

    Returns:
        Loss and mined share. If the loss is not finite, the weights stay as they are.

    Raises:
        SapbertError: The memory of the GPU is too small.

    Source:
        Liu et al. (2021), §3.
    """
    while True:
        try:
            return try_step(state, batch, settings, ranks)
        except torch.cuda.OutOfMemoryError:
            state.optimizer.zero_grad(set_to_none=True)
            chunks = state.embedder.chunks * 2
            if settings.training.chunks != "auto" or ranks.world_size > 1:
                raise SapbertError(
                    "E004",
                    "Expected memory for a step on the GPU, but it has none left. "
                    f"Repeat the command with `--training.chunks {chunks}` to resume "
                    "at the last checkpoint.",
                ) from None
            if chunks > len(batch.rows.first) - 1:
                raise SapbertError(
                    "E004",
                    "Expected memory for a step on the GPU, but it has none left for "
                    "a batch in its smallest parts. Lower `--training.batch_size`, or "
                    "choose a smaller encoder.",
                ) from None
            state.embedder.use_less_memory()
            torch.cuda.empty_cache()
        tqdm.write(
            "The GPU has no memory left: from here, batches go through the encoder in "
            f"{chunks} parts, which is slower.",
            file=sys.stderr,
        )


def try_step(
    state: TrainingState, batch: Batch, settings: TrainingSettings, ranks: Ranks
) -> StepResult:
    """See `train_step`."""
    model, embedder, optimizer, scaler = state
    started = time.monotonic()
    training = settings.training
    own = embedder.embed(batch.rows)[: batch.sizes[ranks.rank]]
    vectors = gather_vectors(own, batch.sizes, ranks)  # (n, width)
    labels = batch.labels.to(model.device, non_blocking=True)
    name_ids = batch.name_ids.to(model.device, non_blocking=True)
    if batch.distances is None:
        positives, negatives = training.miner(vectors.detach(), labels, name_ids)
        loss = training.loss(vectors, positives, negatives)
        all_positives = (labels[:, None] == labels[None, :]).sum() - len(labels)
        mined = positives.sum() / all_positives.clamp(min=1)
    else:
        distances = batch.distances.to(model.device, non_blocking=True)
        loss = hierarchical_loss(
            vectors, distances, name_ids, THRESHOLDS, training.loss
        )
        mined = loss.new_ones(())  # families are not mined
    # No comparison with NaN is true: the miner keeps nothing and the loss would be 0.
    checked = torch.where(vectors.isfinite().all(), loss.detach(), torch.nan)
    value, share = torch.stack([checked, mined]).tolist()  # the only wait for a GPU
    if np.isfinite(value):
        scaler.scale(loss).backward()
        sum_gradients(model.parameters(), ranks)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    return StepResult(value, share, len(batch.lines), time.monotonic() - started)


def find_precision(device: str) -> str:
    """Return the fastest precision of a device, by a measurement on a CPU.

    Some processors with AVX-512 bf16 compute in it twice as fast as in float32, some
    half as fast, and no flag of the processor shows which.

    Args:
        device: "cpu" or "cuda".

    Returns:
        "bf16"; if that is missing or slow, "fp16" on a GPU and "float32" on a CPU.
    """
    if device == "cuda":
        # emulated bf16 would be slow
        return "bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16"
    seconds = {}
    for name, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        inputs = torch.ones(1024, 384, dtype=dtype)
        weights = torch.ones(1536, 384, dtype=dtype)
        times = []
        for _ in range(7):
            started = time.perf_counter()
            functional.linear(inputs, weights)
            times.append(time.perf_counter() - started)
        seconds[name] = min(times)
    return min(seconds, key=lambda name: seconds[name])
