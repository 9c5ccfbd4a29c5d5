"""Which lines of which file are trained on in each step, from beginning to end."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from training.data.batches import permute, shuffled_batches
from training.trainer.settings import TrainingSettings


class Lines(NamedTuple):
    """The lines of one file.

    total (int): How many there are.
    group (int): So many follow one another that belong in one batch.
    """

    total: int
    group: int = 1

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.total // self.group

    def at_once(self, size: int) -> int:
        """How many groups go into a batch of `size` lines, at least one."""
        return max(size // self.group, 1)

    def batches(self, size: int) -> int:
        """How many batches of `size` lines an epoch has."""
        return -(-self.groups // self.at_once(size))


def count_steps(files: Sequence[Lines], settings: TrainingSettings) -> int:
    """Count the steps of a whole run.

    files (Sequence[Lines]): What is trained on.
    settings (TrainingSettings): Batch size, epochs and steps.
    RETURNS (int): The steps.
    """
    steps = sum(each.batches(settings.batch_size) for each in files) * settings.epochs
    return min(steps, settings.steps) if settings.steps else steps


def mix_files(
    files: Sequence[Lines], *, size: int, seed: int, epoch: int
) -> np.ndarray:
    """Say from which file each batch of an epoch is, mixed in proportion.

    files (Sequence[Lines]): What is trained on.
    size (int): Lines in a batch.
    seed (int): Of the run.
    epoch (int): From 0.
    RETURNS (np.ndarray): The number of a file for each batch. Shape: (batches,).
    """
    ends = np.cumsum([each.batches(size) for each in files])
    total = int(ends[-1])
    places = permute(np.arange(total), total, seed=seed, epoch=epoch)
    return np.searchsorted(ends, places, side="right")


def planned_batches(
    files: Sequence[Lines], settings: TrainingSettings, *, done: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Return the batches of the run that are still to do.

    files (Sequence[Lines]): What is trained on.
    settings (TrainingSettings): Batch size, epochs, steps and seed.
    done (int): Steps that an earlier run did.
    YIELDS (tuple[int, int, np.ndarray]): The step, from 0, the number of a file, and
        the numbers of its lines.
    """
    steps = count_steps(files, settings)
    size, seed = settings.batch_size, settings.seed
    in_epoch = sum(each.batches(size) for each in files)
    while done < steps:
        epoch, start = divmod(done, in_epoch)
        order = mix_files(files, size=size, seed=seed, epoch=epoch)
        used = np.bincount(order[:start], minlength=len(files))
        streams = [
            shuffled_batches(
                each.groups,
                size=each.at_once(size),
                seed=seed,
                epoch=epoch,
                start=int(before),
            )
            for each, before in zip(files, used, strict=True)
        ]
        for file in order[start:].tolist():
            if done == steps:
                return
            group = files[file].group
            firsts = next(streams[file]) * group
            yield done, file, (firsts[:, None] + np.arange(group)).reshape(-1)
            done += 1
