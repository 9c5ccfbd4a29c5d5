"""A knowledge base as a linker to be judged, and its index against exact search."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spacy_sapbert.errors import Errors, SapbertError
from spacy_sapbert.evaluation.accuracy import Answer, Rank, is_complete, keep_needed
from spacy_sapbert.evaluation.gold_mentions import Lookup
from spacy_sapbert.kb.knowledge_base import KnowledgeBase
from spacy_sapbert.linking.candidates import has_text, iterate_hits
from spacy_sapbert.linking.ranking import FEWEST_ROWS, MOST_ROWS

BLOCK_ROWS = 16_384
TOLERANCE = 1e-6  # of two cosines in float32 that are the same


def parse_kbs(values: Sequence[str]) -> dict[str, str]:
    """Read names and knowledge bases from the command line.

    values (Sequence[str]): Each `NAME=FOLDER`.
    RETURNS (dict[str, str]): Folders by name.
    RAISES (SapbertError): If one has another form, or a name comes twice.
    """
    kbs: dict[str, str] = {}
    for value in values:
        name, _, folder = value.partition("=")
        if not name or not folder or name in kbs:
            raise SapbertError(Errors.E709.format(setting="--kb", value=value))
        kbs[name] = folder
    return kbs


def embed_mentions(
    kb: KnowledgeBase, mentions: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Embed those mentions that the linker would search for.

    kb (KnowledgeBase): The knowledge base.
    mentions (Sequence[str]): The texts.
    RETURNS (tuple[np.ndarray, np.ndarray]): Their numbers, and unit vectors in float32.
        Shape: (n,) and (n, width).
    """
    asked = [i for i, text in enumerate(mentions) if has_text(text)]
    vectors = kb.encode([mentions[i] for i in asked])
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    return np.array(asked, dtype=np.int64)[usable], vectors[usable]


def make_kb_search(kb: KnowledgeBase, aliases: dict[str, str], *, k: int) -> Rank:
    """Make a linker of a knowledge base that also tells ties.

    kb (KnowledgeBase): The knowledge base. Its threshold does not matter.
    aliases (dict[str, str]): Ids that another one stands for.
    k (int): Concepts for each mention; more where they tie.
    RETURNS (Rank): Gives the cosines of the rows of its index.
    """
    total = kb.rows

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = [[] for _ in mentions]
        numbers, vectors = embed_mentions(kb, mentions)
        count = min(max(FEWEST_ROWS, 4 * k), total)
        while len(numbers):
            rows, scores = kb.search(vectors, count)
            entries = kb.entries(np.unique(rows))
            for place, number in enumerate(numbers):
                results[number] = [
                    Answer(entry.row, aliases.get(entry.cui, entry.cui), score)
                    for score, entry, _ in iterate_hits(
                        rows[place].tolist(), scores[place].tolist(), entries
                    )
                ]
            if count >= min(total, MOST_ROWS) or rows.shape[1] < count:
                break
            count = min(count * 4, total, MOST_ROWS)
            pending = [not is_complete(results[number], k) for number in numbers]
            numbers, vectors = numbers[pending], vectors[pending]
        return [keep_needed(answers, k) for answers in results]

    return rank


def make_kb_lookup(kb: KnowledgeBase) -> Lookup:
    """Make the look-up of ids that judging needs.

    kb (KnowledgeBase): The knowledge base.
    RETURNS (Lookup): Gives the concept that has an id or had it once.
    """

    def lookup(cui: str) -> str | None:
        concept = kb.concept(cui)
        return None if concept is None else concept.cui

    return lookup


def iterate_blocks(kb: KnowledgeBase) -> Iterator[np.ndarray]:
    """Return all vectors of the index in order.

    kb (KnowledgeBase): The knowledge base.
    YIELDS (np.ndarray): Unit vectors in float32. Shape: (up to BLOCK_ROWS, width).
    """
    total = kb.rows
    for start in range(0, total, BLOCK_ROWS):
        yield kb.vectors(np.arange(start, min(start + BLOCK_ROWS, total)))


def best_cosines(
    blocks: Iterator[np.ndarray], queries: np.ndarray, k: int
) -> np.ndarray:
    """Find the highest cosines by comparing with every vector.

    blocks (Iterator[np.ndarray]): Unit vectors. Shape: (n, width) each.
    queries (np.ndarray): Unit vectors. Shape: (m, width).
    k (int): How many.
    RETURNS (np.ndarray): The highest first. Shape: (m, up to k).
    """
    best = np.empty((len(queries), 0), dtype=np.float32)
    for block in blocks:
        best = np.concatenate([best, queries @ block.T], axis=1)
        if best.shape[1] > k:
            best = -np.partition(-best, k - 1, axis=1)[:, :k]
    return -np.sort(-best, axis=1)


def measure_recall(
    kb: KnowledgeBase, mentions: Sequence[str], *, ks: Sequence[int] = (1, 10)
) -> dict[str, Any]:
    """Hold the answers of the index against those of exact search.

    A row that the index finds is right if its cosine reaches the k-th highest of all
    rows, so that rows with equal cosines may stand for each other.

    kb (KnowledgeBase): The knowledge base.
    mentions (Sequence[str]): What is asked.
    ks (Sequence[int]): How many rows are looked at.
    RETURNS (dict[str, Any]): The number of queries, and for each k the share of right
        rows; None without queries.
    """
    _, queries = embed_mentions(kb, mentions)
    depth = min(max(ks), kb.rows)
    recall: dict[str, Any] = {"queries": len(queries)}
    if not len(queries):
        return {**recall, **{f"recall@{k}": None for k in ks}}
    exact = best_cosines(iterate_blocks(kb), queries, depth)
    found = np.full_like(exact, -np.inf)  # (n, depth)
    rows, _ = kb.search(queries, depth)
    vectors = kb.vectors(rows.ravel()).reshape(*rows.shape, -1)
    found[:, : rows.shape[1]] = np.einsum("nw,nkw->nk", queries, vectors)
    for k in ks:
        cut = min(k, depth)
        right = found[:, :cut] >= exact[:, cut - 1 : cut] - TOLERANCE
        recall[f"recall@{k}"] = round(float(right.mean()), 6)
    return recall
