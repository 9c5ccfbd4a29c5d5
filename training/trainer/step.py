"""One training step: embed a batch, mine it, and update the weights."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spacy_sapbert.encoder.huggingface import load_encoder
from training.encoders.embedding import embed_tokens
from training.encoders.new_adapter import add_adapter, trainable_parameters
from training.errors import Errors, SapbertError
from training.losses.multi_similarity import hierarchical_loss
from training.trainer.batches import Batch
from training.trainer.distributed import ALONE, Ranks, gather_vectors, sum_gradients
from training.trainer.settings import TrainingSettings


class TrainingState(NamedTuple):
    """What a step changes.

    model (PreTrainedModel): The encoder.
    optimizer (torch.optim.Optimizer): Its optimiser.
    scaler (torch.amp.GradScaler): Scales the loss in fp16 to avoid gradients of 0.
    """

    model: Any
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler


@dataclass(slots=True)
class StepResult:
    """The log of one step.

    loss (float): NaN and infinity included.
    mined (float): Share of all the batch's positives that the miner kept, 0 to 1.
    seconds (float): Duration of the step.
    """

    loss: float
    mined: float
    pairs: int
    seconds: float


def make_state(
    settings: TrainingSettings, device: str, rank: int
) -> tuple[Any, TrainingState]:
    """Load the encoder and make its optimiser; return tokenizer and state.

    rank (int): The number of this process; dropout differs between processes.
    """
    encoder, training = settings.encoder, settings.training
    tokenizer, model = load_encoder(encoder.base)
    torch.manual_seed(training.seed)  # the same new weights in all processes
    if encoder.adapter_reduction:
        add_adapter(model, encoder.adapter_reduction)
    elif encoder.adapter_only and not hasattr(model, "sapbert_adapter"):
        raise SapbertError(
            Errors.E616.format(setting="encoder.adapter_reduction", least=1, value=0)
        )
    torch.manual_seed(training.seed + rank)
    model.to(device).train()
    if training.compile:
        model.compile(dynamic=True)
    optimizer = torch.optim.AdamW(
        trainable_parameters(model),
        lr=training.optimizer.learning_rate,
        weight_decay=training.optimizer.weight_decay,
        fused=True,
    )
    scaler = torch.amp.GradScaler(device, enabled=training.precision == "fp16")
    return tokenizer, TrainingState(model, optimizer, scaler)


def find_precision(device: str) -> str:
    """Return the fastest precision of a device, by a measurement on a CPU.

    Some processors with AVX-512 bf16 compute in it twice as fast as in float32, some
    half as fast, and no flag of the processor shows which.

    device (str): "cpu" or "cuda".
    RETURNS (str): "bf16"; if that is missing or slow, "fp16" on a GPU and "float32" on
        a CPU.
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


def random_state(device: Any) -> Tensor:
    """Return the state of the random generator of dropout, uint8 on the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.get_rng_state()


def set_random_state(state: Tensor, device: Any) -> None:
    """Restore the state of the random generator of dropout."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


def embed_batch(
    model: Any, batch: Batch, settings: TrainingSettings
) -> tuple[Tensor, Callable[[Tensor], None]]:
    """Embed the names of this process, chunk by chunk.

    RETURNS (tuple[Tensor, Callable]): Unit-length rows in float32 without a graph,
        shape (n, width); and a function that passes their gradient to the weights.
    SOURCE: Gao et al. (2021), "Scaling Deep Contrastive Learning Batch Size under
        Memory Limited Setup", for the gradient by chunks.
    """
    device, recompute = model.device, settings.training.recompute
    how = {
        "pooling": settings.encoder.how.pooling,
        "precision": settings.training.precision,
    }
    chunks = [(i.to(device, non_blocking=True), m.to(device)) for i, m in batch.chunks]
    # One look-up for all chunks: its gradient is as large as the embedding table.
    flat = torch.cat([ids.reshape(-1) for ids, _ in chunks])
    table = model.get_input_embeddings()(flat)  # (tokens, width)
    masks = [mask for _, mask in chunks]
    inputs = [
        part.detach().view(*mask.shape, -1).requires_grad_(table.requires_grad)
        for part, mask in zip(
            table.split([mask.numel() for mask in masks]), masks, strict=True
        )
    ]
    before: list[Tensor] = []
    embedded: list[Tensor] = []
    with torch.set_grad_enabled(not recompute):
        for each, mask in zip(inputs, masks, strict=True):
            if recompute:
                before.append(random_state(device))
            embedded.append(embed_tokens(model, each, mask, **how))
    order = torch.from_numpy(np.argsort(np.concatenate(batch.rows))).to(device)
    vectors = torch.cat([each.detach() for each in embedded])[order]

    def pass_back(gradient: Tensor) -> None:
        after = random_state(device)
        for number, rows in enumerate(batch.rows):
            chunk = embedded[number]
            if recompute:
                # the same dropout as the first time
                set_random_state(before[number], device)
                chunk = embed_tokens(model, inputs[number], masks[number], **how)
            chunk[: len(rows)].backward(gradient[torch.from_numpy(rows).to(device)])
            embedded[number] = chunk.detach()  # frees the activations
        if recompute:
            set_random_state(after, device)
        if table.requires_grad:
            table.backward(
                torch.cat([each.grad.view(-1, table.shape[1]) for each in inputs])
            )

    return vectors, pass_back


def train_step(
    state: TrainingState,
    batch: Batch,
    settings: TrainingSettings,
    *,
    ranks: Ranks = ALONE,
) -> StepResult:
    """Embed and mine a batch, and update the weights once.

    state (TrainingState): Encoder in training mode, optimiser and scaler.
    RETURNS (StepResult): Loss and mined share. If the loss is not finite, the weights
        stay as they are.
    """
    model, optimizer, scaler = state
    started = time.monotonic()
    own, pass_back = embed_batch(model, batch, settings)  # (n, width)
    own.requires_grad_()
    vectors = gather_vectors(own, batch.sizes, ranks)  # (names, width)
    labels = batch.labels.to(model.device, non_blocking=True)
    names = batch.names.to(model.device, non_blocking=True)
    training = settings.training
    if batch.distances is None:
        positives, negatives = training.miner(vectors.detach(), labels, names)
        loss = training.loss(vectors, positives, negatives)
        same = labels[:, None] == labels[None, :]
        mined = int(positives.sum()) / max(int(same.sum()) - len(labels), 1)
    else:
        distances = batch.distances.to(model.device, non_blocking=True)
        thresholds = settings.hierarchy.distances.thresholds
        loss = hierarchical_loss(vectors, distances, names, thresholds, training.loss)
        mined = 1.0  # families are not mined
    # No comparison with NaN is true: the miner keeps nothing and the loss would be 0.
    value = loss.item() if bool(vectors.isfinite().all()) else float("nan")
    if np.isfinite(value):
        scaler.scale(loss).backward()
        assert own.grad is not None
        pass_back(own.grad)
        sum_gradients(model.parameters(), ranks)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    return StepResult(value, mined, len(batch.numbers), time.monotonic() - started)
