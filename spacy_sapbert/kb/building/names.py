"""Concepts → the distinct tokenised names, and concepts.db."""

from array import array
from collections.abc import Iterable
from itertools import islice

import numpy as np

from ...encoder.encoder import Encoder, TokenIds
from ...errors import SapbertError
from ...vocabularies.concepts import Concept
from ..folder.records import Counts
from ..store import name_key
from .store_writer import StoreWriter

CONCEPTS_AT_ONCE = 2_000  # tokenised together


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
