"""Training of one encoder in several processes, each with a GPU or some cores.

Every rank embeds its share of a batch, gets the vectors of all others, and computes the
whole loss. So the gradient of its own vectors is complete, and the gradients of the
weights only have to be summed.
"""

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.nn.utils import parameters_to_vector, vector_to_parameters

# The others wait while rank 0 tokenises all names.
LONGEST_WAIT = timedelta(hours=12)


class Ranks(NamedTuple):
    """The number of this process, from 0, the number of all, and "cpu" or "cuda"."""

    rank: int = 0
    world_size: int = 1
    device: str = "cpu"

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"


SINGLE = Ranks()


def start_ranks(device: str) -> Ranks:
    """Connect to the other processes that `torchrun` started, if there are any.

    Of "cuda:1" the number is chosen here, and the device is "cuda" from here on. Under
    `torchrun`, the number of the process on its machine chooses.
    """
    device, _, number = device.partition(":")
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    if device == "cuda":
        if world_size > 1:
            number = os.environ["LOCAL_RANK"]
        if number:
            torch.cuda.set_device(int(number))
    if world_size == 1:
        return Ranks(device=device)
    backend = "nccl" if device == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=LONGEST_WAIT)
    return Ranks(distributed.get_rank(), world_size, device)


def stop_ranks(ranks: Ranks) -> None:
    """Disconnect from the other processes."""
    if ranks.world_size > 1:
        distributed.destroy_process_group()


def barrier(ranks: Ranks) -> None:
    """Wait until all ranks have called this."""
    if ranks.world_size > 1:
        distributed.barrier()


def gather_vectors(own: Tensor, sizes: list[int], ranks: Ranks) -> Tensor:
    """Return the vectors of all ranks; those of this one keep their gradient.

    Args:
        own: Vectors of this rank. Shape: (sizes[ranks.rank], width).
        sizes: Number of vectors of each rank.

    Returns:
        In the order of the ranks. Shape: (sum of sizes, width).
    """
    if ranks.world_size == 1:
        return own
    # the exchanged blocks must have the same shape
    block = own.new_zeros(max(sizes), own.shape[1])
    block[: len(own)] = own.detach()
    blocks = [torch.empty_like(block) for _ in sizes]
    distributed.all_gather(blocks, block)
    parts = [block[:size] for block, size in zip(blocks, sizes, strict=True)]
    parts[ranks.rank] = own
    return torch.cat(parts)


def sum_gradients(parameters: Iterable[torch.nn.Parameter], ranks: Ranks) -> None:
    """Sum the gradients of all ranks in one exchange.

    The parameters have the same order in all ranks, and the same ones lack a gradient.
    """
    if ranks.world_size > 1:
        gradients = [each.grad for each in parameters if each.grad is not None]
        summed = parameters_to_vector(gradients)
        distributed.all_reduce(summed)
        vector_to_parameters(summed, gradients)


def any_rank(flags: list[bool], ranks: Ranks) -> list[bool]:
    """Return which flags are set in at least one rank."""
    if ranks.world_size == 1:
        return flags
    counts = torch.tensor(flags, dtype=torch.int32, device=ranks.device)
    distributed.all_reduce(counts)
    return [count > 0 for count in counts.tolist()]


def gather_states(state: Tensor, ranks: Ranks) -> list[Tensor]:
    """Return the random states of all ranks, uint8 on the CPU."""
    if ranks.world_size == 1:
        return [state]
    states: list[Any] = [None] * ranks.world_size
    distributed.all_gather_object(states, state)
    return states


def broadcast_value(value: Any, ranks: Ranks) -> Any:
    """Return the value of rank 0, in all ranks."""
    shared = [value]
    if ranks.world_size > 1:
        distributed.broadcast_object_list(shared, 0)
    return shared[0]
