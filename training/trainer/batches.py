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
from training.data.dataset import PairDataset, build_dataset, open_dataset, token_mask
from training.data.hierarchy import FAMILY, Hierarchy, compute_distances, read_hierarchy
from training.trainer.distributed import SINGLE, Ranks, barrier
from training.trainer.settings import RunPaths, TrainingSettings

LENGTH_MULTIPLE = 8  # of padded names, for the matrix units of a GPU
BATCHES_AHEAD = 4


class Lines(NamedTuple):
    """The lines of a file; `group` lines in a row stay in one batch."""

    total: int
    group: int = 1

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


@dataclass(slots=True)
class Batch:
    """The input of one step.

    The names of all ranks have one order, that of the vectors: by rank, and in a rank
    by length.

    Attributes:
        lines: Numbers of the lines of all ranks. Shape: (pairs,).
        micro_batches: Token ids and attention masks of the names of this rank, int64.
            A rank without names embeds one that does not count, so that it makes the
            same gradients as the others, of zeros. Shape: (names, length) each.
        sizes: Number of names of each rank.
        labels: The concept of every name, int64. Shape: (sum of sizes,).
        name_ids: A number for the text of every name, int64. Shape: (sum of sizes,).
        distances: For families, the distance between the concepts of every two names.
            Shape: (sum of sizes, sum of sizes).
    """

    lines: np.ndarray
    micro_batches: list[tuple[Tensor, Tensor]]
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
        sources[-1] = sources[-1]._replace(hierarchy=read_hierarchy(files.concepts))
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
    settings: TrainingSettings,
    *,
    ranks: Ranks = SINGLE,
) -> Batch:
    """Build the batch of some lines, with the padded names of this rank.

    They are in pinned memory for a GPU, which reads it fast.
    """
    dataset = source.dataset
    pin = ranks.device == "cuda"
    pairs = dataset.pairs[lines]
    rows, labels = [], []  # of each rank, sorted by length for little padding
    for share in np.array_split(pairs, ranks.world_size):
        share_rows = share["names"].T.reshape(-1)
        order = np.argsort(dataset.names["length"][share_rows], kind="stable")
        rows.append(share_rows[order])
        labels.append(np.tile(share["label"], 2)[order])
    own = rows[ranks.rank] if len(rows[ranks.rank]) else rows[0][:1]
    micro_batches = []
    for micro in np.array_split(own, min(settings.training.chunks, len(own))):
        ids, mask = pad_names(dataset, micro, multiple_of=LENGTH_MULTIPLE if pin else 1)
        micro_batches.append(
            (ids.pin_memory(), mask.pin_memory()) if pin else (ids, mask)
        )
    all_labels = np.concatenate(labels)
    distances = None
    if source.hierarchy is not None:
        distances = torch.from_numpy(compute_distances(source.hierarchy, all_labels))
    return Batch(
        lines,
        micro_batches,
        [len(each) for each in rows],
        torch.from_numpy(all_labels),
        torch.from_numpy(dataset.names["hash"][np.concatenate(rows)]),
        distances,
    )


def pad_names(
    dataset: PairDataset, rows: np.ndarray, *, multiple_of: int = 1
) -> tuple[Tensor, Tensor]:
    """Return padded token ids and attention mask of names, int64, (n, length) each."""
    names = dataset.names[rows]
    longest = -(-int(names["length"].max()) // multiple_of) * multiple_of
    mask = token_mask(names["length"], longest)
    ids = np.full(mask.shape, dataset.meta.made_of.pad, dtype=np.int64)
    tokens = names["tokens"][:, :longest]
    ids[:, : tokens.shape[1]] = tokens
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def iter_batches(
    sources: Sequence[Source],
    settings: TrainingSettings,
    *,
    done: int,
    ranks: Ranks,
) -> Generator[tuple[int, Source, Batch], None, None]:
    """Yield step, source and batch of every step after the first `done` steps.

    Another thread builds some batches in advance. It ends with this generator.
    """
    plan = plan_batches([source.lines for source in sources], settings, done=done)

    def make_next() -> tuple[int, Source, Batch] | None:
        for step, number, lines in plan:
            source = sources[number]
            return step, source, collate_batch(source, lines, settings, ranks=ranks)
        return None

    with ThreadPoolExecutor(1, thread_name_prefix="batches") as pool:
        ready = deque(pool.submit(make_next) for _ in range(BATCHES_AHEAD))
        try:
            while (item := ready.popleft().result()) is not None:
                ready.append(pool.submit(make_next))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)
