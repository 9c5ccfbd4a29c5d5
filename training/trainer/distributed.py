"""Several processes, each with a GPU or some cores, that train one encoder together.

Every process embeds its share of a batch, sees the vectors of all the others, and
computes the whole loss. The gradient with respect to its own vectors is then complete,
so that the gradients of the weights have only to be summed.
"""

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, distributed

SUMMED_AT_ONCE = 16_000_000  # numbers


class Ranks(NamedTuple):
    """The processes of a run.

    own (int): The number of this one, from 0.
    size (int): How many there are.
    """

    own: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and tells."""
        return self.own == 0


ALONE = Ranks()


def start_ranks(device: str) -> Ranks:
    """Meet the other processes that `torchrun` started, if it did.

    device (str): "cpu" or "cuda".
    RETURNS (Ranks): This process and how many there are.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return ALONE
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    return Ranks(distributed.get_rank(), count)


def stop_ranks(ranks: Ranks) -> None:
    """Part from the other processes."""
    if ranks.size > 1:
        distributed.destroy_process_group()


def wait_for_ranks(ranks: Ranks) -> None:
    """Wait until all processes have come here."""
    if ranks.size > 1:
        distributed.barrier()


def split_batch(batch: np.ndarray, ranks: Ranks) -> list[np.ndarray]:
    """Part the pairs of a batch among the processes.

    batch (np.ndarray): Numbers of pairs. Shape: (pairs,).
    ranks (Ranks): The processes.
    RETURNS (list[np.ndarray]): The share of each; they differ by one at the most.
    """
    return np.array_split(batch, ranks.size)


def gather_vectors(own: Tensor, sizes: list[int], ranks: Ranks) -> Tensor:
    """Put the vectors of all processes together; those of this one keep their gradient.

    own (Tensor): Vectors of this process. Shape: (sizes[ranks.own], width).
    sizes (list[int]): How many vectors each process has.
    ranks (Ranks): The processes.
    RETURNS (Tensor): In the order of the processes. Shape: (sum of sizes, width).
    """
    if ranks.size == 1:
        return own
    # processes exchange blocks of one shape
    block = own.new_zeros(max(sizes), own.shape[1])
    block[: len(own)] = own.detach()
    blocks = [torch.empty_like(block) for _ in sizes]
    distributed.all_gather(blocks, block)
    parts = [each[:size] for each, size in zip(blocks, sizes, strict=True)]
    parts[ranks.own] = own
    return torch.cat(parts)


def sum_gradients(parameters: Iterable[torch.nn.Parameter], ranks: Ranks) -> None:
    """Add up the gradients of all processes, many parameters at once.

    parameters (Iterable[torch.nn.Parameter]): Those that are trained, in the same
        order everywhere; a gradient that is missing is missing everywhere.
    ranks (Ranks): The processes.
    """
    if ranks.size == 1:
        return
    waiting: list[Tensor] = []
    gradients = [each.grad for each in parameters if each.grad is not None]
    for number, gradient in enumerate(gradients):
        waiting.append(gradient)
        last = number + 1 == len(gradients)
        if last or sum(each.numel() for each in waiting) >= SUMMED_AT_ONCE:
            flat = torch.cat([each.reshape(-1) for each in waiting])
            distributed.all_reduce(flat)
            sizes = [each.numel() for each in waiting]
            for each, part in zip(waiting, flat.split(sizes), strict=True):
                each.copy_(part.view_as(each))
            waiting = []


def any_rank(flag: bool, ranks: Ranks, device: Any) -> bool:
    """Return whether a flag is set in any process.

    flag (bool): Of this process.
    ranks (Ranks): The processes.
    device (torch.device): Where tensors are exchanged.
    RETURNS (bool): The same in all of them.
    """
    if ranks.size == 1:
        return flag
    flags = torch.tensor(int(flag), device=device)
    distributed.all_reduce(flags)
    return bool(flags.item())


def gather_states(state: Tensor, ranks: Ranks, device: Any) -> list[Tensor]:
    """Collect the random states of all processes.

    state (Tensor): Of this process, uint8. Shape: (bytes,).
    ranks (Ranks): The processes.
    device (torch.device): Where tensors are exchanged.
    RETURNS (list[Tensor]): On the CPU, in the order of the processes.
    """
    if ranks.size == 1:
        return [state]
    states = [torch.empty_like(state, device=device) for _ in range(ranks.size)]
    distributed.all_gather(states, state.to(device))
    return [each.cpu() for each in states]


def share_number(number: float, ranks: Ranks, device: Any) -> float:
    """Return all processes the number of the first one.

    number (float): Of the first process; 0 in the others.
    ranks (Ranks): The processes.
    device (torch.device): Where tensors are exchanged.
    RETURNS (float): The same in all of them.
    """
    if ranks.size == 1:
        return number
    shared = torch.tensor(number, dtype=torch.float64, device=device)
    distributed.broadcast(shared, 0)
    return float(shared.item())
