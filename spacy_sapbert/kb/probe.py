"""What a new knowledge base finds of its own names: checks and recall."""

from typing import NamedTuple

import numpy as np

from ..errors import SapbertError
from .folder.records import Recall
from .indexes.exact import search_rows
from .knowledge_base import KnowledgeBase

PROBED_ROWS = 1000
PROBED_NAMES = 200  # fewer, since the encoder runs
NEAREST = 10  # rows among which the concept of a name must be …
SAME_NAME = 0.02  # … with a cosine this close to 1: precisions and engines differ
SHARE = 0.9  # must be found: the search is approximate
PRECISION = 1e-4  # of the cosine of equal vectors
RECALL_NAMES = 500
FEWEST_RECALL_NAMES = 50
COMPARED = 200_000_000  # pairs of vectors compared to measure recall, at most


class ProbeResult(NamedTuple):
    """Shares of the rows that find an equal vector, of the names their concept."""

    rows: float
    names: float


def choose_rows(kb: KnowledgeBase, most: int) -> np.ndarray:
    """Return up to `most` rows that have a name, spread over all. int64, (n,)"""
    left = np.ones(kb.rows, dtype=bool)
    left[kb.store.hidden_rows()] = False
    rows = np.flatnonzero(left)
    numbers = np.linspace(0, len(rows) - 1, min(most, len(rows)))
    return rows[np.unique(numbers.astype(np.int64))]


def probe_kb(kb: KnowledgeBase) -> ProbeResult:
    """Check that rows find their own vectors, and encoded names their concepts."""
    rows = choose_rows(kb, PROBED_ROWS)
    if not len(rows):  # edits may have removed all
        return ProbeResult(1.0, 1.0)
    _, scores = kb.search(kb.vectors(rows), 1)
    equal = int((scores[:, 0] > 1 - PRECISION).sum())
    if equal < SHARE * len(rows):
        raise wrong_index("rows to find their own vectors", equal, len(rows))
    entries = kb.entries(choose_rows(kb, PROBED_NAMES))
    probed = [of_row[0] for of_row in entries.values()]
    vectors = kb.encoder.embed([entry.alias for entry in probed])
    nearest, scores = kb.search(vectors, NEAREST)
    nearest = np.where(scores > 1 - SAME_NAME, nearest, -1)
    near = kb.entries(np.unique(nearest[nearest >= 0]))
    right = sum(
        any(entry.cui == other.cui for row in found_rows for other in near.get(row, ()))
        for entry, found_rows in zip(probed, nearest.tolist(), strict=True)
    )
    if right < SHARE * len(probed):
        raise wrong_index("names to find their concepts", right, len(probed))
    return ProbeResult(equal / len(rows), right / len(probed))


def wrong_index(expected: str, found: int, probed: int) -> SapbertError:
    return SapbertError(
        "E353",
        f"Expected {expected}, but {found} of {probed} do. The index is damaged, or "
        "the encoder belongs to other names. Build the knowledge base again, maybe "
        "with a larger `ef` or `M`.",
    )


def drop_letter(name: str) -> str:
    """Return a name without the middle character of its longest word."""
    words = name.split(" ")
    number, word = max(enumerate(words), key=lambda pair: len(pair[1]))
    words[number] = word[: len(word) // 2] + word[len(word) // 2 + 1 :]
    return " ".join(words)


def measure_recall(kb: KnowledgeBase) -> Recall | None:
    """Compare the index with exact search, for names with a letter left out.

    The vectors of rows themselves are found more easily. None if the search is exact.
    """
    if kb.manifest.index.backend == "exact" or kb.rows <= NEAREST:
        return None
    most = min(RECALL_NAMES, max(FEWEST_RECALL_NAMES, COMPARED // kb.rows))
    entries = kb.entries(choose_rows(kb, most)).values()
    names = [drop_letter(of_row[0].alias) for of_row in entries]
    token_ids = [ids for ids in kb.encoder.tokenize(names)[0] if ids]
    if not token_ids:
        return None
    queries = kb.encoder.encode(token_ids)
    _, scores = kb.search(queries, NEAREST)
    everything = np.arange(kb.rows)
    _, exact = search_rows(kb.index.vectors, everything, queries, NEAREST)
    first = scores[:, 0] >= exact[:, 0] - PRECISION
    near = scores >= exact[:, -1:] - PRECISION
    return Recall(
        queries=len(queries),
        at_1=round(float(first.mean()), 4),
        at_10=round(float(near.sum() / exact.size), 4),
    )
