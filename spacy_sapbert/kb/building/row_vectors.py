"""Concepts → distinct tokenised names → the file of their vectors."""

import os
import time
from array import array
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from ...encoder.encoder import Encoder, TokenIds
from ...errors import SapbertError
from ...io.progress import format_time, show_progress
from ...io.terminal import msg
from ...io.writing import write_json
from ...vocabularies.concepts import Concept
from ..folder.records import Counts
from ..indexes.registry import make_backend
from ..indexes.row_file import RowFile, encode_rows, not_finite, write_at
from ..knowledge_base import KnowledgeBase
from ..store import name_key
from .plan import EMBEDDED, VECTORS, read_json
from .store_writer import StoreWriter

CONCEPTS_AT_ONCE = 2_000  # tokenised together
ROWS_AT_ONCE = 8_192  # embedded between two flushes to the disk
TRIAL_PASSES = 8  # with names of all lengths


class Names:
    """The distinct tokenised names, numbered in the order in which they come.

    Attributes:
        rows: The row of each key.
        ids: The token ids of all rows, one after the other.
        ends: The end of each row in `ids`.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, int] = {}
        self.ids = array("i")
        self.ends = array("q")

    def add(self, token_ids: TokenIds) -> int | None:
        """Return the row of a tokenised name; None if it has no token ids."""
        if not token_ids:
            return None
        row = self.rows.setdefault(name_key(token_ids), len(self.rows))
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
    concepts: Iterable[Concept], encoder: Encoder, store: StoreWriter
) -> tuple[Names, Counts]:
    """Number the names to embed, count them for meta.json, and write the concepts.

    A concept that comes twice is an error, and so are no readable names.
    """
    names = Names()
    concept_count = alias_count = unreadable = 0
    stream = iter(concepts)
    while batch := list(islice(stream, CONCEPTS_AT_ONCE)):
        aliases = [alias for concept in batch for alias in concept.aliases]
        token_ids, _ = encoder.tokenize(aliases)
        rows = [names.add(ids) for ids in token_ids]
        concept_count += len(batch)
        alias_count += len(rows)
        unreadable += rows.count(None)
        rest = iter(rows)
        for concept in batch:
            store.add(concept, list(islice(rest, len(concept.aliases))))
    if not names.rows:
        raise SapbertError(
            "E311",
            "Expected at least one name that the encoder can read, but got none in "
            f"{concept_count} concepts. Check the vocabulary, or choose an encoder "
            "that was trained on its script.",
        )
    store.finish(names.rows)
    return names, Counts(
        concepts=concept_count,
        aliases=alias_count,
        rows=len(names.rows),
        unreadable=unreadable,
    )


def embed_rows(
    names: Names,
    work: Path,
    encoder: Encoder,
    reused: KnowledgeBase | None,
    *,
    compact: bool,
    progress: bool,
) -> RowFile:
    """Embed rows, sorted by length; those that a stopped build has embedded stay.

    Names of a knowledge base to reuse are not embedded.
    """
    if reused is not None and not compact:
        index = reused.manifest.index
        if make_backend(index.backend, index.settings).stores_16_bits:
            raise not_reusable(reused, "index, with 16 bits a value,")
    order, path = names.by_length(), work / VECTORS
    done = read_json(work / EMBEDDED).get("done", 0) if path.is_file() else 0
    left = len(order) - done
    if progress and left and reused is None:
        speed = measure_speed(names, order[done:], encoder)
        msg.info(
            f"{left:,} names to embed, about {format_time(left / speed)}: in a trial, "
            f"{speed:,.0f} a second"
        )
    path.touch()
    with (
        open(path, "r+b") as file,
        show_progress(
            total=len(order),
            initial=done,
            unit="names",
            desc="Embed",
            quiet=not progress,
        ) as bar,
    ):
        # Else the blocks would be on the disk in the order of the lengths of names.
        with suppress(OSError, AttributeError):
            size = len(order) * encoder.width * (2 if compact else 4)
            os.posix_fallocate(file.fileno(), 0, size)
        for start in range(done, len(order), ROWS_AT_ONCE):
            rows = order[start : start + ROWS_AT_ONCE]
            vectors = embed_some(names, rows, encoder, reused, bar)
            write_at(file, rows, encode_rows(vectors, compact=compact))
            file.flush()
            os.fsync(file.fileno())
            write_json(work / EMBEDDED, {"done": start + len(rows)})
    return RowFile(path, rows=len(order), width=encoder.width, compact=compact)


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


def embed_some(
    names: Names,
    rows: np.ndarray,
    encoder: Encoder,
    reused: KnowledgeBase | None,
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


def not_reusable(kb: KnowledgeBase, name: str) -> SapbertError:
    return SapbertError(
        "E393",
        f"Expected to reuse the vectors of {kb.folder}, but its {name} is another than "
        "that of the new knowledge base. Build without `--reuse`, or with the same "
        "settings.",
    )
