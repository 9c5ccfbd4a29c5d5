"""One step of training: embed a batch, mine it, and move the weights."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spacy_sapbert.encoder.pooling import POOLINGS
from training.data.batches import pad_names, split_by_length
from training.data.hierarchy import Hierarchy, measure_distances
from training.data.tokenized_pairs import Corpus
from training.losses.multi_similarity import hierarchical_loss
from training.trainer.distributed import (
    ALONE,
    Ranks,
    gather_vectors,
    split_batch,
    sum_gradients,
)
from training.trainer.settings import TrainingSettings

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# so many wordpieces at a time suit the matrix units of a GPU
LENGTH_MULTIPLE = 8


@dataclass(slots=True)
class Batch:
    """What one step needs, padded and ready to be moved to the device.

    numbers (np.ndarray): The pairs of all processes. Shape: (pairs,).
    chunks (list[tuple[Tensor, Tensor]]): Ids and attention masks of the names of this
        process, int64, names of like length together. Shape: (rows, length) each.
    rows (list[np.ndarray]): Which of its names each chunk holds. Shape: (rows,) each.
    sizes (list[int]): How many names each process has.
    labels (Tensor): The concept of every name, int64. Shape: (sum of sizes,).
    names (Tensor): Every name as a number, int64. Shape: (sum of sizes,).
    distances (Tensor | None): How far the concepts of every two names are apart;
        None where only equal and different count. Shape: (sum of sizes,) twice.
    """

    numbers: np.ndarray
    chunks: list[tuple[Tensor, Tensor]]
    rows: list[np.ndarray]
    sizes: list[int]
    labels: Tensor
    names: Tensor
    distances: Tensor | None = None


@dataclass(slots=True)
class StepResult:
    """What one step did.

    loss (float): NaN and infinity included.
    mined (float): Share of all the batch's positives that the miner kept, 0 to 1.
    pairs (int): Pairs in the batch.
    seconds (float): What it took.
    """

    loss: float
    mined: float
    pairs: int
    seconds: float


def best_precision(device: str) -> str:
    """Find out in which precision the machine multiplies matrices faster.

    Processors with AVX-512 bf16 differ: some compute in it twice as fast as in
    float32, some half as fast, and no flag tells which.

    device (str): "cpu" or "cuda".
    RETURNS (str): "bf16"; where that is missing or slow "fp16" on a GPU, and "float32"
        on a CPU.
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


def autocast(device: str, precision: str) -> AbstractContextManager[Any]:
    """Run the encoder in half precision, if that is the precision.

    device (str): "cpu" or "cuda".
    precision (str): "bf16", "fp16" or "float32".
    RETURNS (ContextManager): To run the forward pass in.
    """
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device, dtype=DTYPES[precision])


def random_state(device: Any) -> Tensor:
    """Take the state of the random generator that dropout draws from.

    device (torch.device): Where the encoder is.
    RETURNS (Tensor): uint8, on the CPU. Shape: (bytes,).
    """
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.get_rng_state()


