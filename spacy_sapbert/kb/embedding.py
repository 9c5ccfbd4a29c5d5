"""Texts → vectors: of the name that a text is, or of what the encoder reads."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..linking.misspelled import Corrected
from .parts import Parts
from .spellings import Spellings
from .store import Store, name_key


class EmbeddedTexts(NamedTuple):
    """Embedded texts.

    Attributes:
        texts: What an order compares with names: the texts, or if they are corrected
            and no name even so, what was corrected.
        vectors: Unit vectors in float32, zero for texts that the encoder cannot read;
            those of corrected texts are as long as the share of letters that stay, so
            that no cosine is that of a name. Shape: (n, width).
        truncated: Texts longer than the maximum of the encoder, bool. Shape: (n,).
        readable: Texts of which the encoder has a token, bool. Shape: (n,).
        named: Texts with the vector of a name, bool. Shape: (n,).
        corrected: What the encoder reads in place of a text, by text.
    """

    texts: Sequence[str]
    vectors: np.ndarray
    truncated: np.ndarray
    readable: np.ndarray
    named: np.ndarray
    corrected: Mapping[str, Corrected]


class Embedder:
    """Embeds texts; one that is a name has the vector of its row."""

    def __init__(self, store: Store, parts: Parts, spellings: Spellings) -> None:
        self.store = store
        self.parts = parts
        self.spellings = spellings

    def embed(
        self, texts: Sequence[str], *, variants: bool = False, respell: bool = False
    ) -> EmbeddedTexts:
        """Embed texts; see `KnowledgeBase.embed`."""
        encoder = self.parts.encoder
        token_ids, truncated = encoder.tokenize(texts)
        ids = dict(zip(texts, token_ids, strict=True))
        rows = self.find_rows(ids)
        # Texts with the same token ids can have different variants.
        if variants:
            rows |= self.spellings.find_variants([t for t in ids if t not in rows])
        named = {*rows}
        corrected: dict[str, Corrected] = {}
        if respell:
            rest = [text for text in ids if text not in rows]
            found = self.spellings.respell(rest)
            corrected = {rest[number]: c for number, c in found.items()}
            changed, _ = encoder.tokenize([c.text for c in corrected.values()])
            new = dict(zip(corrected, changed, strict=True))
            ids |= new
            rows |= self.find_rows(new)
        used = {text: rows.get(text, name_key(i)) for text, i in ids.items()}
        encoded = {used[text]: i for text, i in ids.items() if text not in rows}
        known = [*dict.fromkeys(rows.values())]
        numbers = {key: number for number, key in enumerate([*known, *encoded])}
        vectors = encoder.encode([*encoded.values()])
        if known:
            of_rows = self.parts.index.vectors(np.array(known, dtype=np.int64))
            vectors = np.concatenate([of_rows, vectors])
        kept = [corrected[t].kept if t in corrected else 1.0 for t in texts]
        compared = {t: c.text for t, c in corrected.items() if t not in rows}
        return EmbeddedTexts(
            [compared.get(text, text) for text in texts],
            vectors[[numbers[used[text]] for text in texts]]
            * np.array(kept, dtype=np.float32)[:, None],
            np.array(truncated, dtype=bool),
            np.array([*map(bool, token_ids)], dtype=bool),
            np.array([text in named for text in texts], dtype=bool),
            corrected,
        )

    def find_rows(self, token_ids: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Return the row of each text that is a name, by the token ids of each text."""
        keys = {text: name_key(ids) for text, ids in token_ids.items()}
        rows = self.store.rows_of_keys(keys.values())
        return {text: rows[key] for text, key in keys.items() if key in rows}
