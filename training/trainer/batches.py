"""The files of a run → the batches of every step."""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spacy_sapbert.errors import SapbertError
from spacy_sapbert.io.reading import file_digest
from spacy_sapbert.vocabularies.concepts import read_concepts
from training.data.dataset import PairDataset, build_dataset, open_dataset
from training.data.hierarchy import (
    FAMILY,
    Hierarchy,
    build_hierarchy,
    compute_distances,
)
from training.trainer.distributed import SINGLE, Ranks, barrier
from training.trainer.settings import RunPaths, TrainingSettings

BATCHES_AHEAD = 4
# Tokens of a row of names; longer ones leave less free, and cost more attention.
ROW_LENGTH = 64
# Rows of a batch on a GPU, where a step is recorded once for each number of rows.
ROW_MULTIPLE = 8


class Lines(NamedTuple):
    """The lines of a file; `group` lines in a row stay in one batch."""

    total: int
    group: int

    @property
    def groups(self) -> int:
        return self.total // self.group

    def groups_per_batch(self, size: int) -> int:
        return max(size // self.group, 1)

    def batches(self, size: int) -> int:
        """Return the number of batches of `size` lines in an epoch."""
        return -(-self.groups // self.groups_per_batch(size))


class Source(NamedTuple):
    """A file of training data: "pairs", "relations" or "families".

    Families have a hierarchy, the parents of their concepts.
    """

    name: str
    path: Path
    dataset: PairDataset
    hierarchy: Hierarchy | None = None

    @property
    def lines(self) -> Lines:
        group = 1 if self.hierarchy is None else FAMILY
        return Lines(len(self.dataset.pairs), group)


class Rows(NamedTuple):
    """Names side by side in rows of equal length, in their order, with little padding.

    Attributes:
        tokens: Token ids, position in the name, and the number of the name from 1; 0
            for padding. int64. Shape: (3, rows, length).
        places: Of the tokens of each name, counted row by row; after the last one that
            of the first one again. int64. Shape: (names, longest).
        lengths: Tokens of each name, int64. Shape: (names,).
        first: The first name of each row, and the number of names. Length: rows + 1.
    """

    tokens: Tensor
    places: Tensor
    lengths: Tensor
    first: np.ndarray


@dataclass(slots=True)
class Batch:
    """The input of one step.

    The names of all ranks have one order, that of the vectors.

    Attributes:
        lines: Numbers of the lines of all ranks. Shape: (pairs,).
        rows: The names of this rank. A rank without names embeds one that does not
            count, so that it makes the same gradients as the others, of zeros.
        sizes: Number of names of each rank.
        labels: The concept of every name, int64. Shape: (sum of sizes,).
        name_ids: A number for the text of every name, int64. Shape: (sum of sizes,).
        distances: For families, the distance between the concepts of every two names.
            Shape: (sum of sizes, sum of sizes).
    """

    lines: np.ndarray
    rows: Rows
    sizes: list[int]
    labels: Tensor
    name_ids: Tensor
    distances: Tensor | None = None


def open_sources(
    paths: RunPaths,
    tokenizer: Any,
    settings: TrainingSettings,
    ranks: Ranks,
    *,
    progress: bool,
) -> list[Source]:
    """Tokenise the files in rank 0, and open the result in all."""
    files = settings.hierarchy
    of_source = {
        "pairs": paths.pairs,
        "relations": settings.training.relations,
        "families": files.families,
    }
    sources = []
    for name, path in of_source.items():
        if path is None:
            continue
        if ranks.is_first:
            build_dataset(
                path,
                paths.datasets[name],
                tokenizer,
                max_length=settings.encoder.max_length,
                lowercase=settings.encoder.how.lowercase,
                progress=progress,
            )
        barrier(ranks)
        sources.append(Source(name, path, open_dataset(paths.datasets[name])))
    if files.families is not None and files.concepts is not None:
        lines = len(sources[-1].dataset.pairs)
        if lines % FAMILY:
            raise SapbertError(
                "E117",
                f"Expected families of {FAMILY} lines in {files.families}, but got "
                f"{lines} lines. Make the file with `python -m training families`.",
            )
        hierarchy = build_hierarchy(read_concepts(files.concepts))
        sources[-1] = sources[-1]._replace(hierarchy=hierarchy)
    return sources


def digest_sources(
    sources: Sequence[Source], settings: TrainingSettings
) -> dict[str, str]:
    """Return the sha256 of every file of a run."""
    digests = {
        f"{source.name}_sha256": source.dataset.meta.made_of.pairs_sha256
        for source in sources
    }
    if settings.hierarchy.concepts is not None:
        digests["hierarchy_sha256"] = file_digest(settings.hierarchy.concepts)
    return digests


def count_steps(files: Sequence[Lines], settings: TrainingSettings) -> int:
    """Return the number of steps of a whole run."""
    section = settings.training
    steps = sum(file.batches(section.batch_size) for file in files) * section.epochs
    return min(steps, section.steps) if section.steps else steps


def plan_batches(
    files: Sequence[Lines], settings: TrainingSettings, *, done: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the lines of every step after the first `done` steps.

    The batches of all files are mixed in proportion.

    Yields:
        The step, from 0, the number of a file, and the numbers of its lines.
    """
    steps = count_steps(files, settings)
    size, seed = settings.training.batch_size, settings.training.seed
    batches = [file.batches(size) for file in files]
    while done < steps:
        epoch, start = divmod(done, sum(batches))
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(np.repeat(np.arange(len(files)), batches))
        groups = [rng.permutation(file.groups) for file in files]
        taken = np.bincount(order[:start], minlength=len(files)).tolist()
        for number in order[start : start + steps - done].tolist():
            file, first = files[number], taken[number]
            taken[number] += 1
            per_batch = file.groups_per_batch(size)
            chosen = groups[number][first * per_batch : (first + 1) * per_batch]
            lines = chosen[:, None] * file.group + np.arange(file.group)
            yield done, number, lines.reshape(-1)
            done += 1


def collate_batch(
    source: Source,
    lines: np.ndarray,
    *,
    ranks: Ranks = SINGLE,
    several: bool = True,
) -> Batch:
    """Build the batch of some lines, with the names of this rank in rows.

    They are in pinned memory for a GPU, which reads it fast.

    Args:
        several: The encoder takes several names in a row.
    """
    dataset = source.dataset
    pairs = dataset.pairs[lines]
    shares = np.array_split(pairs, ranks.world_size)
    numbers = [share["names"].T.reshape(-1) for share in shares]
    labels = np.concatenate([np.tile(share["label"], 2) for share in shares])
    own = numbers[ranks.rank] if len(numbers[ranks.rank]) else numbers[0][:1]
    rows = arrange_names(
        dataset, own, several=several, multiple=ROW_MULTIPLE if ranks.is_gpu else 1
    )
    if ranks.is_gpu:
        tokens, places, lengths = (each.pin_memory() for each in rows[:3])
        rows = Rows(tokens, places, lengths, rows.first)
    distances = None
    if source.hierarchy is not None:
        distances = torch.from_numpy(compute_distances(source.hierarchy, labels))
    return Batch(
        lines,
        rows,
        [len(each) for each in numbers],
        torch.from_numpy(labels),
        torch.from_numpy(dataset.names["hash"][np.concatenate(numbers)]),
        distances,
    )


def arrange_names(
    dataset: PairDataset, numbers: np.ndarray, *, several: bool, multiple: int
) -> Rows:
    """Place names in rows, each after the one before if it still fits.

    Args:
        several: Else each name has a row of its own.
        multiple: Of the number of rows; the last ones are padding.
    """
    names = dataset.names[numbers]
    longest = names["tokens"].shape[1]
    lengths = names["length"].astype(np.int64)
    length = max(ROW_LENGTH, -(-longest // 8) * 8) if several else int(lengths.max())
    ends = np.cumsum(lengths)
    first = [0]
    while first[-1] < len(names):
        begin = first[-1]
        space = ends[begin] - lengths[begin] + length
        fitting = int(np.searchsorted(ends, space, "right")) if several else begin + 1
        first.append(fitting)
    row = np.repeat(np.arange(len(first) - 1), np.diff(first))
    start = ends - lengths  # of each name, in its row
    start -= start[np.array(first)[row]]
    offsets = np.arange(longest)
    is_token = offsets < lengths[:, None]  # (names, longest)
    flat = row * length + start  # (names,)
    places = flat[:, None] + np.where(is_token, offsets, 0)
    total = -(-(len(first) - 1) // multiple) * multiple
    tokens = np.zeros((3, total * length), np.int64)
    tokens[0] = dataset.meta.made_of.pad
    tokens[0, places[is_token]] = names["tokens"][is_token]
    tokens[1, places[is_token]] = np.broadcast_to(offsets, is_token.shape)[is_token]
    tokens[2, places[is_token]] = np.repeat(np.arange(1, len(names) + 1), lengths)
    return Rows(
        torch.from_numpy(tokens.reshape(3, total, length)),
        torch.from_numpy(places),
        torch.from_numpy(lengths),
        np.array(first),
    )


def iter_batches(
    sources: Sequence[Source],
    settings: TrainingSettings,
    *,
    done: int,
    ranks: Ranks,
    several: bool,
) -> Generator[tuple[int, Source, Batch], None, None]:
    """Yield step, source and batch of every step after the first `done` steps.

    Another thread builds some batches in advance. It ends with this generator.
    """
    plan = plan_batches([source.lines for source in sources], settings, done=done)

    def make_next() -> tuple[int, Source, Batch] | None:
        for step, number, lines in plan:
            source = sources[number]
            batch = collate_batch(source, lines, ranks=ranks, several=several)
            return step, source, batch
        return None

    with ThreadPoolExecutor(1, thread_name_prefix="batches") as pool:
        ready = deque(pool.submit(make_next) for _ in range(BATCHES_AHEAD))
        try:
            while (item := ready.popleft().result()) is not None:
                ready.append(pool.submit(make_next))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)
