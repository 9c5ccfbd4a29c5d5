"""Distinct tokenised names → the file of their vectors, embedded in shards."""

import os
import time
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...encoder.encoder import Encoder
from ...errors import Errors, SapbertError
from ...system.progress import format_time, show_progress
from ...system.terminal import msg
from ...system.writing import write_atomically
from ..indexes.choice import Choice, uses_compact_rows
from ..indexes.row_file import RowFile, encode_rows
from ..store import name_key
from .names import Names
from .plan import VECTORS

if TYPE_CHECKING:
    from ..knowledge_base import KnowledgeBase

SHARD_ROWS = 8_192  # names embedded between two saves
SHARDS_AT_ONCE = 64  # merged between two flushes to the disk
MERGED = ".done"
TRIAL_PASSES = 8  # with names of all lengths


def open_reused(path: Path, plan: dict[str, Any]) -> "KnowledgeBase":
    """Open a knowledge base whose vectors are as a build would compute them.

    path (Path): Its folder.
    plan (dict[str, Any]): See `check_plan`.
    RAISES (SapbertError): If it has another encoder, engine or precision.
    """
    from ..opening import open_kb

    kb = open_kb(path)
    record = kb.manifest.encoder
    differences = {
        # Its files have the settings too.
        "encoder": record.fingerprint != plan["fingerprint"],
        "engine": record.engine != plan["engine"],
        "precision": record.precision != plan["precision"],
    }
    for name, differs in differences.items():
        if differs:
            raise SapbertError(Errors.E393.format(path=path, name=name))
    return kb


def check_values(reused: "KnowledgeBase") -> None:
    """Check that a knowledge base has full vectors of 32 bits a value.

    RAISES (SapbertError): If not: others cannot be made of them.
    """
    index = reused.manifest.index
    if uses_compact_rows(Choice(index.backend, index.settings)):
        name = "index, with 16 bits a value,"
        raise SapbertError(Errors.E393.format(path=reused.folder, name=name))


def embed_rows(
    names: Names,
    folder: Path,
    encoder: Encoder,
    *,
    compact: bool,
    worker: tuple[int, int] = (0, 1),
    reused: "KnowledgeBase | None" = None,
    progress: bool,
) -> None:
    """Embed rows, sorted by length; shards that exist are not embedded again.

    names (Names): The rows.
    folder (Path): Folder of the shards.
    compact (bool): Store 16 bits a value.
    worker (tuple[int, int]): Number of this worker, from 0, and of all: it embeds the
        shards whose number has this remainder.
    reused (KnowledgeBase | None): Has the vectors of some names; see `open_reused`.
    progress (bool): Show a progress bar.
    RAISES (SapbertError): If a vector is not finite.
    """
    if reused is not None and not compact:
        check_values(reused)
    order = names.by_length()
    remainder, workers = worker
    shards = [
        (shard_path(folder, number), order[start : start + SHARD_ROWS])
        for number, start in enumerate(range(0, len(order), SHARD_ROWS))
        if number % workers == remainder
    ]
    missing = [shard for shard in shards if not is_embedded(shard[0])]
    total = sum(len(rows) for _, rows in shards)
    left = sum(len(rows) for _, rows in missing)
    if progress and left and reused is None:
        speed = measure_speed(
            names, np.concatenate([rows for _, rows in missing]), encoder
        )
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
            # Another worker may have been started with the same number.
            if not is_embedded(path):
                vectors = embed_shard(names, rows, encoder, reused, bar)
                write_shard(path, encode_rows(vectors, compact=compact))


def measure_speed(names: Names, rows: np.ndarray, encoder: Encoder) -> float:
    """Return how many names are embedded in a second, from a trial.

    rows (np.ndarray): Those to embed, in order of their length. Shape: (n,).
    """
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


def is_embedded(path: Path) -> bool:
    """Return whether a shard is there, or was merged."""
    return path.is_file() or path.with_suffix(MERGED).is_file()


def shard_path(folder: Path, number: int) -> Path:
    """Return the path of a shard."""
    return folder / f"shard-{number:06}.npy"


def merge_shards(
    order: np.ndarray, folder: Path, *, width: int, compact: bool
) -> RowFile:
    """Write the vectors of all shards to the file of all rows, and remove the shards.

    A shard is renamed and emptied when its rows are on the disk, so that the vectors
    are never there twice.

    order (np.ndarray): The row of each vector of the shards. Shape: (rows,).
    folder (Path): Folder of the shards.
    width (int): Width of the vectors.
    compact (bool): 16 bits a value.
    RETURNS (RowFile): The vectors. Shape: (rows, width).
    """
    matrix = RowFile(
        folder / VECTORS, rows=len(order), width=width, compact=compact, writable=True
    )
    written: list[Path] = []
    for number, start in enumerate(range(0, len(order), SHARD_ROWS)):
        path = shard_path(folder, number)
        if not path.with_suffix(MERGED).is_file():
            stored = np.load(path, allow_pickle=False)
            matrix.write(order[start : start + SHARD_ROWS], stored)
            written.append(path)
        if len(written) == SHARDS_AT_ONCE or start + SHARD_ROWS >= len(order):
            matrix.sync()
            for path in written:
                path.rename(path.with_suffix(MERGED))
            for path in folder.glob(f"shard-*{MERGED}"):
                os.truncate(path, 0)
            written.clear()
    return matrix


def embed_shard(
    names: Names,
    rows: np.ndarray,
    encoder: Encoder,
    reused: "KnowledgeBase | None",
    bar: Any,
) -> np.ndarray:
    """Embed rows and update a progress bar.

    Each pass has names of one length, and is filled up with repeated ones: the sums of
    an encoder depend on the shape of a pass, but not on its other names. So a name has
    the same vector whatever else is embedded.

    rows (np.ndarray): In order of their length. Shape: (n,).
    reused (KnowledgeBase | None): Has the vectors of some names.
    RETURNS (np.ndarray): Shape: (n, width).
    RAISES (SapbertError): If a vector is not finite.
    """
    size = encoder.config.names_per_pass
    token_ids = [names.token_ids(row) for row in rows]
    vectors = np.empty((len(rows), encoder.width), dtype=np.float32)
    known = np.zeros(len(rows), dtype=bool)
    if reused is not None:
        keys = [name_key(ids) for ids in token_ids]
        found = reused.store.rows_of_keys(keys)
        known[:] = [key in found for key in keys]
        vectors[known] = reused.vectors(
            np.array([found[key] for key in keys if key in found], dtype=np.int64)
        )
    bar.update(int(known.sum()))
    new = np.flatnonzero(~known).tolist()
    for _, same in groupby(new, key=lambda place: len(token_ids[place])):
        while places := list(islice(same, size)):
            batch = [token_ids[place] for place in places]
            filled = batch + batch[:1] * (size - len(batch))
            vectors[places] = encoder.encode(filled)[: len(batch)]
            bar.update(len(batch))
    if not np.isfinite(vectors).all():
        raise SapbertError(Errors.E315)
    return vectors


def write_shard(path: Path, vectors: np.ndarray) -> None:
    """Write a shard atomically."""
    with write_atomically(path) as file:
        np.save(file, vectors, allow_pickle=False)
