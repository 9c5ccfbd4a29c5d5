"""Distinct tokenised names → the file of their vectors, embedded in shards."""

import json
import os
import shutil
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoder.name_encoder import NameModel, TokenIds, encode_token_ids
from ..errors import Errors, SapbertError
from ..system.progress import show_progress
from ..system.writing import fcntl
from .folder.manifest import try_lock
from .indexes.choice import Choice, uses_compact_rows
from .indexes.row_file import RowFile, encode_rows
from .store import name_key

if TYPE_CHECKING:
    from .knowledge_base import KnowledgeBase

SHARD_ROWS = 8_192  # names embedded between two saves
SHARDS_AT_ONCE = 64  # merged between two flushes to the disk
PLAN, VECTORS, MERGED = "plan.json", "vectors", ".done"


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
        if owned and not any(work.glob("shard-*")):
            shutil.rmtree(work, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def read_plan(folder: Path) -> dict[str, Any]:
    """Return the plan of a stopped build; empty if there is none."""
    try:
        plan = json.loads((folder / PLAN).read_text("utf8"))
    except (OSError, ValueError):
        return {}
    return plan if isinstance(plan, dict) else {}


def resumed_index(folder: Path, plan: dict[str, Any]) -> Choice | None:
    """Return the index of a stopped build, None if its plan was another.

    The memory that is free may be another now, which must not cost the vectors.
    """
    known = read_plan(folder)
    if known | plan != known or known.keys() != {*plan, "index"}:
        return None
    return Choice(**known["index"])


def drop_other_shards(folder: Path, plan: dict[str, Any]) -> None:
    """Keep the shards of a stopped build if its plan was the same, else remove them.

    folder (Path): Folder of the build.
    plan (dict[str, Any]): Everything that decides the vectors; plain JSON types.
    """
    if read_plan(folder) != plan:
        for pattern in ("shard-*", VECTORS):
            for path in folder.glob(pattern):
                path.unlink()
        (folder / PLAN).write_text(json.dumps(plan, indent=2), "utf8")


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


def open_reused(path: Path, plan: dict[str, Any]) -> "KnowledgeBase":
    """Open a knowledge base whose vectors are as a build would compute them.

    path (Path): Its folder.
    plan (dict[str, Any]): See `drop_other_shards`.
    RAISES (SapbertError): If it has another encoder, engine or precision.
    """
    from .opening import open_kb

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
    model: NameModel,
    *,
    compact: bool,
    reused: "KnowledgeBase | None" = None,
    progress: bool,
) -> RowFile:
    """Embed all rows, sorted by length; shards that exist are not embedded again.

    names (Names): The rows.
    folder (Path): Folder of the shards.
    model (Model[list[str], Floats2d]): The encoder.
    compact (bool): Store 16 bits a value.
    reused (KnowledgeBase | None): Has the vectors of some names; see `open_reused`.
    progress (bool): Show a progress bar.
    RETURNS (RowFile): The vectors. Shape: (rows, width).
    RAISES (SapbertError): If a vector is not finite.
    """
    if reused is not None and not compact:
        check_values(reused)
    order = names.by_length()
    finished = len(list(folder.glob("shard-*.[nd]*"))) * SHARD_ROWS
    with show_progress(
        total=len(order),
        initial=min(finished, len(order)),
        unit="names",
        desc="Embed",
        quiet=not progress,
    ) as bar:
        for number, start in enumerate(range(0, len(order), SHARD_ROWS)):
            path = shard_path(folder, number)
            if not path.is_file() and not path.with_suffix(MERGED).is_file():
                rows = order[start : start + SHARD_ROWS]
                vectors = embed_shard(names, rows, model, reused, bar)
                write_shard(path, encode_rows(vectors, compact=compact))
    width = model.get_dim("nO")
    return merge_shards(order, folder, width=width, compact=compact)


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
    model: NameModel,
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
    _, size, _ = model.attrs["run"]
    token_ids = [names.token_ids(row) for row in rows]
    vectors = np.empty((len(rows), model.get_dim("nO")), dtype=np.float32)
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
            vectors[places] = encode_token_ids(model, filled)[: len(batch)]
            bar.update(len(batch))
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
