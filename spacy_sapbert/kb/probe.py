"""Does a knowledge base find its own names? Searches some before it is trusted."""

from typing import NamedTuple

import numpy as np

from ..errors import Errors, SapbertError
from .knowledge_base import KnowledgeBase

PROBED_ROWS = 1000
PROBED_NAMES = 200  # fewer, since the encoder runs
NEAREST = 10  # rows among which the concept of a name must be …
SAME_NAME = 0.02  # … with a cosine this close to 1: precisions and engines differ
SHARE = 0.9  # must be found: the search is approximate
PRECISION = 1e-4  # of the cosine of equal vectors


class ProbeResult(NamedTuple):
    """What was found, as shares of what was searched for.

    rows (float): Rows that find an equal vector first.
    names (float): Names that find their concept, embedded anew.
    """

    rows: float
    names: float


def choose_rows(kb: KnowledgeBase, most: int) -> np.ndarray:
    """Return row numbers, spread over all rows, int64. Shape: (up to most,)."""
    numbers = np.linspace(0, kb.rows - 1, min(most, kb.rows))
    return np.unique(numbers.astype(np.int64))


def probe_kb(kb: KnowledgeBase) -> ProbeResult:
    """Search rows by their own vectors, and names by what the encoder makes of them.

    RAISES (SapbertError): If fewer than `SHARE` of the rows find themselves, or of the
        names find their concept: then the index is damaged, or is of other names.
    """
    from ..encoder.name_encoder import encode_token_ids, tokenize_names

    rows = choose_rows(kb, PROBED_ROWS)
    _, scores = kb.search(kb.vectors(rows), 1)
    found = int((scores[:, 0] > 1 - PRECISION).sum())
    if found < SHARE * len(rows):
        raise SapbertError(Errors.E319.format(found=found, total=len(rows)))
    entries = kb.entries(choose_rows(kb, PROBED_NAMES))
    probed = [of_row[0] for of_row in entries.values()]
    token_ids, _ = tokenize_names(kb.encoder, [entry.alias for entry in probed])
    nearest, scores = kb.search(encode_token_ids(kb.encoder, token_ids), NEAREST)
    nearest = np.where(scores > 1 - SAME_NAME, nearest, -1)
    near = kb.entries(np.unique(nearest[nearest >= 0]))
    having = [
        {entry.cui for row in own.tolist() for entry in near.get(row, ())}
        for own in nearest
    ]
    right = sum(e.cui in cuis for e, cuis in zip(probed, having, strict=True))
    if right < SHARE * len(probed):
        raise SapbertError(Errors.E353.format(found=right, total=len(probed)))
    return ProbeResult(found / len(rows), right / max(len(probed), 1))
