"""One step of training: embed a batch, mine it, and move the weights."""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ContextManager, List

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spacy_sapbert.pooling import POOLINGS
from training.batches import Pairs, Tokens, pad_names, split_by_length
from training.losses import MULTI_SIMILARITY_PRESETS, multi_similarity_loss
from training.mining import mine_hard_pairs
from training.settings import TrainingSettings


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
    RETURNS (str): "bf16" or "float32".
    """
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "float32"
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


def autocast(device: str, precision: str) -> ContextManager[Any]:
    """Run the encoder in bfloat16, if that is the precision.

    device (str): "cpu" or "cuda".
    precision (str): "bf16" or "float32".
    RETURNS (ContextManager): To run the forward pass in.
    """
    if precision == "bf16":
        return torch.autocast(device, dtype=torch.bfloat16)
    return nullcontext()


def embed_names(
    model: Any, tokens: Tokens, names: np.ndarray, settings: TrainingSettings
) -> Tensor:
    """Embed the names of a batch, in chunks of like length.

    model (PreTrainedModel): The encoder.
    tokens (Tokens): The wordpieces of all names.
    names (np.ndarray): Which names. Shape: (n,).
    settings (TrainingSettings): Pooling, chunks and precision.
    RETURNS (Tensor): Unit-length rows in float32, with gradient. Shape: (n, width).
    """
    device = model.device
    pool = POOLINGS[settings.pooling]
    chunks = split_by_length(tokens.lengths[names], settings.chunks)
    padded = [pad_names(tokens, names[rows]) for rows in chunks]
    # All chunks look up their wordpieces at once: the gradient of a look-up is as
    # large as the whole table, and one of them a step is enough.
    flat = torch.from_numpy(np.concatenate([ids.reshape(-1) for ids, _ in padded]))
    looked_up = model.get_input_embeddings()(flat.to(device))
    pieces = looked_up.split([ids.size for ids, _ in padded])
    vectors: List[Tensor] = []
    for piece, (ids, attended) in zip(pieces, padded, strict=True):
        mask = torch.from_numpy(attended).to(device)  # (rows, length)
        with autocast(device.type, settings.precision):
            states = model(
                inputs_embeds=piece.view(*ids.shape, -1), attention_mask=mask
            ).last_hidden_state
        vectors.append(pool(states.float(), mask))  # (rows, width)
    back = torch.from_numpy(np.argsort(np.concatenate(chunks))).to(device)
    return functional.normalize(torch.cat(vectors)[back], dim=1)


def train_step(
    model: Any,
    optimizer: torch.optim.Optimizer,
    tokens: Tokens,
    pairs: Pairs,
    batch: np.ndarray,
    settings: TrainingSettings,
) -> StepResult:
    """Embed, mine, and move the weights once.

    model (PreTrainedModel): The encoder, in training mode.
    optimizer (torch.optim.Optimizer): Its optimiser.
    tokens (Tokens): The wordpieces of all names.
    pairs (Pairs): All pairs.
    batch (np.ndarray): Numbers of the pairs of this step. Shape: (pairs,).
    settings (TrainingSettings): The constants.
    RETURNS (StepResult): The loss, NaN included; the weights do not move then.
    """
    started = time.monotonic()
    names = pairs.ends[batch].T.reshape(-1)  # all first names, then all second ones
    labels = torch.from_numpy(np.tile(pairs.labels[batch], 2)).to(model.device)
    vectors = embed_names(model, tokens, names, settings)  # (2 * pairs, width)
    numbers = torch.from_numpy(names).to(model.device)
    positives, negatives = mine_hard_pairs(
        vectors, labels, margin=settings.margin, names=numbers
    )
    constants = MULTI_SIMILARITY_PRESETS[settings.loss]
    loss = multi_similarity_loss(vectors, positives, negatives, **constants)
    # No comparison with NaN is true: the miner keeps nothing and the loss would be 0.
    value = loss.item() if bool(vectors.isfinite().all()) else float("nan")
    if np.isfinite(value):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    same = labels[:, None] == labels[None, :]
    possible = int(same.sum()) - len(labels)
    mined = int(positives.sum()) / max(possible, 1)
    return StepResult(value, mined, len(batch), time.monotonic() - started)
