"""Texts → vectors: of the row that a text has, or of what the encoder makes of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .parts import Parts
from .store import name_key


class EmbeddedTexts(NamedTuple):
    """Texts with their vectors."""

    vectors: np.ndarray  # unit, float32; zero if the encoder cannot read it (n, width)
    truncated: np.ndarray  # longer than the maximum of the encoder, bool (n,)
    readable: np.ndarray  # of which the encoder has a token, bool (n,)

    @property
    def usable(self) -> np.ndarray:
        """Texts with a vector that can be searched for, bool. Shape: (n,)."""
        usable: np.ndarray = np.isfinite(self.vectors).all(axis=1)
        return usable & self.vectors.any(axis=1) & self.readable

    def take(self, numbers: Sequence[int]) -> "EmbeddedTexts":
        return EmbeddedTexts(*(values[numbers] for values in self))


def embed_texts(parts: Parts, texts: Sequence[str]) -> EmbeddedTexts:
    """Embed texts; one with the token ids of a row has the vector of the row."""
    token_ids, truncated = parts.encoder.tokenize(texts)
    keys = [name_key(ids) for ids in token_ids]
    rows = parts.store.rows_of_keys(keys)
    new = {k: ids for k, ids in zip(keys, token_ids, strict=True) if k not in rows}
    numbers = {key: number for number, key in enumerate([*rows, *new])}
    vectors = parts.encoder.encode([*new.values()])
    if rows:
        of_rows = parts.index.vectors(np.array([*rows.values()], dtype=np.int64))
        vectors = np.concatenate([of_rows, vectors])
    return EmbeddedTexts(
        vectors[[numbers[key] for key in keys]],
        np.array(truncated, dtype=bool),
        np.array([*map(bool, token_ids)], dtype=bool),
    )
