"""Concepts → distinct tokenised names → the file of their vectors.

A stopped build leaves the vectors, and the plan that decides them, in a work folder.
"""

import json
import os
import shutil
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from ...encoder.encoder import Encoder, TokenIds
from ...errors import SapbertError, not_written
from ...io.progress import format_time, show_progress
from ...io.terminal import msg
from ...io.writing import write_json
from ...vocabularies.concepts import Concept
from ..folder.publication import lock_file
from ..folder.records import Counts
from ..indexes.backends import Backend, make_backend
from ..indexes.row_file import RowFile, encode_rows, not_finite, write_at
from ..knowledge_base import KnowledgeBase
from ..store import row_key
from .store_writer import create_store, not_readable, split_batches

ROWS_AT_ONCE = 8_192  # embedded between two flushes to the disk
TRIAL_PASSES = 8  # with names of all lengths
# In the work folder. Without the plan the rest is not used.
STATE, LOCK, VECTORS = "plan.json", "lock", "vectors"


@contextmanager
def lock_work_folder(output: Path) -> Iterator[Path]:
    """Create the work folder of a build, or continue in it.

    A build that fails leaves it only if there are vectors to continue with.
    """
    work = output.with_name(f".{output.name}.build")
    built = False
    try:
        work.mkdir(parents=True, exist_ok=True)
        with lock_file(work / LOCK, output, wait=0):
            try:
                yield work
                built = True
            finally:
                if built or not read_state(work):
                    remove_work_folder(work, output)
    except OSError as error:
        raise not_written(path=output, reason=error.strerror or error) from error


def remove_work_folder(work: Path, output: Path) -> None:
    """Rename, then remove the folder of a build: a part of it must not be continued."""
    aside = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        work = work.rename(aside)
    shutil.rmtree(work, ignore_errors=True)


def read_state(work: Path) -> dict[str, Any]:
    """Return the plan of a stopped build, and the number of rows done; may be empty."""
    try:
        state: dict[str, Any] = json.loads((work / STATE).read_bytes())
    except FileNotFoundError:
        return {}
    return state


def describe_index(index: Backend) -> dict[str, Any]:
    return {"index": {"name": index.name, "settings": index.settings}}


def check_plan(
    work: Path, plan: dict[str, Any], index: Backend | None, *, replace: bool
) -> dict[str, Any]:
    """Return the state of a stopped build with this plan; {} = none. Others are errors.

    With `replace` they are removed.
    """
    state = read_state(work)
    new = plan if index is None else plan | describe_index(index)
    names = sorted(key for key in new if state.get(key) != new[key])
    if not names:
        return state
    if state and not replace:
        raise other_vectors(
            work,
            ", ".join(names),
            "Repeat the command that began this build, pass `--force` to `kb build` to "
            "begin again, or remove the folder.",
        )
    for path in (work / STATE, work / VECTORS):
        path.unlink(missing_ok=True)
    return {}


class TokenizedNames:
    """The distinct tokenised names, numbered in the order in which they come."""

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}  # by key
        self.ids = array("i")  # of all rows, one after the other
        self.ends = array("q")  # of each row in `ids`

    def add(self, token_ids: TokenIds) -> int | None:
        """Return the row of a tokenised name; None if it has no token ids."""
        if not token_ids:
            return None
        row = self.rows.setdefault(row_key(token_ids), len(self.rows))
        if row == len(self.ends):
            self.ids.extend(token_ids)
            self.ends.append(len(self.ids))
        return row

    def token_ids(self, row: int) -> TokenIds:
        start = self.ends[row - 1] if row else 0
        return tuple(self.ids[start : self.ends[row]])

    def by_length(self) -> np.ndarray:
        """Return the rows sorted by their number of token ids. Shape: (rows,)."""
        lengths = np.diff(np.frombuffer(self.ends, dtype=np.int64), prepend=0)
        return np.argsort(lengths, kind="stable")


