"""Rows of names → vectors, in training."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from spacy_sapbert.encoder.pooling import POOLINGS
from training.trainer.batches import Rows
from training.trainer.distributed import Ranks
from training.trainer.settings import TrainingSettings

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
MOST_RECORDED = 8  # numbers of rows for which a step is recorded
PROBE = ((4, 6), (3, 5))  # tokens of the names of two rows
SAME = 1e-4  # largest difference of the states of two ways to compute them


def autocast(device: str, precision: str) -> AbstractContextManager[Any]:
    """Return the context for a forward pass in "bf16", "fp16" or "float32"."""
    if precision == "float32":
        return nullcontext()
    # A weight is used once in a pass, so no copy of it is kept.
    return torch.autocast(device, dtype=DTYPES[precision], cache_enabled=False)


class Layout(NamedTuple):
    """How an encoder takes several names in a row, each attending to itself alone.

    Attributes:
        first_position: Number of the first position of a name.
        mask_dimensions: Of its attention mask: 4 = numbers to add, one mask for all
            heads; 3 = 1 for what is attended to.
    """

    first_position: int
    mask_dimensions: int

    def arguments(self, tokens: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return positions and attention mask of rows; see `Rows.tokens`."""
        _, positions, names = tokens
        same = names[:, :, None] == names[:, None, :]  # (rows, length, length)
        if self.mask_dimensions == 3:
            mask = same.to(dtype)
        else:
            lowest = torch.finfo(dtype).min
            mask = same.new_zeros((), dtype=dtype).masked_fill(~same, lowest)[:, None]
        return {
            "position_ids": positions + self.first_position,
            "attention_mask": mask,
        }


@torch.no_grad()
def find_layout(model: Any) -> Layout | None:
    """Return how an encoder takes several names in a row, by a trial.

    Each must get the states that it has alone.

    Returns:
        None if it takes only one.
    """
    was_training = model.training
    model.eval()
    lengths = [length for row in PROBE for length in row]
    parts = np.cumsum(lengths)[:-1]
    length = max(map(sum, PROBE))
    is_token = np.arange(length) < np.array([[sum(row)] for row in PROBE])
    tokens = np.zeros((3, *is_token.shape), np.int64)
    known = model.get_input_embeddings().num_embeddings
    tokens[0, is_token] = np.random.default_rng(0).integers(0, known, sum(lengths))
    tokens[1, is_token] = np.concatenate([np.arange(each) for each in lengths])
    tokens[2, is_token] = np.repeat(np.arange(len(lengths)) + 1, lengths)
    rows = torch.from_numpy(tokens).to(model.device)
    places = torch.from_numpy(is_token).to(model.device)
    table = model.get_input_embeddings()(rows[0])  # (rows, length, width)
    alone = torch.cat(
        [
            model(
                inputs_embeds=part[None],
                attention_mask=torch.ones(1, len(part), device=model.device),
            ).last_hidden_state[0]
            for part in table[places].tensor_split(parts.tolist())
        ]
    )
    after_padding = (getattr(model.config, "pad_token_id", 0) or 0) + 1  # RoBERTa
    found = None
    for layout in (Layout(p, d) for d in (4, 3) for p in (0, after_padding)):
        arguments = layout.arguments(rows, table.dtype)
        try:
            states = model(inputs_embeds=table, **arguments).last_hidden_state[places]
        except (TypeError, ValueError, RuntimeError, IndexError):
            continue  # it takes no such positions or masks
        if (states - alone).abs().max() < SAME:
            found = layout
            break
    model.train(was_training)
    return found


class RowEncoder(nn.Module):
    """An encoder from rows of names to unit vectors.

    A recording changes the `forward` of its own module, so each has one.
    """

    def __init__(
        self, model: Any, layout: Layout | None, pooling: str, precision: str
    ) -> None:
        super().__init__()
        self.model = model
        self.layout = layout
        self.pooling = pooling
        self.precision = precision

    def forward(
        self, table: Tensor, tokens: Tensor, places: Tensor, lengths: Tensor
    ) -> Tensor:
        """Compute the vectors of names, in float32.

        Args:
            table: Input embeddings of the tokens. Shape: (rows, length, width).
            tokens, places, lengths: See `Rows`.

        Returns:
            Unit-length rows. Shape: (names, width).
        """
        if self.layout is None:
            arguments = {"attention_mask": (tokens[2] > 0).long()}
        else:
            dtype = DTYPES.get(self.precision, table.dtype)
            arguments = self.layout.arguments(tokens, dtype)
        with autocast(table.device.type, self.precision):
            states = self.model(inputs_embeds=table, **arguments).last_hidden_state
        if self.pooling == "cls":
            places = places[:, :1]
        mask = torch.arange(places.shape[1], device=places.device) < lengths[:, None]
        # (names, columns, width)
        own = states.flatten(0, 1).index_select(0, places.flatten())
        own = own.view(*places.shape, -1).float()
        return functional.normalize(POOLINGS[self.pooling](own, mask.float()), dim=1)