def set_random_state(state: Tensor, device: Any) -> None:
    """Put the random generator that dropout draws from back; see `random_state`."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


def collate_batch(
    corpus: Corpus,
    numbers: np.ndarray,
    settings: TrainingSettings,
    *,
    ranks: Ranks = ALONE,
    pin: bool = False,
    hierarchy: Hierarchy | None = None,
) -> Batch:
    """Gather the names of a batch and pad those of this process.

    corpus (Corpus): All pairs, tokenised.
    numbers (np.ndarray): The pairs of the step. Shape: (pairs,).
    settings (TrainingSettings): The number of chunks, and what is how far apart.
    ranks (Ranks): The processes.
    pin (bool): Into memory from which a GPU reads fast.
    hierarchy (Hierarchy | None): Of the concepts, if they are families.
    RETURNS (Batch): In each process's share all first names, then all second ones.
    """
    shares = split_batch(numbers, ranks)
    names = [corpus.ends[share].T.reshape(-1) for share in shares]
    labels = [np.tile(corpus.labels[share], 2) for share in shares]
    own = names[ranks.own]
    rows = split_by_length(corpus.lengths(own), settings.chunks)
    multiple = LENGTH_MULTIPLE if pin else 1
    chunks = []
    for chosen in rows:
        padded = pad_names(corpus, own[chosen], multiple_of=multiple)
        ids, mask = (torch.from_numpy(array) for array in padded)
        chunks.append((ids.pin_memory(), mask.pin_memory()) if pin else (ids, mask))
    together = np.concatenate(labels)
    distances = None
    if hierarchy is not None:
        distances = torch.from_numpy(
            measure_distances(hierarchy, together, settings.hierarchy.distances)
        )
    return Batch(
        numbers,
        chunks,
        rows,
        [len(each) for each in names],
        torch.from_numpy(together),
        torch.from_numpy(corpus.names[np.concatenate(names)]),
        distances,
    )


def embed_chunk(
    model: Any, pieces: Tensor, mask: Tensor, settings: TrainingSettings
) -> Tensor:
    """Run some names through the encoder.

    model (PreTrainedModel): The encoder.
    pieces (Tensor): Their wordpieces, looked up. Shape: (n, length, width).
    mask (Tensor): 1 for a wordpiece, 0 for padding. Shape: (n, length).
    settings (TrainingSettings): Pooling and precision.
    RETURNS (Tensor): Unit-length rows in float32. Shape: (n, width).
    """
    with autocast(model.device.type, settings.precision):
        states = model(inputs_embeds=pieces, attention_mask=mask).last_hidden_state
    pooled = POOLINGS[settings.pooling](states.float(), mask)
    return functional.normalize(pooled, dim=1)


def embed_batch(
    model: Any, batch: Batch, settings: TrainingSettings
) -> tuple[Tensor, Callable[[Tensor], None]]:
    """Embed the names of this process, in chunks of like length.

    model (PreTrainedModel): The encoder.
    batch (Batch): From `collate_batch`.
    settings (TrainingSettings): Pooling, precision, and whether to recompute.
    RETURNS (tuple[Tensor, Callable]): Unit-length rows in float32 without a graph,
        shape (n, width); and what passes their gradient on to the weights, once.
    SOURCE: Gao et al. (2021), "Scaling Deep Contrastive Learning Batch Size under
        Memory Limited Setup", for the gradient by chunks.
    """
    device = model.device
    chunks = [(i.to(device, non_blocking=True), m.to(device)) for i, m in batch.chunks]
    # All chunks look up their wordpieces at once: the gradient of a look-up is as
    # large as the whole table, and one of them a step is enough.
    flat = torch.cat([ids.reshape(-1) for ids, _ in chunks])
    table = model.get_input_embeddings()(flat)  # (wordpieces, width)
    masks = [mask for _, mask in chunks]
    pieces = [
        part.detach().view(*mask.shape, -1).requires_grad_(table.requires_grad)
        for part, mask in zip(
            table.split([mask.numel() for mask in masks]), masks, strict=True
        )
    ]
    before: list[Tensor] = []
    embedded: list[Tensor] = []
    with torch.set_grad_enabled(not settings.recompute):
        for piece, mask in zip(pieces, masks, strict=True):
            if settings.recompute:
                before.append(random_state(device))
            embedded.append(embed_chunk(model, piece, mask, settings))
    order = torch.from_numpy(np.argsort(np.concatenate(batch.rows))).to(device)
    vectors = torch.cat([each.detach() for each in embedded])[order]

    def pass_back(gradient: Tensor) -> None:
        after = random_state(device)
        for number, rows in enumerate(batch.rows):
            chunk = embedded[number]
            if settings.recompute:
                # the same dropout as the first time
                set_random_state(before[number], device)
                chunk = embed_chunk(model, pieces[number], masks[number], settings)
            chunk.backward(gradient[torch.from_numpy(rows).to(device)])
            embedded[number] = chunk.detach()  # lets go of the activations
        if settings.recompute:
            set_random_state(after, device)
        if table.requires_grad:
            table.backward(
                torch.cat([piece.grad.view(-1, table.shape[1]) for piece in pieces])
            )

    return vectors, pass_back


def train_step(
    model: Any,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    batch: Batch,
    settings: TrainingSettings,
    *,
    ranks: Ranks = ALONE,
) -> StepResult:
    """Embed, mine, and move the weights once.

    model (PreTrainedModel): The encoder, in training mode.
    optimizer (torch.optim.Optimizer): Its optimiser.
    scaler (torch.amp.GradScaler): Keeps small gradients alive in fp16.
    batch (Batch): From `collate_batch`.
    settings (TrainingSettings): The constants.
    ranks (Ranks): The processes.
    RETURNS (StepResult): The loss, NaN included; the weights do not move then.
    """
    started = time.monotonic()
    own, pass_back = embed_batch(model, batch, settings)  # (n, width)
    own.requires_grad_()
    vectors = gather_vectors(own, batch.sizes, ranks)  # (names, width)
    labels = batch.labels.to(model.device, non_blocking=True)
    names = batch.names.to(model.device, non_blocking=True)
    if batch.distances is None:
        positives, negatives = settings.miner(vectors.detach(), labels, names)
        loss = settings.loss(vectors, positives, negatives)
        same = labels[:, None] == labels[None, :]
        mined = int(positives.sum()) / max(int(same.sum()) - len(labels), 1)
    else:
        distances = batch.distances.to(model.device, non_blocking=True)
        thresholds = settings.hierarchy.distances.thresholds
        loss = hierarchical_loss(vectors, distances, names, thresholds, settings.loss)
        mined = 1.0  # nothing is left out
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
