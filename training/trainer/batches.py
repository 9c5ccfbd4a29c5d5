"""The files of a run → the batches of every step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spacy_sapbert.system.reading import file_digest
from training.data.hierarchy import FAMILY, Hierarchy, compute_distances, read_hierarchy
from training.data.shuffling import permute, shuffled_batches
from training.data.tokenized_pairs import Corpus, build_corpus, open_corpus
from training.errors import Errors, SapbertError
from training.trainer.distributed import ALONE, Ranks, wait_for_ranks
from training.trainer.settings import TrainingSettings

LENGTH_MULTIPLE = 8  # of padded names, for the matrix units of a GPU


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
    """A file of training data.

    name (str): "pairs", "relations" or "families".
    corpus (Corpus): Its names, tokenised.
    hierarchy (Hierarchy | None): For families, the parents of their concepts.
    """

    name: str
    path: Path
    corpus: Corpus
    hierarchy: Hierarchy | None = None

    @property
    def lines(self) -> Lines:
        return Lines(len(self.corpus), 1 if self.hierarchy is None else FAMILY)


@dataclass(slots=True)
class Batch:
    """The input of one step, padded.

    numbers (np.ndarray): The pairs of all processes. Shape: (pairs,).
    chunks (list[tuple[Tensor, Tensor]]): Token ids and attention masks of the names of
        this process, int64, sorted by length. Shape: (rows, length) each.
    rows (list[np.ndarray]): The names in each chunk. Shape: (rows,) each. If this
        process has none, the only chunk has a name that is not counted: passing back
        its empty gradient makes the same gradients as in the other processes, of zeros.
    sizes (list[int]): Number of names of each process.
    labels (Tensor): The concept of every name, int64. Shape: (sum of sizes,).
    names (Tensor): Every name as a number, int64. Shape: (sum of sizes,).
    distances (Tensor | None): For families, the distance between the concepts of every
        two names. Shape: (sum of sizes, sum of sizes).
    """

    numbers: np.ndarray
    chunks: list[tuple[Tensor, Tensor]]
    rows: list[np.ndarray]
    sizes: list[int]
    labels: Tensor
    names: Tensor
    distances: Tensor | None = None


def corpus_folders(folder: Path) -> dict[str, Path]:
    """Return the folder of each source's tokenised names, by its name."""
    others = ("relations", "families")
    beside = {name: folder.with_name(f"{folder.name}-{name}") for name in others}
    return {"pairs": folder, **beside}


def open_sources(
    pairs_path: Path,
    folder: Path,
    tokenizer: Any,
    settings: TrainingSettings,
    ranks: Ranks,
    progress_bar: bool,
) -> list[Source]:
    """Tokenise the files in the first process, and open the result in all.

    folder (Path): Folder for its tokenised names; those of other files are beside it.
    RETURNS (list[Source]): Pairs, then relations and families if there are any.
    """
    files = settings.hierarchy
    paths = {
        "pairs": pairs_path,
        "relations": settings.training.relations,
        "families": files.families,
    }
    sources = []
    for name, corpus_folder in corpus_folders(folder).items():
        path = paths[name]
        if path is None:
            continue
        if ranks.is_first:
            build_corpus(
                path,
                corpus_folder,
                tokenizer,
                max_length=settings.encoder.max_length,
                lowercase=settings.encoder.how.lowercase,
                progress=progress_bar,
            )
        wait_for_ranks(ranks)
        sources.append(Source(name, path, open_corpus(corpus_folder)))
    if files.families is not None and files.concepts is not None:
        lines = len(sources[-1].corpus)
        if lines % FAMILY:
            raise SapbertError(
                Errors.E758.format(path=files.families, group=FAMILY, lines=lines)
            )
        sources[-1] = sources[-1]._replace(hierarchy=read_hierarchy(files.concepts))
    return sources


def digest_sources(
    sources: Sequence[Source], settings: TrainingSettings
) -> dict[str, str]:
    """Return the sha256 of every file of a run."""
    digests = {f"{each.name}_sha256": each.corpus.pairs_sha256 for each in sources}
    if settings.hierarchy.concepts is not None:
        digests["hierarchy_sha256"] = file_digest(settings.hierarchy.concepts)
    return digests


def count_steps(files: Sequence[Lines], settings: TrainingSettings) -> int:
    """Return the number of steps of a whole run."""
    section = settings.training
    steps = sum(each.batches(section.batch_size) for each in files) * section.epochs
    return min(steps, section.steps) if section.steps else steps