def read_names(
    concepts: Iterable[Concept], encoder: Encoder, path: Path
) -> tuple[TokenizedNames, Counts]:
    """Write concepts.db, number the names to embed, and count them for meta.json."""
    names = TokenizedNames()
    concept_count = alias_count = unreadable = 0
    path.unlink(missing_ok=True)  # of a stopped build
    with create_store(path) as store:
        for batch in split_batches(concepts):
            aliases = [alias for concept in batch for alias in concept.aliases]
            token_ids, _ = encoder.tokenize(aliases)
            rows = [names.add(ids) for ids in token_ids]
            concept_count += len(batch)
            alias_count += len(rows)
            unreadable += rows.count(None)
            store.add_all(batch, rows)
        if not names.rows:
            raise not_readable(f"{concept_count} concepts", "Check the vocabulary.")
        store.finish(names.rows)
    return names, Counts(
        concepts=concept_count,
        aliases=alias_count,
        rows=len(names.rows),
        unreadable=unreadable,
    )


def embed_rows(
    names: TokenizedNames,
    work: Path,
    encoder: Encoder,
    reused: KnowledgeBase | None,
    state: Mapping[str, Any],
    *,
    compact: bool,
    progress: bool,
) -> RowFile:
    """Embed rows, sorted by length; those that a stopped build has embedded stay.

    `state` is its plan and number of rows. Names of `reused` are not embedded.
    """
    if reused is not None and not compact:
        index = reused.manifest.index
        if make_backend(index.backend, index.settings).stores_16_bits:
            raise not_reusable(reused, "index, with 16 bits a value")
    sorted_rows, path = names.by_length(), work / VECTORS
    done: int = state["done"] if path.is_file() else 0
    left = len(sorted_rows) - done
    if progress and done:
        msg.info(f"Continuing a build that was stopped: {done:,} names are embedded")
    if progress and left and reused is None:
        speed = measure_speed(names, sorted_rows[done:], encoder)
        msg.info(
            f"Embedding takes about {format_time(left / speed)}: {left:,} names, in a "
            f"trial {speed:,.0f} a second. Other steps follow, which may take longer"
        )
    path.touch()
    with (
        open(path, "r+b") as file,
        show_progress(
            total=len(sorted_rows),
            initial=done,
            unit="names",
            desc="Embed",
            quiet=not progress,
        ) as bar,
    ):
        # Else the blocks would be on the disk in the order of the lengths of names.
        with suppress(OSError, AttributeError):
            size = len(sorted_rows) * encoder.width * (2 if compact else 4)
            os.posix_fallocate(file.fileno(), 0, size)
        for start in range(done, len(sorted_rows), ROWS_AT_ONCE):
            rows = sorted_rows[start : start + ROWS_AT_ONCE]
            vectors = embed_some(names, rows, encoder, reused, bar)
            write_at(file, rows, encode_rows(vectors, compact=compact))
            file.flush()
            os.fsync(file.fileno())
            write_json(work / STATE, {**state, "done": start + len(rows)})
    return RowFile(path, rows=len(sorted_rows), width=encoder.width, compact=compact)


def measure_speed(names: TokenizedNames, rows: np.ndarray, encoder: Encoder) -> float:
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


def embed_some(
    names: TokenizedNames,
    rows: np.ndarray,
    encoder: Encoder,
    reused: KnowledgeBase | None,
    bar: Any,
) -> np.ndarray:
    """Embed rows, in order of their length, and update a progress bar.

    The sums of an encoder depend on the shape of a pass, but not on its other names. So
    each pass has names of one length, filled up with repeated ones. (n,) → (n, width).
    """
    size = encoder.config.names_per_pass
    token_ids = [names.token_ids(row) for row in rows]
    vectors = np.empty((len(rows), encoder.width), dtype=np.float32)
    new = [*range(len(rows))]
    if reused is not None:
        keys = [row_key(ids) for ids in token_ids]
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


def not_reusable(kb: KnowledgeBase, other: str) -> SapbertError:
    fix = "Build without `--reuse`, or with the same settings."
    return other_vectors(kb.folder, other, fix)


def other_vectors(folder: Path, other: str, fix: str) -> SapbertError:
    return SapbertError(
        "E394",
        f"Expected to use the vectors in {folder}, but they are of another plan "
        f"(other: {other}). {fix}",
    )
