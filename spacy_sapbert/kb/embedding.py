"""Texts → vectors: those of the rows of an index, or of the encoder."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ..encoder.encoder import Embeddings
from ..linking.name_variants import choose_variant, list_variants
from ..linking.surface_forms import name_form
from .store import name_key

if TYPE_CHECKING:
    from .knowledge_base import KnowledgeBase


def embed_texts(
    kb: "KnowledgeBase", texts: Sequence[str], *, variants: bool = False
) -> Embeddings:
    """Embed texts; see `KnowledgeBase.embed`."""
    token_ids, truncated = kb.encoder.tokenize(texts)
    keys = [name_key(ids) for ids in token_ids]
    names = kb.store.rows_of_keys(keys)
    # Texts with the same token ids can have different variants.
    rows = {
        text: names[key] for key, text in zip(keys, texts, strict=True) if key in names
    }
    if variants:
        rows |= find_variants(kb, [text for text in texts if text not in rows])
    own = [text if text in rows else key for key, text in zip(keys, texts, strict=True)]
    new = {key: ids for key, ids in zip(own, token_ids, strict=True) if key not in rows}
    place = {key: number for number, key in enumerate([*rows, *new])}
    known = kb.vectors(np.fromiter(rows.values(), dtype=np.int64))
    computed = kb.encoder.encode([*new.values()])
    vectors = np.concatenate([known.reshape(-1, computed.shape[1]), computed])
    return Embeddings(
        vectors[[place[key] for key in own]],
        np.array(truncated, dtype=bool),
        np.array([bool(ids) for ids in token_ids], dtype=bool),
    )


def find_variants(kb: "KnowledgeBase", texts: Sequence[str]) -> dict[str, int]:
    """Find the row of an English name that is a variant of a text.

    texts (Sequence[str]): Texts that are no names.
    RETURNS (dict[str, int]): The row of each text that has such a variant.
    """
    variants = {text: list_variants(name_form(text)) for text in texts}
    forms = chain.from_iterable(variants.values())
    names = kb.store.names(forms, without=kb.foreign_origins("en"))
    rows = {text: choose_variant(each, names) for text, each in variants.items()}
    return {text: row for text, row in rows.items() if row is not None}
