"""Distinct tokenised names → the file of their vectors, embedded in shards."""

import os
import time
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...encoder.encoder import Encoder
from ...io.progress import format_time, show_progress
from ...io.terminal import msg
from ...io.writing import write_atomically
from ..indexes.registry import make_backend
from ..indexes.row_file import RowFile, encode_rows, not_finite, write_at
from ..store import name_key
from .names import Names
from .plan import SHARD_ROWS, VECTORS
from .preparation import Preparation, not_reusable

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase

SHARDS_AT_ONCE = 64  # merged between two flushes to the disk
TRIAL_PASSES = 8  # with names of all lengths


def embed_rows(names: Names, prepared: Preparation, *, compact: bool) -> None:
    """Embed rows, sorted by length; shards that exist are not embedded again.

    Names of a knowledge base to reuse are not embedded.
    """
    encoder, reused = prepared.encoder, prepared.reused
    progress = prepared.options.progress
    if reused is not None and not compact:
        index = reused.manifest.index
        if make_backend(index.backend, index.settings).stores_16_bits:
            name = "index, with 16 bits a value,"
            raise not_reusable(path=reused.folder, name=name)
    shards = list_shards(prepared.work, names.by_length())
    missing = [(path, rows) for path, rows in shards if not path.is_file()]
    total = sum(len(rows) for _, rows in shards)
    left = sum(len(rows) for _, rows in missing)
    if progress and left and reused is None:
        every = np.concatenate([rows for _, rows in missing])
        speed = measure_speed(names, every, encoder)
        msg.info(
            f"{left:,} names to embed, about {format_time(left / speed)}: in a trial, "
            f"{speed:,.0f} a second"
        )
    with show_progress(
        total=total,
        initial=total - left,
        unit="names",
        desc="Embed",
        quiet=not progress,
    ) as bar:
        for path, rows in missing:
            vectors = embed_shard(names, rows, encoder, reused, bar)
            write_shard(path, encode_rows(vectors, compact=compact))


def list_shards(folder: Path, order: np.ndarray) -> list[tuple[Path, np.ndarray]]:
    """Return the path of each shard and its rows, from the rows in order of length."""
    return [
        (folder / f"shard-{number:06}.npy", order[start : start + SHARD_ROWS])
        for number, start in enumerate(range(0, len(order), SHARD_ROWS))
    ]


def measure_speed(names: Names, rows: np.ndarray, encoder: Encoder) -> float:
    """Return how many names are embedded in a second, from a trial with some rows."""
    size = encoder.config.names_per_pass
    starts = np.linspace(0, max(0, len(rows) - size), TRIAL_PASSES).astype(np.int64)
    passes = [
        [names.token_ids(row) for row in rows[start : start + size]] for start in starts
    ]
    encoder.encode(passes[0])  # the first one is slower
    before = time.perf_counter()
    for token_ids in passes:
        encoder.encode(token_ids)
    return sum(map(len, passes)) / (time.perf_counter() - before)


def merge_shards(
    order: np.ndarray, folder: Path, *, width: int, compact: bool
) -> RowFile:
    """Write the vectors of all shards, whose rows are `order`, to one file.

    A shard is emptied when its rows are on the disk, so that the vectors are never
    there twice.
    """
    path, shards = folder / VECTORS, list_shards(folder, order)
    path.touch()
    with open(path, "r+b") as file:
        for first in range(0, len(shards), SHARDS_AT_ONCE):
            part = shards[first : first + SHARDS_AT_ONCE]
            full = [shard for shard in part if shard[0].stat().st_size]
            for shard, rows in full:
                write_at(file, rows, np.load(shard, allow_pickle=False))
            file.flush()
            os.fsync(file.fileno())
            for shard, _ in full:
                os.truncate(shard, 0)
    return RowFile(path, rows=len(order), width=width, compact=compact)


def embed_shard(
    names: Names,
    rows: np.ndarray,
    encoder: Encoder,
    reused: "KnowledgeBase | None",
    bar: Any,
) -> np.ndarray:
    """Embed rows, in order of their length, and update a progress bar.

    Each pass has names of one length, and is filled up with repeated ones: the sums of
    an encoder depend on the shape of a pass, but not on its other names. So a name has
    the same vector whatever else is embedded. Shape: (n,) → (n, width).
    """
    size = encoder.config.names_per_pass
    token_ids = [names.token_ids(row) for row in rows]
    vectors = np.empty((len(rows), encoder.width), dtype=np.float32)
    new = [*range(len(rows))]
    if reused is not None:
        keys = [name_key(ids) for ids in token_ids]
        known = reused.store.rows_of_keys(keys)
        old = [number for number, key in enumerate(keys) if key in known]
        new = [number for number, key in enumerate(keys) if key not in known]
        old_rows = np.array([known[keys[number]] for number in old], dtype=np.int64)
        vectors[old] = reused.vectors(old_rows)
        bar.update(len(old))
    for _, same in groupby(new, key=lambda number: len(token_ids[number])):
        while numbers := list(islice(same, size)):
            batch = [token_ids[number] for number in numbers]
            filled = batch + batch[:1] * (size - len(batch))
            vectors[numbers] = encoder.encode(filled)[: len(batch)]
            bar.update(len(batch))
    if not np.isfinite(vectors).all():
        raise not_finite()
    return vectors


def write_shard(path: Path, vectors: np.ndarray) -> None:
    """Write a shard atomically."""
    with write_atomically(path) as file:
        np.save(file, vectors, allow_pickle=False)