def plan_batches(
    files: Sequence[Lines], settings: TrainingSettings, *, done: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield the lines of every step after the first `done` steps.

    The batches of all files are mixed in proportion.

    YIELDS (tuple[int, int, np.ndarray]): The step, from 0, the number of a file, and
        the numbers of its lines.
    """
    steps = count_steps(files, settings)
    size, seed = settings.training.batch_size, settings.training.seed
    ends = np.cumsum([each.batches(size) for each in files])
    in_epoch = int(ends[-1])
    while done < steps:
        epoch, start = divmod(done, in_epoch)
        places = permute(np.arange(in_epoch), in_epoch, seed=seed, epoch=epoch)
        order = np.searchsorted(ends, places, side="right")
        used = np.bincount(order[:start], minlength=len(files))
        streams = [
            shuffled_batches(
                each.groups,
                size=each.groups_per_batch(size),
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


def pad_names(
    corpus: Corpus, names: np.ndarray, *, multiple_of: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return padded token ids and attention mask of names, int64.

    names (np.ndarray): Numbers of names. Shape: (n,).
    multiple_of (int): Round the length up to a multiple of this.
    RETURNS (tuple[np.ndarray, np.ndarray]): Ids and mask. Shape: (n, length) each.
    """
    lengths = corpus.lengths(names)
    longest = -(-int(lengths.max()) // multiple_of) * multiple_of
    columns = np.arange(longest)
    mask = columns < lengths[:, None]  # (n, length)
    ids = np.full(mask.shape, corpus.pad, dtype=np.int64)
    places = corpus.starts[names][:, None] + columns
    ids[mask] = corpus.ids[places[mask]]
    return ids, mask.astype(np.int64)


def split_by_length(lengths: np.ndarray, chunks: int) -> list[np.ndarray]:
    """Split rows into at most `chunks` chunks of similar length, for little padding.

    RETURNS (list[np.ndarray]): At least one; that one is empty if there are no rows.
    """
    order = np.argsort(lengths, kind="stable")
    return np.array_split(order, min(chunks, max(len(order), 1)))


def collate_batch(
    corpus: Corpus,
    numbers: np.ndarray,
    settings: TrainingSettings,
    *,
    ranks: Ranks = ALONE,
    pin: bool = False,
    hierarchy: Hierarchy | None = None,
) -> Batch:
    """Build a batch, with the padded names of this process.

    numbers (np.ndarray): The pairs of the step. Shape: (pairs,).
    pin (bool): Use pinned memory, which a GPU reads fast.
    hierarchy (Hierarchy | None): For families, the parents of the concepts.
    RETURNS (Batch): For each process all first names, then all second ones.
    """
    shares = np.array_split(numbers, ranks.size)  # the pairs of each process
    names = [corpus.ends[share].T.reshape(-1) for share in shares]
    labels = np.concatenate([np.tile(corpus.labels[share], 2) for share in shares])
    own = names[ranks.own]
    rows = split_by_length(corpus.lengths(own), settings.training.chunks)
    multiple = LENGTH_MULTIPLE if pin else 1
    chunks = []
    for chosen in rows:
        embedded = own[chosen] if len(own) else names[0][:1]
        padded = pad_names(corpus, embedded, multiple_of=multiple)
        ids, mask = (torch.from_numpy(array) for array in padded)
        chunks.append((ids.pin_memory(), mask.pin_memory()) if pin else (ids, mask))
    distances = None
    if hierarchy is not None:
        distances = torch.from_numpy(
            compute_distances(hierarchy, labels, settings.hierarchy.distances)
        )
    return Batch(
        numbers,
        chunks,
        rows,
        [len(each) for each in names],
        torch.from_numpy(labels),
        torch.from_numpy(corpus.names[np.concatenate(names)]),
        distances,
    )


def iter_batches(
    sources: Sequence[Source],
    settings: TrainingSettings,
    *,
    done: int,
    ranks: Ranks,
    pin: bool,
) -> Iterator[tuple[int, Source, Batch]]:
    """Yield step, source and batch of every step after the first `done` steps."""
    files = [source.lines for source in sources]
    for step, file, numbers in plan_batches(files, settings, done=done):
        source = sources[file]
        batch = collate_batch(
            source.corpus,
            numbers,
            settings,
            ranks=ranks,
            pin=pin,
            hierarchy=source.hierarchy,
        )
        yield step, source, batch
        source.corpus.release()
