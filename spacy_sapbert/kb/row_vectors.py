"""Distinct tokenised names → the matrix of their vectors, embedded in shards."""

import json
import os
import shutil
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..encoder.name_encoder import NameModel, TokenIds, encode_token_ids
from ..errors import Errors, SapbertError
from ..system.writing import fcntl
from .folder.manifest import try_lock
from .store import name_key

SHARD_ROWS = 8_192  # names embedded between two saves


@contextmanager
def lock_work_folder(output: Path) -> Iterator[Path]:
    """Create the folder in which a knowledge base is built, or continue it.

    A build that fails leaves the folder only if there are vectors to continue with.

    output (Path): The knowledge base.
    YIELDS (Path): The folder, locked against other builds where the system has locks.
    RAISES (SapbertError): If another process builds the same knowledge base, or the
        folder cannot be written.
    """
    work = output.with_name(f".{output.name}.build")
    handle, owned = None, False
    try:
        while fcntl is not None and handle is None:
            work.mkdir(parents=True, exist_ok=True)
            handle = try_lock(work)
            # Another build that has just ended removes the folder.
            if handle is None and work.is_dir():
                raise SapbertError(Errors.E350.format(path=output, work=work))
        work.mkdir(parents=True, exist_ok=True)
        owned = True
        yield work
        shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise SapbertError(
            Errors.E004.format(path=output, reason=error.strerror or error)
        ) from error
    finally:
        if owned and not any(work.glob("shard-*.npy")):
            shutil.rmtree(work, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def drop_other_shards(folder: Path, plan: dict[str, Any]) -> None:
    """Keep the shards of a stopped build if its plan was the same, else remove them.

    folder (Path): Folder of the build.
    plan (dict[str, Any]): Everything that decides the vectors; plain JSON types.
    """
    path = folder / "plan.json"
    if not path.is_file() or path.read_bytes() != json.dumps(plan, indent=2).encode():
        for shard in folder.glob("shard-*.npy"):
            shard.unlink()
        path.write_text(json.dumps(plan, indent=2), "utf8")


class Names:
    """The distinct tokenised names, numbered in the order in which they come.

    rows (dict[bytes, int]): The row of each key.
    ids (array): The token ids of all rows, one after the other.
    ends (array): The end of each row in `ids`.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}
        self.ids = array("i")
        self.ends = array("q")

    def add(self, token_ids: TokenIds) -> int | None:
        """Return the row of a tokenised name; None for no token ids."""
        if not token_ids:
            return None
        row = self.rows.setdefault(name_key(token_ids), len(self.rows))
        if row == len(self.ends):
            self.ids.extend(token_ids)
            self.ends.append(len(self.ids))
        return row

    def token_ids(self, row: int) -> TokenIds:
        """Return the token ids of a row."""
        start = self.ends[row - 1] if row else 0
        return tuple(self.ids[start : self.ends[row]])

    def by_length(self) -> np.ndarray:
        """Return the rows sorted by their number of token ids. Shape: (rows,)."""
        lengths = np.diff(np.frombuffer(self.ends, dtype=np.int64), prepend=0)
        return np.argsort(lengths, kind="stable")


def embed_rows(
    names: Names, folder: Path, model: NameModel, *, progress: bool
) -> np.ndarray:
    """Embed all rows, sorted by length; shards that exist are not embedded again.

    names (Names): The rows.
    folder (Path): Folder of the shards.
    model (Model[list[str], Floats2d]): The encoder.
    progress (bool): Show a progress bar.
    RETURNS (np.ndarray): Memory-mapped, float32. Shape: (rows, width).
    RAISES (SapbertError): If a vector is not finite.
    """
    order = names.by_length()
    shape = (len(order), model.get_dim("nO"))
    matrix = np.memmap(folder / "vectors.f32", dtype="<f4", mode="w+", shape=shape)
    finished = len(list(folder.glob("shard-*.npy"))) * SHARD_ROWS
    with tqdm(
        total=len(order),
        initial=min(finished, len(order)),
        unit=" names",
        desc="Embed",
        disable=not progress,
    ) as bar:
        for number, start in enumerate(range(0, len(order), SHARD_ROWS)):
            rows = order[start : start + SHARD_ROWS]
            path = folder / f"shard-{number:06}.npy"
            if path.is_file():
                vectors = np.load(path, allow_pickle=False)
            else:
                vectors = embed_shard(names, rows, model, bar)
                write_shard(path, vectors)
            matrix[rows] = vectors
    matrix.flush()
    return matrix


def embed_shard(
    names: Names, rows: np.ndarray, model: NameModel, bar: Any
) -> np.ndarray:
    """Embed rows (shape: (n,)) and update a progress bar. Shape: (n, width)."""
    _, size, _ = model.attrs["run"]
    parts: list[np.ndarray] = []
    for start in range(0, len(rows), size):
        batch = [names.token_ids(row) for row in rows[start : start + size]]
        parts.append(encode_token_ids(model, batch))
        bar.update(len(batch))
    vectors = np.concatenate(parts)
    if not np.isfinite(vectors).all():
        raise SapbertError(Errors.E315)
    return vectors


def write_shard(path: Path, vectors: np.ndarray) -> None:
    """Write a shard to a temporary file, then rename it."""
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        np.save(file, vectors, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
