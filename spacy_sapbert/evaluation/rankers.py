"""The answers of a knowledge base to mentions, without its threshold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..linking.candidates import Candidate
from ..linking.filters import Filter
from ..linking.link import Linked
from ..linking.ranking import has_text, sort_entries
from ..linking.text import read_mention
from .accuracy import Answer, Ranker, is_complete, trim_answers
from .gold_mentions import Lookup

if TYPE_CHECKING:
    from ..kb.knowledge_base import KnowledgeBase

FEWEST_ROWS = 32  # rows to search at first
MOST_ROWS = 4096  # rows of an approximate index


def embed_mentions(
    kb: "KnowledgeBase", mentions: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the mentions that are searched for, and unit vectors.

    Shape: (n,) and (n, width).
    """
    numbers = [i for i, text in enumerate(mentions) if has_text(text)]
    texts = [read_mention(mentions[i]) for i in numbers]
    embedded = kb.embed(texts)
    named = kb.searcher.nearest.name(texts, embedded.vectors, Filter())
    usable = embedded.usable
    return np.array(numbers, dtype=np.int64)[usable], named.vectors[usable]


def exact_search(
    kb: "KnowledgeBase", vectors: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows by comparing with every vector; see `kb.search`."""
    from ..kb.indexes.exact import search_rows

    return search_rows(kb.vectors, np.arange(kb.rows), vectors, k)


def kb_ranker(kb: "KnowledgeBase", aliases: dict[str, str], *, k: int) -> Ranker:
    """Return a ranker by the scores of a knowledge base, without its threshold."""
    if kb.ranker is not None:
        return lambda mentions: [
            order_answers(kb, linked.candidates, aliases)
            for linked in link_mentions(kb, mentions, k=k)
        ]
    total = kb.rows

    def rank(mentions: Sequence[str]) -> list[list[Answer]]:
        results: list[list[Answer]] = [[] for _ in mentions]
        numbers, vectors = embed_mentions(kb, mentions)
        count = min(max(FEWEST_ROWS, 4 * k), total)
        while len(numbers):
            rows, scores = kb.search(vectors, count)
            entries = kb.entries(np.unique(rows).tolist())
            for row, number in enumerate(numbers):
                ordered = sort_entries(
                    rows[row].tolist(), scores[row].tolist(), entries
                )
                results[number] = [
                    Answer(entry.row, aliases.get(entry.cui, entry.cui), score)
                    for score, entry, _ in ordered
                ]
            if count >= min(total, MOST_ROWS) or rows.shape[1] < count:
                break
            count = min(count * 4, total, MOST_ROWS)
            pending = [not is_complete(results[number], k) for number in numbers]
            numbers, vectors = numbers[pending], vectors[pending]
        return [trim_answers(answers, k) for answers in results]

    return rank


def link_mentions(
    kb: "KnowledgeBase", mentions: Sequence[str], *, k: int
) -> list[Linked]:
    """Link mentions, whatever the threshold."""
    return kb.link(mentions, k=k, threshold=0)


def order_answers(
    kb: "KnowledgeBase", candidates: Sequence[Candidate], aliases: dict[str, str]
) -> list[Answer]:
    """Return the answers by the order that a knowledge base has learned.

    The scores are reciprocal ranks. Candidates that only evidence tells apart are
    equal, unless the order was taught: counts of annotations are evidence too.
    """
    taught = kb.manifest.taught is not None
    answers: list[Answer] = []
    before: Candidate | None = None
    for number, candidate in enumerate(candidates):
        score = 1 / candidate["rank"]
        if before and not taught and candidate["tie"] and before["tie"]:
            equal = candidate["score"] == before["score"]
            score = answers[-1].score if equal else score
        cui = aliases.get(candidate["cui"], candidate["cui"])
        answers.append(Answer(number, cui, score, candidate))
        before = candidate
    return answers


def kb_lookup(kb: "KnowledgeBase") -> Lookup:
    def lookup(cui: str) -> str | None:
        concept = kb.concept(cui)
        return None if concept is None else concept.cui

    return lookup