class NameEmbedder:
    """Computes the vectors of a batch, and keeps what is recorded for that.

    On a GPU the work of a step is recorded as a CUDA graph for each number of rows, and
    started by one call instead of a thousand.

    Attributes:
        layout: None = each name has a row of its own, and nothing is recorded.
        chunks: Parts in which a batch goes through the encoder. If there are several,
            the activations of a part are computed again for its gradient (gradient
            checkpointing), so that only those of one part are in memory.
    """

    def __init__(self, model: Any, settings: TrainingSettings, ranks: Ranks) -> None:
        self.model = model
        self.layout = find_layout(model)
        self.how = (settings.encoder.how.pooling, settings.training.precision)
        self.encoder = RowEncoder(model, self.layout, *self.how)
        chunks = settings.training.chunks
        self.chunks = 1 if chunks == "auto" else chunks
        self.may_record = ranks.is_gpu and self.layout is not None
        self.recorded: dict[tuple[int, ...], Any] = {}
        self.pool: Any = None

    def embed(self, rows: Rows) -> Tensor:
        """Return unit vectors, float32. Shape: (names, width)."""
        device = self.model.device
        tokens, places, lengths = (
            each.to(device, non_blocking=True) for each in rows[:3]
        )
        # One look-up for all: its gradient is as large as the embedding table.
        table = self.model.get_input_embeddings()(tokens[0])  # (rows, length, width)
        chunks = min(self.chunks, len(rows.first) - 1)
        if chunks == 1:
            return self.run_encoder(table, tokens, places, lengths)
        bounds = np.linspace(0, len(rows.first) - 1, chunks + 1).astype(int)
        parts = []
        for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
            first, last = rows.first[[begin, end]]
            of_part = (
                table[begin:end],
                tokens[:, begin:end],
                places[first:last] - begin * table.shape[1],
                lengths[first:last],
            )
            part = checkpoint(self.encoder, *of_part, use_reentrant=False)
            parts.append(part)
        return torch.cat(parts)

    def run_encoder(self, *arguments: Tensor) -> Tensor:
        """Compute vectors, by a recording for these shapes where there can be one."""
        shapes = (*arguments[1].shape, *arguments[2].shape)
        new = shapes not in self.recorded
        if not self.may_record or (new and len(self.recorded) == MOST_RECORDED):
            encoder: Any = self.encoder
        else:
            encoder = self.recorded.get(shapes) or self.record(arguments)
            self.recorded[shapes] = encoder
        vectors: Tensor = encoder(*arguments)
        return vectors

    def record(self, arguments: tuple[Tensor, ...]) -> Any:
        """Record the encoder for arguments of these shapes, forward and backward."""
        if self.pool is None:
            # They run one after another, so they can share their memory.
            self.pool = torch.cuda.graph_pool_handle()
            # Gradients are added in the stream of a recording; torch waits for it.
            expect = "set_warn_on_accumulate_grad_stream_mismatch"
            getattr(torch.autograd.graph, expect, bool)(False)
        table, *others = arguments
        examples = [table.detach().clone().requires_grad_(table.requires_grad)]
        examples += [each.clone() for each in others]
        with torch.random.fork_rng([table.device]):  # a resumed run records again
            return torch.cuda.make_graphed_callables(
                RowEncoder(self.model, self.layout, *self.how).train(),
                tuple(examples),
                allow_unused_input=True,
                pool=self.pool,
            )

    def use_less_memory(self) -> None:
        """Halve the parts of a batch, and forget what was recorded."""
        self.recorded.clear()
        self.pool = None
        self.may_record = False
        self.chunks *= 2
